//go:build !race

package e2e

// race says that the tests, and so the driver, run with the race detector.
const race = false
