package cosi

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"google.golang.org/grpc/codes"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// hostile are names at the limits, and what looks like something else.
func hostile() []string {
	return []string{
		"", "ab", "abc", strings.Repeat("a", 63), strings.Repeat("a", 64), strings.Repeat("a", 253), strings.Repeat("a", 254), strings.Repeat("a", 2048), strings.Repeat("a", 2049),
		"bücket", "日本語", "\U0001F4E6", "e\u0301", "\u202eabc", "a%2fb", "%", "%00", "a/b", "/", "//", "../..", ".", "..", "a..b", "a.-b", "a\nb", "a\r\nb", "a\x00b", "\x1b[2J",
		"192.168.1.1", "::1", "1.2.3", "a b", "a\tb", "-a", "a-", "A", `"`, "'", "{}", "$(id)", "<a>", "?x=1", "#a", "arn:aws:s3:::a", "theirs-bucket",
	}
}

// wellFormed is what may stand in an ID.
var wellFormed = regexp.MustCompile(`^[a-zA-Z0-9._-]+$`)

// isPart reports whether a value may be a part of an ID, and so an account's name.
func isPart(v string) bool { return len(v) <= 253 && areParts(v) && !strings.Contains(v, "/") }

// areParts reports whether a value may be one or more parts of an ID.
func areParts(v string) bool {
	return len(v) < 2048 && !slices.ContainsFunc(strings.Split(v, "/"), func(p string) bool { return p == "." || p == ".." || !wellFormed.MatchString(p) })
}

// loopback is a way to clouds on this machine and nowhere else.
type loopback struct{ http.RoundTripper }

func (l loopback) RoundTrip(req *http.Request) (*http.Response, error) {
	if host, _, err := net.SplitHostPort(req.URL.Host); err != nil || host != "127.0.0.1" {
		return nil, errors.New("the host is not this one")
	}
	return l.RoundTripper.RoundTrip(req)
}

