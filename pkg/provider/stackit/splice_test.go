package stackit

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// theirStatement is one of others, with blanks where the language allows them.
func theirStatement(t *rapid.T) string {
	blank := rapid.SampledFrom([]string{"", " ", "\n\t", "\r\n"})
	sid := rapid.SampledFrom([]string{"", `"Sid":"theirs",`, `"Sid" : "a]},{\"é",`, `"Sid":"zuber",`}).Draw(t, "sid")
	return "{" + blank.Draw(t, "b") + sid + `"Effect":` + blank.Draw(t, "b") + `"Allow","Principal":"*","Action":["s3:GetObject"],` +
		`"Resource":"arn:aws:s3:::b-1/x<&>` + rapid.StringMatching(`[a-z]{0,9}`).Draw(t, "key") + `/*"` + blank.Draw(t, "b") + "}"
}

// TestSplice: whatever others wrote comes back byte for byte, and lies in the text
// as it was while statements of ours stand beside it.
func TestSplice(t *testing.T) {
	blanks := rapid.SampledFrom([]string{"", " ", "\n  "})
	drop := func(sid string) bool { return strings.HasPrefix(sid, "zuber-x-") }
	rapid.Check(t, func(t *rapid.T) {
		blank := func() string { return blanks.Draw(t, "blank") }
		var theirs []string
		for range rapid.IntRange(1, 4).Draw(t, "statements") {
			theirs = append(theirs, theirStatement(t))
		}
		value := "[" + blank() + strings.Join(theirs, blank()+","+blank()) + blank() + "]"
		if len(theirs) == 1 && rapid.Bool().Draw(t, "single") {
			value = theirs[0]
		}
		head := rapid.SampledFrom([]string{"", `"Version":"2012-10-17",`, "\"Id\" : \"}]\" ,\n", `"Version":"Statement",`}).Draw(t, "head")
		tail := rapid.SampledFrom([]string{"", `,"Version":"2012-10-17"`, " , \"Id\":\"x\""}).Draw(t, "tail")
		doc := blank() + "{" + head + `"Statement"` + blank() + ":" + blank() + value + tail + blank() + "}" + blank()
		current := doc
		for range rapid.IntRange(1, 3).Draw(t, "changes") {
			var ours []string
			for i := range rapid.IntRange(0, 3).Draw(t, "ours") {
				ours = append(ours, `{"Sid":"zuber-x-`+string(rune('a'+i))+`","Effect":"Deny"}`)
			}
			l, err := readLayout(current)
			if err != nil {
				t.Fatal(err)
			}
			if current, err = spliced(l.without(drop), ours); err != nil {
				t.Fatal(err)
			}
			for _, s := range append(theirs, ours...) {
				if !strings.Contains(current, s) {
					t.Fatalf("%s lacks %s", current, s)
				}
			}
			if !strings.Contains(current, head) || !strings.Contains(current, tail) {
				t.Fatalf("%s lacks what stands around the statements", current)
			}
			if l, err = readLayout(current); err != nil || len(l.statements) != len(theirs)+len(ours) {
				t.Fatalf("%s: %d statements, %v", current, len(l.statements), err)
			}
		}
		l, err := readLayout(current)
		if err != nil {
			t.Fatal(err)
		}
		if got := l.without(drop); got != doc {
			t.Fatalf("got  %q\nwant %q", got, doc)
		}
	})
}

// TestSpliceAmongOthers: others add and remove statements around ours.
func TestSpliceAmongOthers(t *testing.T) {
	drop := func(sid string) bool { return strings.HasPrefix(sid, "zuber-") }
	for _, c := range []struct{ doc, want string }{
		{`{"Statement":[{"Sid":"zuber-1"},{"Sid":"zuber-2"}]}`, ""},
		{`{"Statement":{"Sid":"zuber-1"}}`, ""},
		{`{"Statement":[{"Sid":"zuber-1"}, {"Sid":"a"} ]}`, `{"Statement":{"Sid":"a"}}`},
		{`{"Statement":[ {"Sid":"zuber-1"}, {"Sid":"a"}, {"Sid":"b"} ]}`, `{"Statement":[ {"Sid":"a"}, {"Sid":"b"} ]}`},
		{`{"Statement":[{"Sid":"a"}, {"Sid":"zuber-1"} , {"Sid":"b"},{"Sid":"zuber-2"}]}`, `{"Statement":[{"Sid":"a"} , {"Sid":"b"}]}`},
		{`{"Statement":[{"Sid":"a"}]}`, `{"Statement":[{"Sid":"a"}]}`},
	} {
		l, err := readLayout(c.doc)
		if err != nil {
			t.Fatal(err)
		}
		if got := l.without(drop); got != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.doc, got, c.want)
		}
	}
}

// malformedPolicies are documents that nothing can be added to.
func malformedPolicies() []string {
	return []string{
		"x", "[]", `"Statement"`, "null", "{}", `{"Statement":[]}`, `{"Statement":"x"}`, `{"Statement":null}`, `{"Statement":[1]}`, `{"Statement":[[]]}`,
		`{"Statement":[{"Sid":1}]}`, `{"Statement":[{}],"Statement":[{}]}`, `{"statement":[{}]}`, `{"Statement":[{}]} x`, `{"Statement":[{}],}`,
	}
}

func TestMalformedLayout(t *testing.T) {
	for _, doc := range malformedPolicies() {
		if l, err := readLayout(doc); err == nil {
			t.Errorf("%s reads as %+v", doc, l)
		}
	}
}

func FuzzSplice(f *testing.F) {
	f.Add(theirPolicy("b"), `{"Sid":"zuber-x"}`)
	f.Add(`{"Statement":[{"Sid":"a"},{"Sid":"zuber-1"}]}`, `{"Sid":"zuber-2"}`)
	for _, doc := range malformedPolicies() {
		f.Add(doc, `{"Sid":"zuber-x"}`)
	}
	drop := func(sid string) bool { return strings.HasPrefix(sid, "zuber-") }
	f.Fuzz(func(t *testing.T, doc, statement string) {
		if s, err := readLayout(`{"Statement":` + statement + `}`); err != nil || !s.single || !drop(s.statements[0].sid) {
			return
		}
		l, err := readLayout(doc)
		if err != nil {
			return
		}
		others := l.without(drop)
		added, err := spliced(others, []string{statement})
		if err != nil {
			t.Fatalf("%q without ours is %q: %v", doc, others, err)
		}
		if l, err = readLayout(added); err != nil {
			t.Fatalf("%q with ours is %q: %v", doc, added, err)
		}
		if got := l.without(drop); got != others {
			t.Fatalf("got  %q\nwant %q", got, others)
		}
	})
}
