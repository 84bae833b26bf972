package crash

import (
	"context"

	"github.com/zuber-storage/zuber/pkg/driver"
)

// rotate gives the access another key, and keeps the last one that was handed out
// or none.
func rotate(account string, keep bool, buckets ...string) rpc {
	return rpc{
		kind: kindRotate, what: "rotate", account: account, buckets: buckets,
		do: func(ctx context.Context, l *life, p *process) (outcome, error) {
			req := l.rotation(account, buckets)
			if !keep {
				req.KeepAccessKeyID = ""
			}
			c, err := p.RotateAccess(ctx, req)
			return outcome{credentials: c}, err
		},
		then: func(l *life, o outcome) {
			kept := ""
			if keep {
				kept = l.last(account)
			}
			l.retired(account, kept)
			l.handed = append(l.handed, handed{account: account, Credentials: o.credentials})
		},
	}
}

// retire ends all keys of the access but the last one that was handed out.
func retire(account string, buckets ...string) rpc {
	return rpc{
		kind: kindRetire, what: "retire", account: account, buckets: buckets,
		do: func(ctx context.Context, l *life, p *process) (outcome, error) {
			return outcome{}, p.RetireKeys(ctx, l.rotation(account, buckets))
		},
		then: func(l *life, _ outcome) { l.retired(account, l.last(account)) },
	}
}

// rotation names the access, and the last key of it that was handed out.
func (l *life) rotation(account string, buckets []string) driver.RotateRequest {
	req := driver.RotateRequest{AccountID: l.accountID(account), KeepAccessKeyID: l.last(account)}
	for _, b := range buckets {
		req.BucketIDs = append(req.BucketIDs, l.bucketID(b))
	}
	return req
}

// retired notes that of the keys of the account only the one to keep still works.
func (l *life) retired(account, keep string) {
	for i, h := range l.handed {
		l.handed[i].gone = h.gone || h.account == account && h.AccessKeyID != keep
	}
}

// last returns the ID of the key that the account was handed last.
func (l *life) last(account string) (id string) {
	for _, h := range l.handed {
		if h.account == account {
			id = h.AccessKeyID
		}
	}
	return id
}
