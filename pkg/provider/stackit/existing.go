package stackit

import (
	"context"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/s3"
)

// A bucket without the mark is somebody else's. The driver puts statements of its
// own into the policy and touches nothing else; they are known by how their Sid
// begins:
//
//	zuber-<driver>-<mode>    denies the groups of that mode everything else
//	zuber-<driver>-access-…  is an entry of the ledger (ledger.go) in base32
//
// The entries cannot be tags there, and a tag would not last either: whoever owns
// the bucket replaces them. The statement of an entry allows the admin what it may
// do anyway, so it can announce a group that has no URN yet.
const (
	sidPrefix = "zuber-"
	sidAccess = "access-"
)

// sidsOf returns what the Sids of the driver's statements begin with.
func sidsOf(driver string) string { return sidPrefix + digest(6, "zuber driver", driver) + "-" }

// sidEncoding needs letters and digits only.
func sidEncoding() *base32.Encoding { return base32.StdEncoding.WithPadding(base32.NoPadding) }

// ownStatements returns the driver's statements for the accesses.
func ownStatements(driver, bucket, adminURN string, entries []entry) ([]string, error) {
	prefix := sidsOf(driver)
	whole := []string{"arn:aws:s3:::" + bucket, "arn:aws:s3:::" + bucket + "/*"}
	byMode := map[provider.Mode][]string{}
	var records []statement
	for _, e := range slices.SortedFunc(slices.Values(entries), func(a, b entry) int { return strings.Compare(a.name, b.name) }) {
		text, err := e.encode(adminURN)
		if err != nil {
			return nil, refuse(provider.ErrUnavailable, "an access cannot be recorded: %s", err)
		}
		records = append(records, statement{
			Sid: prefix + sidAccess + sidEncoding().EncodeToString([]byte(text)), Effect: "Allow",
			Principal: &principal{[]string{adminURN}}, Action: "s3:GetBucketPolicy", Resource: whole[:1],
		})
		if !e.pending() {
			byMode[e.mode] = append(byMode[e.mode], e.urn)
		}
	}
	var statements []statement
	for _, mode := range append(modes(), modeEnded) {
		if len(byMode[mode]) == 0 {
			continue
		}
		s := statement{Sid: prefix + string(mode), Effect: "Deny", Principal: &principal{sorted(byMode[mode])}, Resource: whole}
		if mode == modeEnded {
			s.Action = "s3:*"
		} else {
			s.NotAction = actionsOf(mode)
		}
		statements = append(statements, s)
	}
	var texts []string
	for _, s := range append(statements, records...) {
		// Structs of strings always marshal.
		text, _ := json.Marshal(s)
		texts = append(texts, string(text))
	}
	return texts, nil
}

// recognise reads the ledger of a bucket without the mark, which makes it
// AccessOnly; it does nothing with one of ours. A policy that cannot be read is no
// fault when nothing of the driver's is in it.
func (p *Provider) recognise(ctx context.Context, b *bucket) error {
	if !p.ours(b) {
		if err := p.readExisting(ctx, b); err != nil {
			return err
		}
		if b.malformed != nil && !strings.Contains(b.document, sidsOf(p.config.DriverName)) {
			b.malformed = nil
		}
	}
	return b.malformed
}

// readExisting reads the policy of a bucket without the mark.
func (p *Provider) readExisting(ctx context.Context, b *bucket) error {
	if b.tags[tagManagedBy] != "" {
		return p.othersMark(b)
	}
	doc, err := p.policyOf(ctx, b)
	if err != nil {
		return p.shutOut(err, b, "read")
	}
	prefix := sidsOf(p.config.DriverName)
	b.AccessOnly, b.doubtful, b.document, b.others, b.malformed = true, true, doc, doc, nil
	b.marks = marks{record: record{policy: provider.DeleteIfEmpty}}
	if doc == "" {
		return nil
	}
	l, err := readLayout(doc)
	if err != nil {
		b.malformed = refuse(provider.ErrPrecondition, "its policy cannot be added to: %s; correct it, or remove it", err)
		return nil
	}
	b.others = l.without(func(sid string) bool { return strings.HasPrefix(sid, prefix) })
	for _, s := range l.statements {
		encoded, ok := strings.CutPrefix(s.sid, prefix+sidAccess)
		if !ok {
			continue
		}
		text, err := sidEncoding().DecodeString(encoded)
		var e entry
		if err == nil {
			e, err = decodeEntry(string(text), b.adminURN)
		}
		if err != nil {
			b.malformed = refuse(provider.ErrPrecondition, "the statement %q of its policy is malformed; restore it, or delete the accesses and the statement", clip(s.sid))
			continue
		}
		b.put(e)
	}
	return nil
}

