package transport

import "time"

// Plane says what the driver uses an endpoint for.
type Plane string

// The planes of a cloud.
const (
	PlaneControl Plane = "control" // the API that makes buckets and identities
	PlaneToken   Plane = "token"   // where access tokens for the control plane are got
	PlaneS3      Plane = "s3"      // the S3 endpoint of a region
)

// Endpoint is one host of a back end. Each is limited, paused and given up by
// itself: the outage of a region's S3 must not stop the control plane or
// another region, and two back ends on one host are two projects with limits of
// their own.
type Endpoint struct {
	Plane Plane
	Host  string // with the port, if the URL has one
}

// String names the endpoint for people.
func (e Endpoint) String() string {
	switch e.Plane {
	case PlaneControl:
		return "cloud API " + e.Host
	case PlaneToken:
		return "token endpoint " + e.Host
	case PlaneS3:
	}
	return "S3 endpoint " + e.Host
}

// Happening is what an Event is about.
type Happening string

// What happens at an endpoint.
const (
	Used           Happening = "used"           // for the first time
	CircuitOpened  Happening = "circuitOpened"  // requests are refused from here on
	CircuitClosed  Happening = "circuitClosed"  // a trial was answered
	CircuitRefused Happening = "circuitRefused" // a request was not sent
	Paused         Happening = "paused"         // the endpoint asked to be left alone, or for longer
	PauseRefused   Happening = "pauseRefused"   // a request that cannot wait so long was not sent
)

// Event is a change at an endpoint.
type Event struct {
	What     Happening
	Endpoint Endpoint
	Since    time.Time // of the circuit: when the row of failures began
	Until    time.Time // of a pause: its end
	Cause    string    // the failure or the answer behind it; empty with CircuitClosed and Used
}
