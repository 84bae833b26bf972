package driver

import (
	"slices"
	"sync"
	"time"
)

// liveAccesses remembers which accounts this process has granted and not yet
// revoked, per bucket. It exists to put COSI's deletions in order, not to
// decide who has access: losing it costs a grace period, nothing else.
type liveAccesses struct {
	mu      sync.Mutex
	buckets map[string]*bucketAccesses
}

type bucketAccesses struct {
	accounts     map[string]struct{}
	firstDeleted time.Time // when DeleteBucket was first asked for; zero if it was not
}

func newLiveAccesses() *liveAccesses { return &liveAccesses{buckets: map[string]*bucketAccesses{}} }

func (l *liveAccesses) granted(bucket, account string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.buckets[bucket]
	if b == nil {
		b = &bucketAccesses{accounts: map[string]struct{}{}}
		l.buckets[bucket] = b
	}
	b.accounts[account] = struct{}{}
}

func (l *liveAccesses) revoked(bucket, account string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.buckets[bucket]
	if b == nil {
		return
	}
	delete(b.accounts, account)
	if len(b.accounts) == 0 {
		delete(l.buckets, bucket)
	}
}

// deleting records that the bucket shall go, and returns the accounts that are
// still live, sorted, and since when its deletion has been asked for.
func (l *liveAccesses) deleting(bucket string, now time.Time) (accounts []string, since time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.buckets[bucket]
	if b == nil {
		return nil, now
	}
	if b.firstDeleted.IsZero() {
		b.firstDeleted = now
	}
	for a := range b.accounts {
		accounts = append(accounts, a)
	}
	slices.Sort(accounts)
	return accounts, b.firstDeleted
}

func (l *liveAccesses) deleted(bucket string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.buckets, bucket)
}
