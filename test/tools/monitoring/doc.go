// Package monitoring evaluates the alerts of config/monitoring with Prometheus's own
// engine, and checks the queries of the dashboard. It is a module of its own, so that
// the driver does not depend on Prometheus's server. Run its tests with
// `go test ./...` in this directory.
package monitoring
