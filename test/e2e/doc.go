// Package e2e plays users of a real cluster: kubectl, the API server, upstream's
// COSI controller and sidecar, and the driver as its binary. Only the clouds are
// emulated, and there are no nodes.
//
// # How a story is written
//
// A story is one test in a file of its own. It begins with
//
//	s := together(t) // runs beside other stories
//	s := alone(t)    // stops, starts or disturbs what all stories share
//
// and has a namespace of its own, s.ns. Stories that are alone come first: go
// test lets those that run together wait until then.
//
// A story applies manifests as a user does (s.apply, or s.class, s.accessClass,
// s.claim and s.access, which write them), waits for what a user sees (s.ready,
// s.bucketInfo, s.event, s.told for the texts of docs/troubleshooting.md,
// s.gone, s.freed, and s.eventually or s.within for anything else), takes the
// bucket into use (bucketInfo.s3), and deletes it (s.delete). A story that is
// alone may stop, kill and start s.Driver, s.Sidecar, s.Controller and
// s.APIServer (s.restart, s.crash), and disturb the clouds through s.Emulator.
//
// When the story ends, what it applied is deleted, accesses first, and nothing
// may be left of it: no object of COSI, no Secret, no bucket, no identity, no
// key. What the story leaves on purpose it says with s.keep. When a story fails,
// its objects, its events and the logs of its time are printed.
//
// Nothing sleeps: every wait has a condition, a deadline, and an error that says
// what is missing.
//
// What upstream's controller and sidecar do wrong by themselves is written down
// in docs/upstream.md, with what a user does about it; the stories do just that.
package e2e
