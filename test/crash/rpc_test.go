package crash

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zuber-storage/zuber/pkg/driver"
	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/s3"
)

// outcome is what an RPC has answered.
type outcome struct {
	bucketID    string
	accountID   string
	credentials provider.Credentials
	refused     bool // it has met what it might
}

// rights says which access may do what in which bucket.
type rights map[[2]string]provider.Mode // by account and bucket

// life is what a cluster knows of its buckets and accesses.
type life struct {
	*world
	bucketIDs  map[string]string
	accountIDs map[string]string
	touched    map[string][]string // buckets by account, of every RPC
	may        rights
	handed     []handed
	full       map[string]bool // buckets with versions
	strangers  map[string]bool // buckets of somebody else
}

// handed is a key that a grant has returned.
type handed struct {
	account string
	provider.Credentials
	shared bool
	gone   bool // a rotation has replaced it
}

func (h handed) key() key { return key{id: h.AccessKeyID, secret: h.SecretAccessKey.Reveal()} }

func newLife(w *world) *life {
	return &life{world: w, bucketIDs: map[string]string{}, accountIDs: map[string]string{}, touched: map[string][]string{}, may: rights{}, full: map[string]bool{}, strangers: map[string]bool{}}
}

// bucketID returns the ID as COSI knows it, or as it can be rebuilt from names.
func (l *life) bucketID(bucket string) string {
	if id := l.bucketIDs[bucket]; id != "" {
		return id
	}
	return strings.Join([]string{backend, l.region(), bucket}, "/")
}

func (l *life) accountID(account string) string {
	if id := l.accountIDs[account]; id != "" {
		return id
	}
	return backend + "/" + account
}

// identityOf returns the ID of an account that has access to something, which a
// grant must not change; else "".
func (l *life) identityOf(account string) string {
	for k := range l.may {
		if k[0] == account {
			return l.accountIDs[account]
		}
	}
	return ""
}

// kind is what an RPC does.
type kind int

const (
	kindOther kind = iota
	kindCreate
	kindGrant
	kindRevoke
	kindDelete
	kindRotate
	kindRetire
)

// rpc is one request of a sidecar.
type rpc struct {
	kind    kind
	what    string
	account string   // "" if it is about buckets alone
	buckets []string // which it is about
	do      func(ctx context.Context, l *life, p *process) (outcome, error)
	// then says what has changed once it is settled.
	then func(l *life, o outcome)
	// rights says what it makes of the rights of all accesses.
	rights func(rights)
	want   error // what it shall be refused with
	// might is what it may be refused with instead of being done.
	might error
}

// withoutOwner replaces the long random part of an ID.
func withoutOwner(id string) string {
	parts := strings.Split(id, "/")
	for i, p := range parts {
		if len(p) == 64 || len(p) == 36 && i == 2 {
			parts[i] = "<identity>"
		}
	}
	return strings.Join(parts, "/")
}

// note remembers what the RPC is about, before it is sent.
func (l *life) note(r rpc) {
	for _, b := range r.buckets {
		if l.bucketIDs[b] == "" {
			l.bucketIDs[b] = ""
		}
		if r.account != "" && !slices.Contains(l.touched[r.account], b) {
			l.touched[r.account] = append(l.touched[r.account], b)
		}
	}
}

// take remembers what a settled RPC has changed.
func (l *life) take(r rpc, o outcome) {
	if r.want != nil || o.refused {
		return
	}
	if r.then != nil {
		r.then(l, o)
	}
	if r.rights != nil {
		r.rights(l.may)
	}
}

// after returns the rights that the RPC leads to.
func (l *life) after(r rpc) rights {
	next := maps.Clone(l.may)
	if r.rights != nil && r.want == nil {
		r.rights(next)
	}
	return next
}

// parameters makes a map of "key=value".
func parameters(pairs []string) map[string]string {
	m := map[string]string{}
	for _, p := range pairs {
		k, v, _ := strings.Cut(p, "=")
		m[k] = v
	}
	return m
}

func create(bucket string, class ...string) rpc {
	return rpc{
		kind: kindCreate, what: "create " + bucket, buckets: []string{bucket},
		do: func(ctx context.Context, l *life, p *process) (outcome, error) {
			m := parameters(class)
			m["region"] = l.region()
			b, err := p.CreateBucket(ctx, bucket, m)
			return outcome{bucketID: b.ID}, err
		},
		then: func(l *life, o outcome) { l.bucketIDs[bucket] = o.bucketID },
	}
}

// createFor makes the bucket of the claim of that name.
func createFor(namespace, bucket string, class ...string) rpc {
	r := create(bucket)
	r.what = "create " + bucket + " for " + namespace
	r.do = func(ctx context.Context, l *life, p *process) (outcome, error) {
		params := parameters(class)
		params["region"], params["bucketNameFrom"] = l.region(), "claim"
		b, err := p.CreateBucket(ctx, namespace+"."+bucket, params)
		return outcome{bucketID: b.ID}, err
	}
	return r
}

// unmade begins with the bucket of a claim, and gets no further than its record,
// because nobody answers at the endpoint of its class.
func unmade(namespace, bucket string, class ...string) rpc {
	r := createFor(namespace, bucket, append(class, "endpointURL=http://127.0.0.1:1")...)
	r.want = provider.ErrUnavailable
	return r
}

