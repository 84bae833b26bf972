package clients

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zuber-storage/zuber/pkg/emulator"
)

// requireClients names the variable that turns a missing program into a failure.
const requireClients = "ZUBER_REQUIRE_CLIENTS"

// client is a row of the document's tables.
type client struct {
	name    string
	program string   // "" for a library
	version []string // arguments that make the program tell its version
	// ladder returns what to try, in that order, with a kind of access; nil is
	// the client as it comes.
	ladder func(p place, g grant) []settings
	// prepare gives the client its configuration, before the settings.
	prepare    func(*session) error
	operations []operation
}

// settings is what a user has to set.
type settings struct {
	text  string // as the document says it; "" for nothing
	apply func(*session)
}

// operation is one thing that people do with a client. It returns nil only if
// all that it should do was done, which includes the comparison of bytes.
type operation struct {
	name  string // as the document calls it
	needs right
	run   func(*session) error
	// own says that it takes what the client itself wrote before, so it is tried
	// only where the grant allows to write.
	own bool
	// alone says that it is not tried where the grant lacks a right: it would say
	// no more than the operations beside it, or the answer does not go by rights.
	alone bool
	// caveat says that no setting of the whole client is to blame if it fails.
	caveat bool
	// otherwise is what helps, besides the settings of the whole client, where
	// the operation fails without; it may be nil.
	otherwise *settings
}

// verdict is how an operation ended.
type verdict struct {
	operation operation
	may       bool     // the grant has the rights that it needs
	with      settings // that it took, beyond the client's
	answer    string   // by which the endpoint refused it
	err       error    // nil if it did what it should
}

// measurement is a client with one kind of access.
type measurement struct {
	with     settings
	verdicts []verdict
}

// measure tries the client with each of the settings until one makes all work
// that the grant allows; failing that, the one with which most works, the first
// among equals. With it the client then tries what the grant does not allow. The
// settings are the only thing that may differ: each try has a cloud of its own.
func measure(t *testing.T, c client, p place, g grant, path string) measurement {
	t.Helper()
	ladder := []settings{{}}
	if c.ladder != nil {
		if l := c.ladder(p, g); l != nil {
			ladder = l
		}
	}
	var best measurement
	var session *session
	most := -1
	for _, with := range ladder {
		s := newSession(t, p, g, path)
		if err := c.prepare(s); err != nil {
			t.Fatalf("prepare: %v", err)
		}
		with.to(s)
		m, works, missing := measurement{with: with}, 0, 0
		for _, o := range c.operations {
			if !o.allowed(g) || o.skipped(g) {
				continue
			}
			v := s.try(o)
			switch {
			case v.ok():
				works++
			case !o.caveat:
				missing++
			}
			m.verdicts = append(m.verdicts, v)
		}
		if works > most {
			best, session, most = m, s, works
		}
		if missing == 0 {
			break
		}
	}
	for _, o := range c.operations {
		if !o.allowed(g) && !o.skipped(g) {
			best.verdicts = append(best.verdicts, session.mayNot(o, g))
		}
	}
	return best
}

func (w settings) to(s *session) {
	if w.apply != nil {
		w.apply(s)
	}
}

func (o operation) allowed(g grant) bool { return o.needs&^g.rights == 0 }

func (o operation) skipped(g grant) bool {
	return o.own && g.rights&write == 0 || o.alone && !o.allowed(g)
}

// try runs an operation that the grant allows.
func (s *session) try(o operation) verdict {
	v := s.attempt(o)
	if !v.ok() && o.otherwise != nil {
		env, flags := s.env, s.flags
		o.otherwise.to(s)
		v = s.attempt(o)
		v.with = *o.otherwise
		s.env, s.flags = env, flags
	}
	if !v.ok() {
		s.t.Logf("%s: %s: %v", o.name, v.answer, v.err)
	}
	v.may = true
	return v
}

// mayNot runs an operation that the grant does not allow. It must be refused by
// the endpoint, leave the bucket as it was and bring nothing to light.
func (s *session) mayNot(o operation, g grant) verdict {
	s.t.Helper()
	before := s.objects()
	if err := os.RemoveAll(filepath.Join(s.dir, gotten)); err != nil {
		s.t.Fatal(err)
	}
	v := s.attempt(o)
	if v.ok() {
		s.t.Errorf("%s: a %s access may not do that, and yet it worked", o.name, g.title)
	}
	// A delete of several objects may be answered with a refusal for each.
	if v.answer == "" && s.called("DeleteObjects") != nil {
		s.t.Errorf("%s: it failed for another reason than a refusal: %v", o.name, v.err)
	}
	if err := s.leaks(before); err != nil {
		s.t.Errorf("%s: a %s access was refused, but %v", o.name, g.title, err)
	}
	return v
}

func (s *session) attempt(o operation) verdict {
	s.cloud.ResetCalls()
	s.printed = ""
	err := o.run(s)
	return verdict{operation: o, err: err, answer: refusal(s.cloud.Calls())}
}

func (v verdict) ok() bool { return v.err == nil }

// refusal returns the latest answer that was one: a 404 is what a client gets
// that looks before it writes.
func refusal(calls []emulator.Call) string {
	answer := ""
	for _, c := range calls {
		if c.Plane == emulator.PlaneS3 && c.Status >= http.StatusBadRequest && c.Status != http.StatusNotFound {
			answer = fmt.Sprintf("%d to %s", c.Status, c.Operation)
		}
	}
	return answer
}

// word is the verdict in the table of operations.
func (v verdict) word() string {
	switch {
	case v.ok() && v.with.text != "":
		return "with " + v.with.text
	case v.ok():
		return "yes"
	case v.may:
		return "**no**"
	}
	return "refused"
}

// cell is the measurement in the table of clients.
func (m measurement) cell() string {
	var works, faults, extras []string
	answer := ""
	for _, v := range m.verdicts {
		switch {
		case !v.may:
		case !v.ok():
			faults = append(faults, fmt.Sprintf("%s (%s)", v.operation.name, v.answer))
			if answer == "" {
				answer = v.answer
			}
		case v.with.text != "":
			extras = append(extras, fmt.Sprintf("%s with %s", v.operation.name, v.with.text))
			fallthrough
		default:
			works = append(works, v.operation.name)
		}
	}
	if works == nil {
		return "impossible: " + answer
	}
	text := "works"
	if m.with.text != "" {
		text += " with " + m.with.text
	}
	if extras != nil {
		text += "; " + strings.Join(extras, ", ")
	}
	if faults != nil {
		text += "; not " + strings.Join(faults, ", ")
	}
	return text
}

// find returns the program's path, or "" where it is missing and may be.
func (c client) find(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("the programs take a minute")
	}
	path, err := exec.LookPath(c.program)
	if err != nil {
		if os.Getenv(requireClients) == "1" {
			t.Fatalf("%s=1, but: %v", requireClients, err)
		}
		t.Skipf("%v: its rows are not compared", err)
	}
	return path
}
