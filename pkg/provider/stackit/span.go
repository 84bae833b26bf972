package stackit

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// An access may span buckets. Each of their ledgers then names all of them, by
// prints, so that whoever works on one finds the others with one look at the list
// of buckets. A ledger may name a bucket that the access no longer has; it never
// misses one, because those that there were learn of a new one first.

const (
	// printSize is the length of a print, 24 bits. It needs to tell apart the few
	// buckets of one access only; a stranger of the same print costs a look.
	printSize = 4
	// readersLimit is how many buckets are read at a time.
	readersLimit = 8
)

// printOf identifies a bucket among those of an access.
func printOf(bucket string) string {
	sum := sha256.Sum256([]byte("zuber span\x00" + bucket))
	return base64.RawURLEncoding.EncodeToString(sum[:])[:printSize]
}

// spanOf returns what the ledgers say of an access to these buckets that has
// already been recorded with a span; nil when it has but one bucket.
func spanOf(recorded []string, buckets []string) []string {
	span := slices.Clone(recorded)
	for _, b := range buckets {
		span = append(span, printOf(b))
	}
	slices.Sort(span)
	if span = slices.Compact(span); len(span) == 1 && len(buckets) == 1 {
		return nil
	}
	return span
}

// beyond returns the part of the span that the buckets do not account for.
func beyond(span []string, buckets []string) []string {
	return slices.DeleteFunc(slices.Clone(span), func(mark string) bool {
		return slices.ContainsFunc(buckets, func(b string) bool { return printOf(b) == mark })
	})
}

// search says which buckets may hold an access.
type search struct {
	region string
	names  []string // of groups
	apart  []string // buckets that are known already
	prints []string // of the buckets to look at
	all    bool     // look at every bucket of the region, a call or two each
}

// holders reads the buckets, ordered by name, in whose ledger one of the names
// stands, be it as ended.
func (p *Provider) holders(ctx context.Context, s search) ([]*bucket, error) {
	if len(s.prints) == 0 && !s.all {
		return nil, nil
	}
	list, err := p.listBuckets(ctx, s.region)
	if errors.Is(err, provider.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	names := slices.AppendSeq(p.behind(s.region, s.prints), maps.Keys(list))
	slices.Sort(names)
	names = slices.DeleteFunc(slices.Compact(names), func(name string) bool {
		return slices.Contains(s.apart, name) || !s.all && !slices.Contains(s.prints, printOf(name))
	})
	read := make([]*bucket, len(names))
	readers, readCtx := errgroup.WithContext(ctx)
	readers.SetLimit(readersLimit)
	for i, name := range names {
		readers.Go(func() error {
			b, err := p.readListed(readCtx, provider.BucketRef{Name: name, Region: s.region}, list)
			if err == nil {
				err = p.recognise(readCtx, b)
			}
			switch {
			case errors.Is(err, provider.ErrNotFound):
				return nil // deleted meanwhile
			case errors.Is(err, provider.ErrPermissionDenied) && !slices.Contains(s.prints, printOf(name)):
				return nil // somebody else's; where the access is known to be, its key may be in use
			case b != nil && b.malformed != nil && !slices.Contains(s.prints, printOf(name)) && !b.mentions(s.names):
				return nil // what is malformed is the record of others
			case err != nil:
				return fmt.Errorf("bucket %q: %w", name, err)
			}
			read[i] = b
			return nil
		})
	}
	if err := readers.Wait(); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(read, func(b *bucket) bool {
		return b == nil || !slices.ContainsFunc(b.entries, func(e entry) bool { return slices.Contains(s.names, e.name) })
	}), nil
}

// mentions reports whether a record of the bucket that cannot be read may be that of
// a group of one of the names.
func (b *bucket) mentions(names []string) bool {
	if b.AccessOnly {
		return true
	}
	return slices.ContainsFunc(names, func(name string) bool {
		packed, err := packHex(name)
		return err != nil || slices.ContainsFunc(slices.Collect(maps.Values(b.tags)), func(value string) bool { return strings.Contains(value, packed) })
	})
}

// readListed reads a bucket, which the list may not show yet.
func (p *Provider) readListed(ctx context.Context, ref provider.BucketRef, list map[string]endpoint) (*bucket, error) {
	if e, ok := list[ref.Name]; ok {
		return p.read(ctx, ref, e)
	}
	return p.find(ctx, ref)
}

// behind returns the buckets with the prints that this process has granted access
// to: the list of buckets may lag their making by as little as a revocation of
// another bucket follows the grant.
func (p *Provider) behind(region string, prints []string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var names []string
	for _, mark := range prints {
		if name, ok := p.printed[region+"/"+mark]; ok {
			names = append(names, name)
		}
	}
	return names
}

func (p *Provider) rememberPrints(region string, buckets []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range buckets {
		p.printed[region+"/"+printOf(b)] = b
	}
}

// moreLocks is the error of work that found buckets it needs the locks of too.
type moreLocks struct{ keys []string }

func (e *moreLocks) Error() string { return fmt.Sprintf("the locks of %v are needed too", e.keys) }

// underLocks does the work with the locks of the keys held, which it is told,
// and once more with more of them when it finds that it needs those.
func (p *Provider) underLocks(ctx context.Context, keys []string, work func(held []string) error) error {
	for {
		unlock, err := p.locks.lock(ctx, keys...)
		if err != nil {
			return err
		}
		err = work(keys)
		unlock()
		var more *moreLocks
		if !errors.As(err, &more) {
			return err
		}
		keys = append(slices.Clone(keys), more.keys...)
	}
}

// lockAlso returns a moreLocks unless the locks of the buckets are held.
func lockAlso(held []string, buckets []*bucket) error {
	var missing []string
	for _, b := range buckets {
		if key := bucketKey(b.BucketRef); !slices.Contains(held, key) {
			missing = append(missing, key)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return &moreLocks{missing}
}

// accountKey is the lock of an account. It sorts behind those of buckets.
func accountKey(name string) string { return "~" + name }

// bucketNamesOf returns the names of the buckets.
func bucketNamesOf(buckets []*bucket) []string {
	names := make([]string, 0, len(buckets))
	for _, b := range buckets {
		names = append(names, b.Name)
	}
	return names
}
