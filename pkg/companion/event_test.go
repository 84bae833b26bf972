package companion

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation"
)

func TestEventNames(t *testing.T) {
	about := meta{kind: kindClaim, namespace: "ns", name: "photos", uid: "u1"}
	name := eventName(about, "Warning", "Failed", "why")
	if name != eventName(about, "Warning", "Failed", "why") {
		t.Error("the same event has two names")
	}
	other := about
	other.uid = "u2"
	for what, different := range map[string]string{
		"object": eventName(other, "Warning", "Failed", "why"), "type": eventName(about, "Normal", "Failed", "why"),
		"reason": eventName(about, "Warning", "Skipped", "why"), "message": eventName(about, "Warning", "Failed", "why not"),
		"parts": eventName(about, "Warning", "Failedwhy", ""),
	} {
		if different == name {
			t.Errorf("an event with another %s has the same name", what)
		}
	}
	for _, long := range []string{strings.Repeat("a", 253), strings.Repeat("a", 199) + ".b", strings.Repeat("a.", 126)} {
		about.name = long
		if faults := validation.IsDNS1123Subdomain(eventName(about, "x")); len(faults) > 0 {
			t.Errorf("of %q: %v", long, faults)
		}
	}
}

func TestLongMessagesAreCut(t *testing.T) {
	e := newEvent(meta{name: "x"}, "Warning", "Failed", strings.Repeat("ä", eventMessage), occurrence{})
	if len(e.Message) > eventMessage || !utf8.ValidString(e.Message) || !strings.HasSuffix(e.Message, "…") || e.Count != 1 {
		t.Errorf("%d bytes, count %d", len(e.Message), e.Count)
	}
}

// TestNews: a success is news when it is seen to happen, or when the event about
// it would still be there.
func TestNews(t *testing.T) {
	now := time.Unix(1e9, 0)
	n := newNews(func() time.Time { return now })
	of := func(uid string, age time.Duration) meta {
		return meta{namespace: "ns", name: "x", uid: uid, created: now.Add(-age)}
	}
	old, young := of("old", 2*time.Hour), of("young", time.Minute)
	if n.is(old, true) || !n.is(young, true) || !n.is(young, true) {
		t.Error("ready before the companion came")
	}
	if n.is(old, false) || !n.is(old, true) || n.is(old, true) {
		t.Error("seen to become ready")
	}
	if n.is(of("gone", 2*time.Hour), false) || n.is(old, true) {
		t.Error("another object of the same name")
	}
	if len(n.pending) != 0 {
		t.Errorf("pending %v", n.pending)
	}
}