// existing reads a bucket by the ID that a person writes.
func existing(bucket string, class ...string) rpc {
	return rpc{
		what: "existing " + bucket, buckets: []string{bucket},
		do: func(ctx context.Context, l *life, p *process) (outcome, error) {
			b, err := p.GetExistingBucket(ctx, l.region()+"/"+bucket, parameters(class))
			return outcome{bucketID: b.ID}, err
		},
		then: func(l *life, o outcome) { l.bucketIDs[bucket] = o.bucketID },
	}
}

func grant(account string, mode provider.Mode, buckets ...string) rpc {
	return grantWith(account, mode, buckets, "accessMode="+string(mode))
}

func grantWith(account string, mode provider.Mode, buckets []string, class ...string) rpc {
	m := parameters(class)
	return rpc{
		kind: kindGrant, what: fmt.Sprintf("grant %s on %s", mode, strings.Join(buckets, ", ")), account: account, buckets: buckets,
		do: func(ctx context.Context, l *life, p *process) (outcome, error) {
			req := driver.GrantRequest{Account: account, Parameters: m}
			for _, b := range buckets {
				req.Buckets = append(req.Buckets, driver.GrantBucket{ID: l.bucketID(b)})
			}
			was := l.identityOf(account)
			g, err := p.GrantAccess(ctx, req)
			if err == nil && was != "" && was != g.AccountID {
				err = fmt.Errorf("the account is called %s, and was %s before", g.AccountID, was)
			}
			return outcome{accountID: g.AccountID, credentials: g.Credentials}, err
		},
		then: func(l *life, o outcome) {
			l.accountIDs[account] = o.accountID
			l.handed = append(l.handed, handed{account: account, Credentials: o.credentials, shared: m["credentials"] == "shared"})
		},
		rights: func(r rights) {
			for _, b := range buckets {
				r[[2]string{account, b}] = mode
			}
		},
	}
}

func revoke(account string, buckets ...string) rpc {
	return rpc{
		kind: kindRevoke, what: "revoke", account: account, buckets: buckets,
		do: func(ctx context.Context, l *life, p *process) (outcome, error) {
			req := driver.RevokeRequest{AccountID: l.accountID(account)}
			for _, b := range buckets {
				req.BucketIDs = append(req.BucketIDs, l.bucketID(b))
			}
			return outcome{}, p.RevokeAccess(ctx, req)
		},
		rights: func(r rights) {
			for _, b := range buckets {
				delete(r, [2]string{account, b})
			}
		},
	}
}

func remove(bucket string, class ...string) rpc {
	return rpc{
		kind: kindDelete, what: "delete " + bucket, buckets: []string{bucket},
		do: func(ctx context.Context, l *life, p *process) (outcome, error) {
			return outcome{}, p.DeleteBucket(ctx, l.bucketID(bucket), parameters(class))
		},
		rights: func(r rights) {
			maps.DeleteFunc(r, func(k [2]string, _ provider.Mode) bool { return k[1] == bucket })
		},
	}
}

// content fills a bucket with objects, old versions, a delete marker and an
// unfinished upload.
func content(bucket string) rpc {
	return rpc{
		what: "content of " + bucket, buckets: []string{bucket},
		do: func(ctx context.Context, l *life, _ *process) (outcome, error) {
			c, err := l.admin(bucket)
			if err != nil {
				return outcome{}, err
			}
			return outcome{}, errors.Join(
				c.PutObject(ctx, bucket, "one", []byte("one")), c.SetVersioning(ctx, bucket, true),
				c.PutObject(ctx, bucket, "one", []byte("more")), c.PutObject(ctx, bucket, "two", []byte("two")),
				c.DeleteObject(ctx, bucket, "two"), upload(ctx, c, bucket))
		},
		then: func(l *life, _ outcome) { l.full[bucket] = true },
	}
}

func upload(ctx context.Context, c *s3.Client, bucket string) error {
	_, err := c.StartUpload(ctx, bucket, "three")
	return err
}

// taken makes the bucket "one" in somebody else's project.
func taken() rpc {
	const bucket = "one"
	return rpc{
		what: "somebody else's " + bucket,
		do: func(ctx context.Context, l *life, _ *process) (outcome, error) {
			s, err := l.stranger(l.transport)
			if err != nil {
				return outcome{}, err
			}
			_, err = s.CreateBucket(ctx, provider.BucketSpec{Name: bucket, Region: l.region()})
			return outcome{}, err
		},
		then: func(l *life, _ outcome) { l.strangers[bucket] = true },
	}
}

// giveBack deletes it again.
func (l *life) giveBack(ctx context.Context, bucket string) error {
	s, err := l.stranger(l.transport)
	if err != nil {
		return err
	}
	return s.DeleteBucket(ctx, provider.BucketRef{Name: bucket, Region: l.region()}, provider.DeleteOptions{})
}

// ownBucket lets an access make a bucket for itself with its key.
func ownBucket(account, bucket string) rpc {
	return rpc{
		what: "a bucket of its own",
		do: func(ctx context.Context, l *life, _ *process) (outcome, error) {
			for _, h := range l.handed {
				if h.account == account {
					c, err := l.client(h.key())
					if err != nil {
						return outcome{}, err
					}
					return outcome{}, errors.Join(c.CreateBucket(ctx, bucket), c.PutObject(ctx, bucket, "k", []byte("data")))
				}
			}
			return outcome{}, fmt.Errorf("no key of %s was handed out", account)
		},
	}
}