// proved reports whether the entry names a group of its own account, or none that
// exists. The ledger of a doubtful bucket has to be proved before it is acted on:
// with the ID of another account's group in it, that account's keys would be
// handed out or deleted.
func (p *Provider) proved(ctx context.Context, b *bucket, e entry) (bool, error) {
	if !b.doubtful || e.pending() {
		return true, nil
	}
	g, err := p.getGroup(ctx, b.Region, e.id)
	if errors.Is(err, provider.ErrNotFound) {
		return true, nil
	}
	return err == nil && g.name == e.name && g.urn == e.urn, err
}

// shutOut adds the remedy to the error of a call that the policy of somebody
// else's bucket may have forbidden the admin.
func (p *Provider) shutOut(err error, b *bucket, what string) error {
	if !errors.Is(err, provider.ErrPermissionDenied) {
		return err
	}
	return fmt.Errorf("its policy cannot be %s: %w; let its owner give the driver's admin group %s s3:GetBucketPolicy, s3:PutBucketPolicy "+
		"and s3:DeleteBucketPolicy there", what, err, b.adminURN)
}

// changeExisting is change for a bucket without the mark. The policy is read again
// right before each write, and a write of others after ours is taken up; one that
// falls between the two calls is lost, which nothing of the cloud's can prevent.
func (p *Provider) changeExisting(ctx context.Context, b *bucket, f func(*marks)) error {
	for try := 1; ; try++ {
		if try > 2 {
			if err := pause(ctx, p.waits.after(try-2)); err != nil {
				return err
			}
		}
		if err := p.readExisting(ctx, b); err != nil {
			return err
		}
		if b.malformed != nil {
			return b.malformed
		}
		wanted := b.marks
		wanted.entries = slices.Clone(b.entries)
		f(&wanted)
		doc, err := p.documentOf(b, wanted.entries)
		if err != nil {
			return err
		}
		if doc == b.document || samePolicy(doc, b.document) {
			b.marks = wanted
			return nil
		}
		if try > writeTries {
			return refuse(provider.ErrConflict, "another program replaces its policy; find out which and stop it")
		}
		if err := checkExistingSize(doc, b.others); err != nil {
			return err
		}
		err = p.asAdmin(ctx, b.Region, b.regional, func(c *s3.Client) error { return c.SetPolicy(ctx, b.Name, doc) })
		if err != nil {
			return p.shutOut(err, b, "written")
		}
	}
}

// documentOf returns the whole policy of somebody else's bucket with the accesses.
func (p *Provider) documentOf(b *bucket, entries []entry) (string, error) {
	statements, err := ownStatements(p.config.DriverName, b.Name, b.adminURN, entries)
	if err != nil {
		return "", err
	}
	doc, err := spliced(b.others, statements)
	if err != nil {
		return "", refuse(provider.ErrPrecondition, "its policy cannot be added to: %s; correct it, or remove it", err)
	}
	return doc, nil
}

func checkExistingSize(doc, others string) error {
	if len(doc) <= policyLimit {
		return nil
	}
	return refuse(provider.ErrQuotaExceeded, "its policy would have %d bytes, %d of them without the driver's statements, and %d is the limit; "+
		"revoke accesses to it, or shorten its other statements", len(doc), len(others), policyLimit)
}

// roomExisting is room in the policy of somebody else's bucket. Room for the keys
// that each access may come to have is kept free.
func (p *Provider) roomExisting(b *bucket, m marks) error {
	entries := slices.Clone(m.entries)
	for i := range entries {
		entries[i].keys = slices.Repeat([]string{fingerprint("")}, maxKeys)
	}
	doc, err := p.documentOf(b, entries)
	if err != nil {
		return err
	}
	return checkExistingSize(doc, b.others)
}
