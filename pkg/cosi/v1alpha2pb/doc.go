// Package v1alpha2pb is COSI v1alpha2 on the wire: messages and services that
// protoc makes from cosi.proto.
package v1alpha2pb

//go:generate sh generate.sh
