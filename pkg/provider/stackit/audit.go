package stackit

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/provider/transport"
)

var _ provider.Auditor = (*Provider)(nil)

// fault is a finding and what puts it right; nil if nothing can.
type fault struct {
	provider.Finding
	fix func(context.Context) error
}

// Audit implements provider.Auditor. STACKIT has no public access block, and a bucket
// is looked for in the region that lists it, so that no region can be wrong.
func (p *Provider) Audit(ctx context.Context) iter.Seq2[provider.Finding, error] {
	return func(yield func(provider.Finding, error) bool) {
		for _, region := range p.config.Regions {
			err := p.auditRegion(ctx, region, func(f provider.Finding) bool { return yield(f, nil) })
			if errors.Is(err, errStopped) {
				return
			}
			if err != nil {
				yield(provider.Finding{}, fmt.Errorf("audit of region %q: %w", region, err))
				return
			}
		}
	}
}

func (p *Provider) auditRegion(ctx context.Context, region string, yield func(provider.Finding) bool) error {
	if err := transport.Rest(ctx); err != nil {
		return err
	}
	if _, err := p.adminGroup(ctx, region, false); errors.Is(err, provider.ErrNotFound) {
		return nil // without an admin group no bucket was ever marked
	} else if err != nil {
		return err
	}
	names, err := p.listBuckets(ctx, region)
	if errors.Is(err, provider.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	var first error // of a bucket that could not be looked at
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if err := transport.Rest(ctx); err != nil {
			return err
		}
		faults, err := p.inspect(ctx, provider.BucketRef{Name: name, Region: region}, nil)
		switch {
		case errors.Is(err, provider.ErrNotFound), errors.Is(err, provider.ErrConflict):
			continue // somebody deletes or changes it at this moment
		case err != nil && first == nil:
			first = fmt.Errorf("bucket %q: %w", name, err)
		}
		for _, f := range faults {
			if !yield(f.Finding) {
				return errStopped
			}
		}
	}
	return first
}

// Repair implements provider.Auditor.
func (p *Provider) Repair(ctx context.Context, f provider.Finding) error {
	ref := provider.BucketRef{Name: f.Bucket, Region: f.Region}
	err := p.checkRef(ref)
	if err == nil {
		_, err = p.inspect(ctx, ref, func(found fault) error {
			switch {
			case found.Drift != f.Drift || found.ID != f.ID:
				return nil
			case found.fix == nil:
				return refuse(provider.ErrUnsupported, "%s: %s", found.Problem, found.Remedy)
			}
			return found.fix(ctx)
		})
	}
	if err != nil {
		return fmt.Errorf("repair %s of bucket %q in region %q: %w", f.Drift, f.Bucket, f.Region, err)
	}
	return nil
}

// inspect looks at one bucket under its lock and returns what is wrong with it, or
// hands it to act, one after the other.
func (p *Provider) inspect(ctx context.Context, ref provider.BucketRef, act func(fault) error) ([]fault, error) {
	unlock, err := p.locks.lock(ctx, bucketKey(ref))
	if err != nil {
		return nil, err
	}
	defer unlock()
	faults, err := p.faults(ctx, ref)
	if err != nil || act == nil {
		return faults, err
	}
	for _, f := range faults {
		if err := act(f); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// likelyOurs matches the names that COSI gives to buckets, which end in a UID.
var likelyOurs = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

func (p *Provider) faults(ctx context.Context, ref provider.BucketRef) ([]fault, error) {
	whole := provider.Resource{Kind: provider.KindBucket, ID: ref.Name, Bucket: ref.Name, Region: ref.Region}
	b, err := p.find(ctx, ref)
	switch {
	case errors.Is(err, provider.ErrNotFound):
		return nil, nil
	case errors.Is(err, provider.ErrPermissionDenied) && likelyOurs.MatchString(ref.Name):
		// Nobody can read whose it is; by its name COSI has made it.
		return []fault{finding(provider.DriftAdmin, whole, "its policy does not exempt the driver's admin group, so that the driver can do nothing with it",
			"if it is this driver's, only the cloud's support can remove the policy")}, nil
	case errors.Is(err, provider.ErrPermissionDenied):
		return nil, nil
	case err != nil:
		return nil, err
	case !p.ours(b):
		return p.faultsOfTheirs(ctx, b, whole)
	}
	if garbled := said(b.malformed); garbled != "" {
		return []fault{finding(provider.DriftTags, whole, garbled, "restore the tag, or delete the accesses and the tag")}, nil
	}
	return p.faultsOf(ctx, b, whole)
}

func finding(drift provider.Drift, r provider.Resource, problem, remedy string) fault {
	return fault{Finding: provider.Finding{Drift: drift, Resource: r, Problem: problem, Remedy: remedy}}
}

// said is the text of a fault that is a finding, "" for none.
func said(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

const repairRemedy = "run zuber audit --repair"

// by makes a fault repairable.
func (f fault) by(fix func(context.Context) error) fault {
	f.Repairable, f.fix = true, fix
	return f
}

// faultsOfTheirs looks at the driver's statements in a bucket of somebody else, and
// at a bucket that has lost the mark but not the policy.
func (p *Provider) faultsOfTheirs(ctx context.Context, b *bucket, whole provider.Resource) ([]fault, error) {
	untouched := untagged(b.tags)
	err := p.readExisting(ctx, b)
	garbled := said(b.malformed)
	switch {
	case errors.Is(err, provider.ErrPermissionDenied):
		return nil, nil
	case err != nil:
		return nil, err
	case garbled != "" && strings.Contains(b.document, sidsOf(p.config.DriverName)):
		return []fault{finding(provider.DriftTags, whole, garbled, "restore the statement, or delete the accesses and the statement")}, nil
	case garbled != "":
		return nil, nil
	case len(b.entries) == 0 && untouched && b.document != "":
		if members, ok := membersIn(b.document, b.adminURN); ok && samePolicy(b.document, render(b.Name, b.adminURN, members)) {
			return []fault{finding(provider.DriftTags, whole, "it has a policy of the driver's and has lost the driver's mark, so that it is left alone",
				fmt.Sprintf("set its tags %s=%s and %s=%s, and where it is named after a claim %s and %s, too, then run zuber audit again",
					tagManagedBy, p.config.DriverName, tagBucket, b.Name, tagClaim, tagCluster))}, nil
		}
		return nil, nil
	case len(b.entries) == 0:
		return nil, nil
	}
	faults, err := p.missing(ctx, b)
	if err != nil {
		return nil, err
	}
	doc, err := p.documentOf(b, b.entries)
	if err != nil {
		return nil, err
	}
	if !samePolicy(doc, b.document) {
		faults = append(faults, finding(provider.DriftPolicy, whole, "the driver's statements in its policy are not those of its accesses", repairRemedy).by(
			func(ctx context.Context) error { return p.enforce(ctx, b) }))
	}
	return faults, nil
}