// crowded is a cloud with a bucket that another driver made, reached by this one.
func crowded(t testing.TB, backend string) (*site, *Client) {
	t.Helper()
	s := newSite(t, backend)
	base := &http.Transport{}
	t.Cleanup(base.CloseIdleConnections)
	s.transport = loopback{base}
	spec := provider.BucketSpec{Name: "theirs-bucket", Region: s.region}
	if _, err := s.as("other.example.dev").CreateBucket(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	o, _ := options(t, s.driver(s.adapter()))
	c := inProcess(t, o)
	id, err := c.CreateBucket(t.Context(), "first-bucket", s.params()) // with what a driver makes once
	if err == nil {
		err = c.DeleteBucket(t.Context(), id, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s, c
}

// state is all that there is in the cloud.
func (s *site) state() string {
	if s.backend == "cloudscale" {
		return fmt.Sprintf("%+v %+v", s.Cloudscale().Users(), s.Cloudscale().Buckets())
	}
	return fmt.Sprintf("%+v %+v", s.Stackit().Groups(), s.Stackit().Buckets())
}

// judged fails the test unless a failure is one of the table, and in words for people
// without a secret. It returns the code.
func (s *site) judged(what string, err error, v APIVersion) codes.Code {
	s.t.Helper()
	if err == nil {
		return codes.OK
	}
	var e *RPCError
	if !errors.As(err, &e) {
		s.t.Errorf("%s: the client refuses: %v", what, err)
		return codes.Unknown
	}
	rows := statusTable()
	i := slices.IndexFunc(rows, func(r statusRow) bool { return r.code(v).String() == e.Code })
	if i < 0 {
		s.t.Errorf("%s: %v is in no table", what, err)
		return codes.Unknown
	}
	if len(e.Message) > maxMessage || strings.ContainsFunc(e.Message, unicode.IsControl) {
		s.t.Errorf("%s: %d bytes: %q", what, len(e.Message), e.Message)
	}
	key := s.Stackit().ServiceAccountKey()
	for _, secret := range []string{s.Cloudscale().Token, key[len(key)/2 : len(key)/2+40]} {
		if strings.Contains(e.Message, secret) {
			s.t.Errorf("%s: a secret is shown", what)
		}
	}
	return rows[i].code(v)
}

// hostileField is a field of a request.
type hostileField struct {
	request string
	named   string // what the refusal calls it
	send    func(value string) error
	// fits says which values are good ones; what then becomes of them is up to the
	// cloud.
	fits func(value string) bool
}

func never(string) bool { return false }

// hostileFields are all fields of all requests that hold a string.
func (s *site) hostileFields(c *Client, id string) (all []hostileField) {
	ctx := s.t.Context()
	add := func(request, named string, fits func(string) bool, send func(string) error) {
		all = append(all, hostileField{request, named, send, fits})
	}
	with := func(params map[string]string, key, value string) map[string]string {
		out := map[string]string{key: value}
		for k, v := range params {
			if k != key {
				out[k] = v
			}
		}
		return out
	}
	add("create", "bucket name", func(v string) bool {
		return v == "abc" || v == strings.Repeat("a", 63) || v == "theirs-bucket" || v == "1.2.3"
	}, func(v string) error {
		made, err := c.CreateBucket(ctx, v, s.params())
		if err != nil {
			return err
		}
		return c.DeleteBucket(ctx, made, s.params())
	})
	for _, key := range []string{"region", "backend", "bucketDeletionPolicy", "s3PathStyle", "sharedCredentials", "adoptExisting", "endpointURL"} {
		add("create", key, never, func(v string) error {
			_, err := c.CreateBucket(ctx, "new-bucket", with(s.params(), key, v))
			return err
		})
		add("delete", key, never, func(v string) error { return c.DeleteBucket(ctx, id, with(nil, key, v)) })
		if s.speaks(c) == V1alpha2 {
			add("existing", key, never, func(v string) error { _, err := c.ExistingBucket(ctx, id, with(nil, key, v)); return err })
		}
	}
	for _, key := range []string{"credentials", "ownBuckets", "adoptExisting"} {
		add("grant", key, never, func(v string) error { _, err := c.GrantAccess(ctx, id, "ba-1", with(nil, key, v)); return err })
	}
	grant := func(id, account string, params map[string]string) error {
		g, err := c.GrantAccess(ctx, id, account, params)
		if err != nil {
			return err
		}
		return c.RevokeAccess(ctx, id, g.AccountID)
	}
	add("grant", "mode", func(v string) bool { return v == "" && s.speaks(c) == V1alpha2 }, func(v string) error {
		return grant(id, "ba-1", map[string]string{"accessMode": v})
	})
	add("create", "parameters", never, func(v string) error {
		_, err := c.CreateBucket(ctx, "new-bucket", with(s.params(), v, "x"))
		return err
	})
	add("grant", "parameters", never, func(v string) error { _, err := c.GrantAccess(ctx, id, "ba-1", map[string]string{v: "x"}); return err })
	add("grant", "account name", isPart, func(v string) error { return grant(id, v, nil) })
	// An empty account ID is an access that nobody ever got.
	add("revoke", "account ID", func(v string) bool { return v == "" }, func(v string) error { return c.RevokeAccess(ctx, id, v) })
	add("revoke", "account ID", areParts, func(v string) error { return c.RevokeAccess(ctx, id, s.backend+"/"+v) })
	for prefix, fits := range map[string]func(string) bool{"": never, s.backend + "/": never, s.backend + "/" + s.region + "/": areParts} {
		add("delete", "bucket", fits, func(v string) error { return c.DeleteBucket(ctx, prefix+v, nil) })
		add("grant", "bucket", fits, func(v string) error { return grant(prefix+v, "ba-1", nil) })
		add("revoke", "bucket", fits, func(v string) error { return c.RevokeAccess(ctx, prefix+v, s.backend+"/ba-1") })
		if s.speaks(c) == V1alpha2 {
			add("existing", "bucket", fits, func(v string) error { _, err := c.ExistingBucket(ctx, prefix+v, nil); return err })
		}
	}
	return all
}

// speaks is the version of a client.
func (*site) speaks(c *Client) APIVersion {
	if _, ok := c.rpcs.(*v1alpha2RPCs); ok {
		return V1alpha2
	}
	return V1alpha1
}

// TestHostileFields sends hostile values in every field of every request of both
// versions: what does not fit is refused for good, in words that name the field, and
// nothing in the cloud is changed by any of them.
func TestHostileFields(t *testing.T) {
	for _, backend := range backends() {
		t.Run(backend, func(t *testing.T) {
			s, c := crowded(t, backend)
			id, err := c.CreateBucket(t.Context(), "our-bucket", s.params())
			if err != nil {
				t.Fatal(err)
			}
			before := s.state()
			for _, version := range []APIVersion{V1alpha1, V1alpha2} {
				for _, f := range s.hostileFields(c.Speaking(version), id) {
					for _, v := range hostile() {
						what := fmt.Sprintf("%s, %s, %s = %.80q", version, f.request, f.named, v)
						err := f.send(v)
						code := s.judged(what, err, version)
						switch {
						case f.fits(v):
						case code != codes.InvalidArgument:
							t.Errorf("%s: %v, %v", what, code, err)
						case !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(f.named)):
							t.Errorf("%s: the field is not named: %v", what, err)
						}
					}
				}
				if now := s.state(); now != before {
					t.Fatalf("%s: the cloud was\n%s\nand is\n%s", version, before, now)
				}
			}
		})
	}
}
