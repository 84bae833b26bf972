package driver

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// What bucketNameFrom can be.
const (
	nameFromUID   = "uid"
	nameFromClaim = "claim"
)

// naming is what a BucketClass says about the names of its buckets. The zero value
// leaves them to COSI.
type naming struct {
	prefix    string
	namespace string // "true" or "false"
	from      string // nameFromUID or nameFromClaim
}

// verbatim reports whether a bucket is called what COSI asks for.
func (n naming) verbatim() bool {
	return n.prefix == "" && !n.hasNamespace() && !n.hasClaim()
}

func (n naming) hasNamespace() bool { return n.namespace == "true" }

func (n naming) hasClaim() bool { return n.from == nameFromClaim }

// name joins the parts of a bucket's name. ErrInvalidArgument, with the parts and
// what to do, if the clouds take no such name.
func (n naming) name(bucketObject string, c Claim) (string, error) {
	var parts, from []string
	add := func(part, what string) {
		parts = append(parts, part)
		from = append(from, fmt.Sprintf("%s %s", what, quote(part)))
	}
	if n.prefix != "" {
		add(n.prefix, "bucketNamePrefix")
	}
	if n.hasNamespace() {
		add(c.Namespace, "the namespace")
	}
	if n.hasClaim() {
		add(c.Name, "the BucketClaim")
	} else {
		add(bucketObject, "COSI's name")
	}
	name := strings.Join(parts, "-")
	if err := checkBucketName(name); err != nil {
		return "", fmt.Errorf("%w; it is made of %s, and nothing is cut off: %s", err, strings.Join(from, ", "), n.remedy())
	}
	return name, nil
}

// remedy says what can change a name that the clouds do not take.
func (n naming) remedy() string {
	var ways []string
	if n.hasClaim() {
		ways = append(ways, "make a BucketClaim with another name")
	} else {
		ways = append(ways, `use a class with bucketNameFrom = "claim"`)
	}
	if n.hasNamespace() {
		ways = append(ways, "use a class without bucketNameIncludeNamespace")
	}
	if n.prefix != "" {
		ways = append(ways, "use a class with another bucketNamePrefix")
	}
	return strings.Join(ways, ", or ")
}

// NameOf returns the name at the cloud of the bucket that a Bucket object with these
// BucketClass parameters and this claim stands for, "" if they make none. What the
// object's bucket ID says goes before it.
func NameOf(bucketObject string, c Claim, params map[string]string) string {
	p, err := parseParameters(BucketClass, params, false)
	if err != nil {
		return ""
	}
	name, err := p.naming.name(bucketObject, c)
	if err != nil {
		return ""
	}
	return name
}

// called finds out what a bucket is called, and after which claim. One that COSI
// knows already keeps its name, whatever its class says by now; any other must be
// asked for by one Bucket object alone.
func (d *Driver) called(ctx context.Context, bucketObject string, p parameters) (found called, err error) {
	switch {
	case p.naming.verbatim():
		return called{name: bucketObject}, nil
	case d.claims == nil:
		return called{}, d.needsCompanion(bucketObject)
	case p.naming.hasClaim() && d.clusterID == "":
		return called{}, fmt.Errorf("bucket %s: %w: bucketNameFrom = %q needs to know which cluster this is, "+
			"because another one may have a claim of the same name: start the driver with --cluster-id", bucketObject, provider.ErrPrecondition, nameFromClaim)
	}
	c, err := d.claims.ClaimOf(ctx, bucketObject)
	if err != nil {
		return called{}, fmt.Errorf("whose bucket %s is, is not known: %w", bucketObject, err)
	}
	if p.naming.hasClaim() {
		found.claim = provider.ClaimRef{Namespace: c.Namespace, Name: c.Name}
	}
	if c.BucketID == "" {
		found.shared = true
		found.name, err = p.naming.name(bucketObject, c)
		return found, err
	}
	id, err := ParseBucketID(c.BucketID)
	if err == nil {
		err = agrees(c.BucketID, id, p)
	}
	found.name = id.Bucket
	return found, err
}

// called is how a bucket is called.
type called struct {
	name   string
	claim  provider.ClaimRef // that it is named after; the zero value is none
	shared bool              // another Bucket object may ask for the name
}

// needsCompanion is why a bucket's name cannot be other than COSI's.
func (d *Driver) needsCompanion(bucket string) error {
	return fmt.Errorf("bucket %s: %w: its class gives it a name of its own (bucketNamePrefix, bucketNameIncludeNamespace, bucketNameFrom), or gave, "+
		"which takes the companion, and this driver runs without: start it with --companion=on in the cluster, and apply config/companion",
		bucket, provider.ErrPrecondition)
}

// alone refuses to make or to adopt a bucket for which another Bucket object stands.
// The deletion of that object, which may go on long after its claim is gone, would
// delete the bucket of this one. The bucket's lock is held.
func (d *Driver) alone(ctx context.Context, backend, bucketObject string, c called) error {
	if !c.shared {
		return nil
	}
	objects, err := d.claims.BucketObjects(ctx)
	if err != nil {
		return fmt.Errorf("bucket %s: whether another Bucket has it is not known: %w", c.name, err)
	}
	for _, o := range objects {
		same := c.claim != (provider.ClaimRef{}) && c.claim == (provider.ClaimRef{Namespace: o.Claim.Namespace, Name: o.Claim.Name})
		switch {
		case o.Name == bucketObject || o.BucketID != "" && !o.StandsFor(backend, c.name) || o.BucketID == "" && !same:
			// Of two Buckets without a bucket ID and of different claims the mark has the
			// first one win.
			continue
		case o.Deleting:
			return fmt.Errorf("bucket %s: %w: the Bucket %s, for an earlier %s, is being deleted, and may delete it: wait until that Bucket is gone; "+
				"if it does not go, kubectl describe bucket %s says why", c.name, provider.ErrPrecondition, o.Name, o.whose(), o.Name)
		case same:
			return fmt.Errorf("bucket %s: %w: the Bucket %s, for an earlier %s, still stands for it: delete that Bucket; its deletionPolicy Retain keeps the data",
				c.name, provider.ErrPrecondition, o.Name, o.whose())
		}
		return fmt.Errorf("bucket %s: %w: it is that of the Bucket %s, for %s; use another name, or delete that Bucket",
			c.name, provider.ErrPrecondition, o.Name, o.whose())
	}
	return nil
}

