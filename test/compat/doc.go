// Package compat drives the built binary with the client of COSI's older
// specification module, whose requests lack the contexts of deletion and
// revocation. It is a module of its own because both generations of the
// generated code register the same file and cannot live in one process.
package compat
