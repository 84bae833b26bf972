//go:build !linux

package cosi

// peerName is what the refusal of a socket that this process serves says.
func peerName() string { return "another process" }