// leaving refuses to delete a bucket that is named by its class unless the Bucket
// object with that ID is being deleted, and no other one stands for it: a call that
// comes late would delete the bucket of a later claim. The bucket's lock is held.
func (d *Driver) leaving(ctx context.Context, bucketID string, id BucketID) error {
	going, err := d.given(ctx, id)
	if err == nil && !slices.Contains(going, bucketID) {
		err = fmt.Errorf("bucket %s: %w: no Bucket with the bucket ID %s is being deleted", id.Bucket, provider.ErrPrecondition, quote(bucketID))
	}
	return err
}

// given refuses to delete a bucket for which a Bucket object stands that is not being
// deleted. It returns the bucket IDs of those that are.
func (d *Driver) given(ctx context.Context, id BucketID) (going []string, err error) {
	if d.claims == nil {
		return nil, d.needsCompanion(id.Bucket)
	}
	objects, err := d.claims.BucketObjects(ctx)
	if err != nil {
		return nil, fmt.Errorf("bucket %s: whether another Bucket has it is not known: %w", id.Bucket, err)
	}
	for _, o := range objects {
		if o.BucketID == "" || !o.StandsFor(id.Backend, id.Bucket) {
			continue
		}
		if !o.Deleting {
			return nil, fmt.Errorf("bucket %s: %w: the Bucket %s, for %s, stands for it and is not being deleted", id.Bucket, provider.ErrPrecondition, o.Name, o.whose())
		}
		going = append(going, o.BucketID)
	}
	return going, nil
}

// cosisName matches the names that COSI gives to buckets, which end in a UID.
var cosisName = regexp.MustCompile(`^(bucket|bc)-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// leavingClaim refuses to delete a bucket that is named after a claim by its record for
// a Bucket object that says nothing of names, as one that a person wrote, while the
// claim's own object stands for it. On what cannot be read as the driver's the deletion
// has its own word.
func (d *Driver) leavingClaim(ctx context.Context, backend Backend, ref provider.BucketRef, id BucketID) error {
	if cosisName.MatchString(id.Bucket) {
		return nil // it names no claim, and a look at each of those would cost calls
	}
	b, err := backend.Provider.GetBucket(ctx, ref)
	switch {
	case errors.Is(err, provider.ErrNotFound), errors.Is(err, provider.ErrPermissionDenied),
		errors.Is(err, provider.ErrConflict), errors.Is(err, provider.ErrInvalidArgument):
		return nil
	case err != nil:
		return fmt.Errorf("back end %s: %w", backend.Name, err)
	case b.Claim == (provider.ClaimRef{}):
		return nil
	}
	_, err = d.given(ctx, id)
	return err
}

// StandsFor reports whether the object's bucket ID may name that bucket. One that a
// person wrote may leave the back end out.
func (o BucketObject) StandsFor(backend, name string) bool {
	if id, err := ParseBucketID(o.BucketID); err == nil {
		return id.Backend == backend && id.Bucket == name
	}
	found, err := BucketName(o.BucketID)
	return err == nil && found == name
}

// whose names the claim of a Bucket, for people.
func (o BucketObject) whose() string {
	if o.Claim.Name == "" {
		return "no BucketClaim"
	}
	return fmt.Sprintf("BucketClaim %s/%s", o.Claim.Namespace, o.Claim.Name)
}

func namingRows() []parameterRow {
	const companion = " Needs the companion (docs/names.md)."
	return []parameterRow{{
		Parameter: Parameter{
			Name: "bucketNamePrefix", Kind: BucketClass,
			Default:     "no prefix",
			Allowed:     "the beginning of a bucket's name, for example acme",
			Description: "What the name of the bucket begins with, before a hyphen." + companion,
		},
		set: func(p *parameters, v string) error {
			// What follows has at least a hyphen and one character.
			if len(v) > maxBucketName-2 || checkBucketName(v+"-x0") != nil {
				return errors.New(`want at most 61 characters of a-z, 0-9, "-" and ".", starting with a letter or digit and not ending with a dot`)
			}
			p.naming.prefix = v
			return nil
		},
	}, {
		Parameter: Parameter{
			Name: "bucketNameIncludeNamespace", Kind: BucketClass,
			Default:     "false",
			Allowed:     listed(booleans()),
			Description: "Whether the namespace of the BucketClaim comes next in the name of the bucket, before a hyphen." + companion,
		},
		values: booleans(),
		set: func(p *parameters, v string) error {
			p.naming.namespace = v
			return nil
		},
	}, {
		Parameter: Parameter{
			Name: "bucketNameFrom", Kind: BucketClass,
			Default: nameFromUID,
			Allowed: listed([]string{nameFromUID, nameFromClaim}),
			Description: "What the name of the bucket ends with: uid is the name that COSI gives it, which holds a UID, and claim that of the BucketClaim, " +
				"so that the same manifests find the bucket again in another cluster. claim also needs `--cluster-id`." + companion,
		},
		values: []string{nameFromUID, nameFromClaim},
		set: func(p *parameters, v string) error {
			p.naming.from = v
			return nil
		},
	}}
}
