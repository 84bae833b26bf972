package main

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// windowOf is how many bytes in a row of a secret, or of one of its spellings, are
// taken for a leak: errors cut values short.
const windowOf = 12

// spelling is a way in which a value may get out. Its windows are longer by the
// factor: a number or a hex digit tells less than a character.
type spelling struct {
	factor int
	write  func(string) string
}

func spellings() map[string]spelling {
	reverse := func(s string) string {
		b := []byte(s)
		slices.Reverse(b)
		return string(b)
	}
	// What stands before a value shifts its base64.
	shifted := func(enc *base64.Encoding, by int) func(string) string {
		return func(s string) string {
			text := enc.EncodeToString([]byte(strings.Repeat("x", by) + s))
			return strings.TrimRight(text, "=")[by+(by+1)/2 : len(strings.TrimRight(text, "="))-1]
		}
	}
	all := map[string]spelling{
		"plain":           {1, func(s string) string { return s }},
		"reversed":        {1, reverse},
		"hex":             {2, func(s string) string { return hex.EncodeToString([]byte(s)) }},
		"HEX":             {2, func(s string) string { return fmt.Sprintf("%X", s) }},
		"spaced hex":      {3, func(s string) string { return fmt.Sprintf("% x", s) }},
		"numbers":         {4, func(s string) string { return strings.Trim(fmt.Sprintf("%d", []byte(s)), "[]") }},
		"URL query":       {1, url.QueryEscape},
		"URL path":        {1, url.PathEscape},
		"quoted":          {1, func(s string) string { return strings.Trim(fmt.Sprintf("%q", s), `"`) }},
		"reversed base64": {1, func(s string) string { return reverse(base64.StdEncoding.EncodeToString([]byte(s))) }},
	}
	for by := range 3 {
		all[fmt.Sprint("base64, shifted by ", by)] = spelling{1, shifted(base64.StdEncoding, by)}
		all[fmt.Sprint("URL base64, shifted by ", by)] = spelling{1, shifted(base64.URLEncoding, by)}
	}
	return all
}

// secrets are values that must not get out. It is safe for concurrent use.
type secrets struct {
	mu     sync.Mutex
	values map[string]string // what each one is
}

func newSecrets() *secrets { return &secrets{values: map[string]string{}} }

func (s *secrets) add(what, value string) {
	if len(value) < windowOf {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.values[value] = what
}

// kinds counts the values by what they are.
func (s *secrets) kinds() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	count := map[string]int{}
	for _, what := range s.values {
		count[what]++
	}
	return count
}

// one returns the longest value of that kind: the last line of a key may be so short that it
// has no digit, and is no word that looks like a secret then.
func (s *secrets) one(what string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	longest := ""
	for value, w := range s.values {
		if w == what && len(value) > len(longest) {
			longest = value
		}
	}
	return longest
}

// scanner finds windows of secrets in texts.
type scanner map[int]map[string]string // by length, what a window is of

func (s *secrets) scanner() scanner {
	s.mu.Lock()
	defer s.mu.Unlock()
	sc := scanner{}
	for value, what := range s.values {
		for name, sp := range spellings() {
			text, n := sp.write(value), windowOf*sp.factor
			if sc[n] == nil {
				sc[n] = map[string]string{}
			}
			for i := 0; i+n <= len(text); i++ {
				sc[n][text[i:i+n]] = what + ", " + name
			}
		}
	}
	return sc
}

// find says what a text shows, "" if nothing. It never repeats the text.
func (sc scanner) find(text string) string {
	for _, n := range slices.Sorted(maps.Keys(sc)) {
		windows := sc[n]
		for i := 0; i+n <= len(text); i++ {
			if what, ok := windows[text[i:i+n]]; ok {
				return fmt.Sprintf("%s, at byte %d of %d", what, i, len(text))
			}
		}
	}
	return ""
}

// channels are all texts that got out, by the way they took.
type channels struct {
	mu    sync.Mutex
	texts map[string]*strings.Builder
}

func newChannels() *channels { return &channels{texts: map[string]*strings.Builder{}} }

func (c *channels) add(channel string, texts ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.texts[channel] == nil {
		c.texts[channel] = &strings.Builder{}
	}
	for _, text := range texts {
		c.texts[channel].WriteString(text + "\n")
	}
}

// wantClean fails the test if a secret got out. The canary, which is none, must have
// got out everywhere: what does not show it was not captured. Last a secret is planted
// into each channel in each spelling, and must be found there.
func (c *channels) wantClean(t *testing.T, s *secrets, planted string) {
	t.Helper()
	sc, bird := s.scanner(), newSecrets()
	bird.add("canary", canary)
	look := bird.scanner()
	for _, channel := range slices.Sorted(maps.Keys(c.texts)) {
		text := c.texts[channel].String()
		if found := sc.find(text); found != "" {
			t.Errorf("%s shows a secret: %s", channel, found)
		}
		if look.find(text) == "" {
			t.Errorf("%s was not captured, it does not show the canary: %.300s", channel, text)
		}
		for name, sp := range spellings() {
			value := sp.write(planted)
			value = value[:min(len(value), sp.factor*(windowOf+2))] // cut short, as errors do
			leaky := text[:len(text)/2] + value + text[len(text)/2:]
			if sc.find(leaky) == "" {
				t.Errorf("%s: a planted secret is not found: %s", channel, name)
			}
		}
	}
}

// spy carries requests to an emulated cloud out and takes down every credential that
// passes.
type spy struct {
	*secrets
	next http.RoundTripper
}

// minted are the fields of answers that hold secrets.
var minted = regexp.MustCompile(`"(secret_key|secretAccessKey|access_token|refresh_token)" ?: ?"([^"]+)"`)

func (s *spy) RoundTrip(req *http.Request) (*http.Response, error) {
	if token, ok := strings.CutPrefix(req.Header.Get("Authorization"), "Bearer "); ok {
		s.add("bearer token", token)
	}
	if req.Header.Get("Content-Type") == "application/x-www-form-urlencoded" && req.Body != nil {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		if form, err := url.ParseQuery(string(body)); err == nil {
			s.add("assertion", form.Get("assertion")+form.Get("client_assertion"))
		}
		req = req.Clone(req.Context())
		req.Body = io.NopCloser(bytes.NewReader(body))
	}
	resp, err := s.next.RoundTrip(req)
	if err != nil || !strings.Contains(resp.Header.Get("Content-Type"), "json") {
		return resp, err
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	for _, m := range minted.FindAllStringSubmatch(string(body), -1) {
		s.add(m[1], m[2])
	}
	resp.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), brokenOff{err}))
	return resp, nil
}

// brokenOff ends a body as the original one ended.
type brokenOff struct{ err error }

func (b brokenOff) Read([]byte) (int, error) {
	if b.err == nil {
		return 0, io.EOF
	}
	return 0, b.err
}

// addServiceAccountKey takes down what is secret in a key: its lines of base64.
func (s *secrets) addServiceAccountKey(t *testing.T, key string) {
	t.Helper()
	var parsed struct {
		Credentials struct {
			PrivateKey string `json:"privateKey"`
		} `json:"credentials"`
	}
	if err := json.Unmarshal([]byte(key), &parsed); err != nil {
		t.Fatal("the service account key is no JSON")
	}
	lines := strings.Split(parsed.Credentials.PrivateKey, "\n")
	for _, line := range lines {
		if !strings.HasPrefix(line, "-----") {
			s.add("service account key", line)
		}
	}
}
