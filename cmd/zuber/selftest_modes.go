package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/s3"
)

// settleLimit bounds the wait for what a cloud decides late.
const settleLimit = 30 * time.Second

// probe tells what was found out about the endpoint.
func (r *testRun) probe(ctx context.Context) (string, error) {
	p, ok := r.backend.Provider.(prober)
	if !ok {
		return "nothing to find out here", nil
	}
	v, err := p.ProbePolicies(ctx, r.region, r.settings.EndpointURL)
	if err != nil {
		return "", err
	}
	if !v.Honoured {
		return "", fmt.Errorf("%s does not honour bucket policies: %s; accesses need a BucketAccessClass with credentials = %s, which shares the owner's key",
			v.Endpoint, v.Seen, provider.CredentialsShared)
	}
	return v.Seen, nil
}

// attempt is something that a key may or may not do.
type attempt struct {
	what    string
	allowed bool
	do      func() error
}

// modes gives the bucket a key of each restricted mode that the cloud has and
// tries what it may and what it may not.
func (r *testRun) modes(ctx context.Context) (string, error) {
	var seen []string
	for _, mode := range []provider.Mode{provider.ReadOnly, provider.WriteOnly} {
		if !slices.Contains(r.backend.Provider.Capabilities().Modes, mode) {
			continue
		}
		if err := r.mode(ctx, mode); err != nil {
			return "", fmt.Errorf("mode %s: %w", mode, err)
		}
		seen = append(seen, string(mode))
	}
	if seen == nil {
		return string(provider.ReadWrite) + " alone", nil
	}
	return strings.Join(seen, ", "), r.expectKeys(ctx, smallKey)
}

func (r *testRun) mode(ctx context.Context, mode provider.Mode) error {
	account := r.main.account + "-" + strings.ToLower(string(mode))
	granted, err := r.client.GrantAccess(ctx, r.main.id, account, map[string]string{"accessMode": string(mode)})
	if err != nil {
		return err
	}
	objects, err := r.openObjects(r.main.name, granted)
	if err != nil {
		return err
	}
	const key = "selftest/mode.txt"
	reads := mode == provider.ReadOnly
	for _, a := range []attempt{
		{"list", reads, func() error { _, err := objects.list(ctx); return err }},
		{"read", reads, func() error { _, err := objects.get(ctx, smallKey); return err }},
		{"write", !reads, func() error { return objects.put(ctx, key, r.smallBody()) }},
		{"read what it wrote", false, func() error { _, err := objects.get(ctx, key); return err }},
		{"delete", false, func() error { return objects.delete(ctx, smallKey) }},
	} {
		if a.what == "read what it wrote" && reads {
			continue
		}
		if err := settled(ctx, a); err != nil {
			return err
		}
	}
	if !reads {
		// What one access wrote is for the others to read and delete.
		if err := r.expect(ctx, key, r.smallBody()); err != nil {
			return err
		}
		if err := r.main.objects.delete(ctx, key); err != nil {
			return err
		}
	}
	return r.client.RevokeAccess(ctx, r.main.id, granted.AccountID)
}

// revoked tries the key that was revoked.
func (r *testRun) revoked(ctx context.Context) (string, error) {
	if r.backend.Provider.Capabilities().SharedKeys {
		return "the key is the bucket's own and stays", nil
	}
	o := r.main.objects
	for _, a := range []attempt{
		{"read", false, func() error { _, err := o.get(ctx, smallKey); return err }},
		{"list", false, func() error { _, err := o.list(ctx); return err }},
		{"write", false, func() error { return o.put(ctx, "selftest/revoked.txt", r.smallBody()) }},
		{"delete", false, func() error { return o.delete(ctx, smallKey) }},
	} {
		if err := settled(ctx, a); err != nil {
			return "", fmt.Errorf("with a revoked key: %w", err)
		}
	}
	return "read, list, write, delete", nil
}

// settled repeats an attempt until it ends as it should; a cloud may decide late.
func settled(ctx context.Context, a attempt) error {
	ctx, cancel := context.WithTimeout(ctx, settleLimit)
	defer cancel()
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 4*time.Second) {
		err := a.do()
		switch {
		case a.allowed && err == nil, !a.allowed && (accessDenied(err) || s3.Code(err) == "InvalidAccessKeyId"):
			return nil
		case a.allowed:
			err = fmt.Errorf("%s: %w", a.what, err)
		case err == nil:
			err = fmt.Errorf("it may %s", a.what)
		default:
			err = fmt.Errorf("%s: want AccessDenied, not: %w", a.what, err)
		}
		if !pause(ctx, wait) {
			return err
		}
	}
}
