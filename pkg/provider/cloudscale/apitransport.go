package cloudscale

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/zuber-storage/zuber/pkg/provider"
)

const (
	// errorBodyLimit is how much of an error's body is looked at.
	errorBodyLimit = 64 << 10
	// answerLimit bounds a good answer; 10,000 objects users stay far below it.
	answerLimit = 64 << 20
	// detailLimit is how much of an error's text goes into ours.
	detailLimit = 300
)

// errToken marks a request that was not sent for want of a usable token.
type errToken struct{ cause error }

func (e *errToken) Error() string { return e.cause.Error() }

// errAlien marks a good answer that is not of the API's form, so that something in
// front of the API may have given it.
type errAlien struct{ status int }

func (e *errAlien) Error() string {
	return fmt.Sprintf("the answer %d is not the API's own; check the API URL", e.status)
}

// actedOn is the API's answer to a change or a deletion that it has carried out.
const actedOn = http.StatusNoContent

// apiTransport puts the token into each request and makes every error answer
// one that the SDK can read with its status.
type apiTransport struct {
	next  http.RoundTripper
	token func() (provider.Secret, error)
	host  string // the only one that may see the token
}

var tokenPattern = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

// RoundTrip implements http.RoundTripper.
func (t *apiTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	token, err := t.readToken(req)
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, &errToken{err}
	}
	out := req.Clone(req.Context())
	out.Header.Set("Authorization", "Bearer "+token)
	resp, err := t.next.RoundTrip(out)
	if err != nil {
		return nil, err
	}
	if acts := req.Method == http.MethodDelete || req.Method == http.MethodPatch; acts && resp.StatusCode < 300 && resp.StatusCode != actedOn {
		// The SDK takes any success for the API's.
		_ = resp.Body.Close()
		return nil, &errAlien{resp.StatusCode}
	}
	if resp.StatusCode < 300 {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, answerLimit), resp.Body}
		return resp, nil
	}
	return normalise(resp, token), nil
}

func (t *apiTransport) readToken(req *http.Request) (string, error) {
	if req.URL.Host != t.host {
		return "", errors.New("the request goes to a host that must not see the API token")
	}
	secret, err := t.token()
	if err != nil {
		return "", fmt.Errorf("the API token cannot be read: %w", err)
	}
	token := strings.TrimSpace(secret.Reveal())
	switch {
	case token == "":
		return "", errors.New("the API token is empty")
	case !tokenPattern.MatchString(token):
		return "", errors.New("the API token holds characters that no token has; is it the right file?")
	}
	return token, nil
}

// alienField marks a normalised error whose body is not of the API's form, so
// that something in front of the API may have written it.
const alienField = "alien"

// normalise replaces the body of an error answer by {"detail": "…"}: the SDK
// loses the status of anything but a flat JSON object of strings.
func normalise(resp *http.Response, token string) *http.Response {
	// What cannot be read to its end is not worth more than its status.
	raw, _ := io.ReadAll(io.LimitReader(resp.Body, errorBodyLimit))
	_ = resp.Body.Close()
	text, own := detailOf(raw, resp.Header.Get("Content-Type"))
	fields := map[string]string{"detail": clip(provider.Redact(strings.ReplaceAll(text, token, "[redacted]")))}
	if !own {
		fields[alienField] = "true"
	}
	// A map of strings always marshals.
	body, _ := json.Marshal(fields)
	resp.Body = io.NopCloser(bytes.NewReader(body))
	resp.ContentLength = int64(len(body))
	resp.Header.Set("Content-Type", "application/json")
	resp.Header.Del("Content-Length")
	return resp
}

// detailOf extracts the text of an error body and reports whether it is a JSON
// object with a detail, as the API says that something does not exist: a
// gateway's "no route" is JSON too. A page for people is reduced to its title.
func detailOf(raw []byte, contentType string) (text string, own bool) {
	var value any
	if json.Unmarshal(raw, &value) == nil {
		fields, _ := value.(map[string]any)
		_, own = fields["detail"].(string)
		return flatten("", value), own
	}
	if kind, _, err := mime.ParseMediaType(contentType); err == nil && kind == "text/plain" {
		return string(raw), false
	}
	if m := titlePattern.FindSubmatch(raw); m != nil {
		return string(m[1]), false
	}
	return "", false
}

var titlePattern = regexp.MustCompile(`(?is)<title[^>]*>(.*?)</title>`)

// flatten writes a JSON value as "field: text; field: text", fields sorted.
func flatten(name string, value any) string {
	var parts []string
	switch v := value.(type) {
	case nil:
		return ""
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			inner := k
			if name != "" {
				inner = name + "." + k
			}
			parts = append(parts, flatten(inner, v[k]))
		}
	case []any:
		for _, item := range v {
			parts = append(parts, flatten(name, item))
		}
	default:
		text := fmt.Sprint(v)
		if name != "" && name != "detail" {
			text = name + ": " + text
		}
		return text
	}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "; ")
}

// clip makes a text one short printable line.
func clip(text string) string {
	text = strings.ToValidUTF8(text, "�")
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f || r >= 0x80 && r <= 0x9f }), " ")
	if len(text) > detailLimit {
		text = strings.ToValidUTF8(text[:detailLimit], "") + "…"
	}
	return text
}
