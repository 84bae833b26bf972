package cloudscale

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// testSids are those of no driver, for short texts.
const testSids = "zuber-t-"

func someMembers(n int) (all []member) {
	for i := range n {
		all = append(all, member{id: fmt.Sprint(i), uid: fmt.Sprintf("u%d", i), mode: modesOf()[i%3]})
	}
	return all
}

// theirPolicy draws a document that somebody else may have written.
func theirPolicy(t *rapid.T) (text string, list []string) {
	space := rapid.StringMatching(`[ \n\t]{0,3}`)
	s := func() string { return space.Draw(t, "space") }
	for i := range rapid.IntRange(0, 4).Draw(t, "n") {
		sid := rapid.SampledFrom([]string{`"Sid":"a",`, `"Sid":"zuber",`, `"Sid":"zuber-u-owner",`, `"sid":"zuber-t-owner",`, `"Sid":["zuber-t-x"],`, ``}).Draw(t, "sid")
		list = append(list, fmt.Sprintf(`{%s%s"Effect":%s"Deny","N":%d,"Text":"],\"}{ä<"%s}`, s(), sid, s(), i, s()))
	}
	value := "[" + s() + strings.Join(list, s()+","+s()) + s() + "]"
	if len(list) == 1 && rapid.Bool().Draw(t, "single") {
		value = list[0]
	}
	fields := []string{`"Statement"` + s() + ":" + s() + value, `"Version":"2008-10-17"`, `"Id"` + s() + `:"theirs"`}[:rapid.IntRange(1, 3).Draw(t, "fields")]
	fields = rapid.Permutation(fields).Draw(t, "order")
	return s() + "{" + s() + strings.Join(fields, s()+","+s()) + s() + "}" + s(), list
}

// What others wrote is in every merged document byte for byte, and is all that is
// left when the last of ours goes.
func TestMergeKeepsWhatOthersWrote(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		original, list := theirPolicy(t)
		current := original
		for range rapid.IntRange(1, 4).Draw(t, "rounds") {
			n := rapid.IntRange(0, 3).Draw(t, "members")
			merged, err := merge(testSids, current, "bkt", "owner", someMembers(n))
			if err != nil {
				t.Fatal(err)
			}
			if again, err := merge(testSids, merged, "bkt", "owner", someMembers(n)); err != nil || again != merged {
				t.Fatalf("merged once more, %v:\n%s\n%s", err, merged, again)
			}
			var doc struct{ Statement json.RawMessage }
			if err := json.Unmarshal([]byte(merged), &doc); err != nil {
				t.Fatalf("%v: %s", err, merged)
			}
			at := 0
			for _, st := range list {
				i := strings.Index(merged[at:], st)
				if i < 0 {
					t.Fatalf("statement %s is not in %s", st, merged)
				}
				at += i + len(st)
			}
			if n == 0 && merged != original {
				t.Fatalf("got\n%s\nwant\n%s", merged, original)
			}
			current = merged
		}
		left, err := merge(testSids, current, "bkt", "owner", nil)
		if err != nil || left != original {
			t.Fatalf("%v: left is\n%s\nwant\n%s", err, left, original)
		}
	})
}

// Somebody else's program may write the document anew, with ours in it.
func TestMergeFindsOursAnywhere(t *testing.T) {
	const a, b = `{"Sid":"a"}`, `{"Sid":"b"}`
	for current, want := range map[string]string{
		``: ``,
		`{"Version":"2012-10-17","Id":"zuber","Statement":[{"Sid":"zuber-t-owner"}]}`:                          ``,
		`{"Id":"zuber","Statement":[{"Sid":"zuber-t-owner"},{"Sid":"a"}]}`:                                     `{"Id":"zuber","Statement":[` + a + `]}`,
		`{"Statement":[{"Sid":"zuber-t-x"} , ` + a + `, {"Sid":"zuber-t-y"},{"Sid":"zuber-t-z"} ,` + b + ` ]}`: `{"Statement":[` + a + ` ,` + b + ` ]}`,
		`{"Statement":[ {"Sid":"zuber-t-x"},{"Sid":"zuber-t-y"} ]}`:                                            `{"Statement":[  ]}`,
		`{"Statement":{"Sid":"zuber-t-x"}}`:                                                                    `{"Statement":[]}`,
		`{"Statement":[` + a + `,{"Sid":"zuber-t-owner-single"},` + b + `]}`:                                   `{"Statement":[` + a + `,` + b + `]}`,
		`{"Statement":[` + a + `,{"Sid":"zuber-t-owner-single"}],"Id":"i"}`:                                    `{"Statement":` + a + `,"Id":"i"}`,
	} {
		got, err := merge(testSids, current, "bkt", "owner", nil)
		if err != nil || got != want {
			t.Errorf("of %s is left %s, %v, want %s", current, got, err, want)
		}
	}
}

func TestMergeRefusesWhatItDoesNotUnderstand(t *testing.T) {
	for _, current := range []string{
		`x`, `[]`, `"text"`, `null`, `{`, `{}`, `{"Statement":[]`, `{"Statement":[]} x`, `{"Statement":[]}{}`, `{"Statement":[1]}`, `{"Statement":null}`,
		`{"Statement":"text"}`, `{"Statement":[{},null]}`, `{"Statement":[],"Statement":[]}`, `{"Statement":[{]}`, `{"statement":[]}`,
	} {
		for n := range 2 {
			if got, err := merge(testSids, current, "bkt", "owner", someMembers(n)); !errors.Is(err, provider.ErrPrecondition) || got != "" {
				t.Errorf("of %s came %q, %v", current, got, err)
			}
		}
	}
	_, err := merge(testSids, `{"Statement":[]}`, "bkt", "u0", someMembers(1))
	if !errors.Is(err, provider.ErrPrecondition) {
		t.Errorf("a Deny would hit the owner: %v", err)
	}
	long := `{"Statement":[{"Sid":"` + strings.Repeat("x", policyLimit-50) + `"}]}`
	if _, err := merge(testSids, long, "bkt", "owner", someMembers(1)); !errors.Is(err, provider.ErrQuotaExceeded) {
		t.Errorf("a long policy: %v", err)
	}
}

func FuzzMerge(f *testing.F) {
	f.Add(`{"Statement":[{"Sid":"a"} , {"Sid":"zuber-t-x"}]}`)
	f.Add(`{"Statement":{"Sid":"a"},"Id":"i"}`)
	f.Fuzz(func(t *testing.T, current string) {
		theirs, err := merge(testSids, current, "bkt", "owner", nil)
		if err != nil {
			return
		}
		merged, err := merge(testSids, current, "bkt", "owner", someMembers(2))
		if err != nil {
			return
		}
		if !json.Valid([]byte(merged)) {
			t.Fatalf("%q becomes %q", current, merged)
		}
		if left, err := merge(testSids, merged, "bkt", "owner", nil); err != nil || left != theirs {
			t.Fatalf("of %q is left %q, %v, and without members %q", current, left, err, theirs)
		}
	})
}
