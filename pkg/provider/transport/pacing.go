package transport

import (
	"net/http"
	"strings"
	"sync"
	"time"
)

// The defaults of Pacing.
const (
	DefaultMaxConcurrent = 16
	DefaultCooldown      = 5 * time.Second
)

// Pacing says how a back end spares its cloud. The zero value is usable.
type Pacing struct {
	// MaxConcurrent is how many requests may be under way at one endpoint; the
	// others wait in the order of their arrival. 0 means DefaultMaxConcurrent.
	MaxConcurrent int
	// Cooldown is how long an endpoint that failed in a row is left alone before
	// one request tries it again; up to a fifth is added or taken off at random. 0
	// means DefaultCooldown.
	Cooldown time.Duration
	// OnEvent is told what happens at the endpoints, in order for each of them;
	// it may be nil. It must return quickly and not use the transport.
	OnEvent func(Event)
	// OnCall is told of every request, and may be nil. The same holds for it.
	OnCall func(Call)
}

// withDefaults fills in what is not set.
func (p Pacing) withDefaults() Pacing {
	if p.MaxConcurrent <= 0 {
		p.MaxConcurrent = DefaultMaxConcurrent
	}
	if p.Cooldown <= 0 {
		p.Cooldown = DefaultCooldown
	}
	if p.OnEvent == nil {
		p.OnEvent = func(Event) {}
	}
	if p.OnCall == nil {
		p.OnCall = func(Call) {}
	}
	return p
}

// gates holds one gate for each endpoint. Endpoints come from the configuration
// and from bucket classes, so that there are few and none is ever forgotten.
type gates struct {
	next    http.RoundTripper
	names   operations
	pacing  Pacing
	backoff time.Duration // of a 429 that does not say how long
	maxWait time.Duration // longest pause of a request without a deadline

	mu  sync.Mutex
	all map[Endpoint]*gate
}

// at returns the gate of an endpoint.
func (g *gates) at(e Endpoint) *gate {
	g.mu.Lock()
	defer g.mu.Unlock()
	if found := g.all[e]; found != nil {
		return found
	}
	made := newGate(g, e)
	g.all[e] = made
	g.pacing.OnEvent(Event{What: Used, Endpoint: e})
	return made
}

// planeTransport sends the requests of one plane through the gates.
type planeTransport struct {
	gates *gates
	plane Plane
}

// RoundTrip implements http.RoundTripper.
func (p *planeTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	spend(req.Context())
	return p.gates.at(Endpoint{p.plane, strings.ToLower(req.URL.Host)}).RoundTrip(req)
}
