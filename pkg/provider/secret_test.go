package provider_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
	"sigs.k8s.io/yaml"

	"github.com/zuber-storage/zuber/pkg/provider"
)

type holder struct {
	Name string
	Key  provider.Secret
	Ptr  *provider.Secret
	List []provider.Secret
	Map  map[string]provider.Secret
}

// shows returns every way a value may get out by accident.
func shows(t testing.TB, value string) map[string]string {
	t.Helper()
	s := provider.NewSecret(value)
	h := holder{"n", s, &s, []provider.Secret{s}, map[string]provider.Secret{"k": s}}
	out := map[string]string{}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%T", "%p", "%10.2f", "% x", "%U", "%t", "%c", "%w"} {
		out["Secret "+verb] = fmt.Sprintf(verb, s)
		out["&Secret "+verb] = fmt.Sprintf(verb, &s)
		out["holder "+verb] = fmt.Sprintf(verb, h)
		out["&holder "+verb] = fmt.Sprintf(verb, &h)
	}
	out["print"] = fmt.Sprint(s, h)
	out["error"] = fmt.Errorf("%w: %v", provider.ErrUnavailable, h).Error()
	for name, encode := range map[string]func(any) ([]byte, error){
		"json": json.Marshal, "yaml": yaml.Marshal, "xml": func(any) ([]byte, error) { return xml.Marshal(s) },
	} {
		b, err := encode(h)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out[name] = string(b)
	}
	var buf bytes.Buffer
	slog.New(slog.NewJSONHandler(&buf, nil)).Info("m", "secret", s, "holder", h)
	slog.New(slog.NewTextHandler(&buf, nil)).Info("m", "secret", s, "holder", h)
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&buf)))
	logger.Info("m", "secret", s, "holder", h, "pointer", &s)
	klog.LoggerWithValues(logger, "secret", s).Info("m")
	out["logs"] = buf.String()
	return out
}

func TestSecretShowsNothing(t *testing.T) {
	const value = "s3cr3tKeyValue"
	for how, text := range shows(t, value) {
		for _, form := range []string{value, fmt.Sprintf("%x", value), fmt.Sprintf("%X", value), fmt.Sprintf("% x", value)} {
			if strings.Contains(text, form) {
				t.Errorf("%s shows the secret", how)
			}
		}
	}
	if s := provider.NewSecret(value); s.Reveal() != value || s.Empty() {
		t.Error("Reveal does not return the value")
	}
	if !provider.NewSecret("").Empty() || !(provider.Secret{}).Empty() {
		t.Error("an empty secret is not Empty")
	}
	if s := provider.NewSecret(value); s != provider.NewSecret(strings.Clone(value)) {
		t.Error("secrets do not compare by value")
	}
}

// TestRedact: what tokens, keys and assertions look like goes, and what people need to
// find their things by stays.
func TestRedact(t *testing.T) {
	for text, want := range map[string]string{
		"token JrKD0fUKsqNCBLIyh4zo2s8OZy1XM2v5 is bad":                     "token [redacted] is bad",
		`Authorization: Bearer eyJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJ4In0.c2lnbg`: "Authorization: Bearer [redacted]",
		"secret=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY1":                  "[redacted]",
		"bucket-0f7a6c1e-1b7e-4d2c-9a51-2f6f8f1f4c10 of ba-0f7a6c1e-1b7e":   "",
		"key AKIAIOSFODNN7EXAMPLE":                                          "",
		"BucketAlreadyOwnedByYou, InvalidAccessKeyId":                       "",
		"bücket " + strings.Repeat("a", 300):                                "",
	} {
		if want == "" {
			want = text
		}
		if got := provider.Redact(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

func FuzzSecret(f *testing.F) {
	f.Add("abcABC+123456789012345678901234567890123")
	f.Fuzz(func(t *testing.T, value string) {
		s := provider.NewSecret(value)
		if s.Reveal() != value || s.Empty() != (value == "") || provider.NewSecret(strings.Clone(value)) != s {
			t.Errorf("%q does not survive", value)
		}
		for _, verb := range []string{"%v", "%#v", "%s", "%q", "%x"} {
			if got := fmt.Sprintf(verb, s); got != "[redacted]" {
				t.Errorf("%s shows %q", verb, got)
			}
		}
	})
}

func TestSentinelsAreDistinct(t *testing.T) {
	seen := map[string]bool{}
	for _, err := range provider.Sentinels() {
		if seen[err.Error()] {
			t.Errorf("%q stands twice", err)
		}
		seen[err.Error()] = true
	}
}
