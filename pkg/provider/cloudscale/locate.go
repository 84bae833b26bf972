package cloudscale

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/s3"
)

// Codes that the endpoint answers with.
const (
	codeMissing = "NoSuchBucket"
	codeDenied  = "AccessDenied"
	codeSkewed  = "RequestTimeTooSkewed"
)

// state is what the endpoint says of a bucket, seen with its owner's key.
type state int

const (
	stateAbsent    state = iota // no such bucket
	statePresent                // it is the owner's and lives in the region
	stateForeign                // it exists but is not the owner's
	stateElsewhere              // it lives in another region
)

// location is the answer of locate.
type location struct {
	uid    string // of the owner, as the endpoint calls it
	state  state
	region string   // where it lives, when stateElsewhere
	others []string // further buckets of the owner
}

// locate waits until the owner's key works at its endpoint, keeps the one that
// does and the owner's uid in o, and says what that endpoint knows of its bucket.
func (p *Provider) locate(ctx context.Context, o *owner) (location, error) {
	var loc location
	err := p.withKey(ctx, p.identityOf(*o), &o.user, func(c *s3.Client) (err error) {
		loc, err = p.look(ctx, c, o.record)
		return err
	})
	if err != nil {
		return location{}, sorted(ctx, err)
	}
	o.uid = loc.uid
	return loc, nil
}

// look asks once. An error is the S3 layer's own.
func (p *Provider) look(ctx context.Context, c *s3.Client, r record) (location, error) {
	who, err := c.WhoAmI(ctx)
	if s3.StatusCode(err) == http.StatusNotFound {
		// No bucket was asked for: a server that takes the host name for one says so.
		return location{}, refuse(provider.ErrUnavailable, "%s; the endpoint %s does not list buckets, check it", err, p.endpointOf(r))
	}
	if err != nil {
		return location{}, err
	}
	owned := slices.Contains(who.Buckets, r.bucket)
	loc := location{uid: who.ID, others: slices.DeleteFunc(who.Buckets, func(name string) bool { return name == r.bucket })}
	where, err := c.BucketLocation(ctx, r.bucket)
	// A policy can open a foreign bucket to this key and close an own one.
	readable, denied := err == nil, s3.Code(err) == codeDenied
	switch {
	case readable && p.elsewhere(ctx, where, r.region):
		loc.state, loc.region = stateElsewhere, where
	case (readable || denied) && owned:
		loc.state = statePresent
	case readable || denied:
		loc.state = stateForeign
	case s3.StatusCode(err) == http.StatusMovedPermanently:
		loc.state, loc.region = stateElsewhere, "(another)"
	case s3.Code(err) == codeMissing:
		loc.state = stateAbsent
	default:
		return location{}, err
	}
	return loc, nil
}

// elsewhere reports whether a bucket's location is another region of the cloud. A
// server may answer with an empty or technical name of the region.
func (p *Provider) elsewhere(ctx context.Context, where, region string) bool {
	return where != region && where != "" && p.checkRegion(ctx, where) == nil
}

// visible reports whether a bucket of the name exists at the endpoint, whoever
// owns it. It asks without a key and thus learns nothing more.
func (p *Provider) visible(ctx context.Context, endpoint, bucket string) (bool, error) {
	c, err := p.client(endpoint, keyPair{})
	if err != nil {
		return false, err
	}
	// HEAD would be cheaper, but its 404 could be a proxy's.
	_, err = c.BucketLocation(ctx, bucket)
	switch {
	case err == nil || s3.Code(err) == codeDenied || s3.StatusCode(err) == http.StatusMovedPermanently:
		return true, nil
	case s3.Code(err) == codeMissing:
		return false, nil
	}
	return false, s3Error(ctx, err)
}

// unmarked explains a bucket without an owner of ours: ErrNotFound if it does not
// exist, else ErrPermissionDenied.
func (p *Provider) unmarked(ctx context.Context, ref provider.BucketRef) error {
	if err := p.checkRegion(ctx, ref.Region); err != nil {
		return err
	}
	there, err := p.visible(ctx, p.defaultEndpoint(ref.Region), ref.Name)
	switch {
	case err != nil:
		return err
	case there:
		return refuse(provider.ErrPermissionDenied,
			"it exists without the mark of driver %s and is left alone; %s", p.config.DriverName, adoptRemedy)
	}
	return refuse(provider.ErrNotFound, "it does not exist")
}

func (p *Provider) identityOf(o owner) identity {
	return identity{id: o.id, region: o.region, endpoint: p.endpointOf(o.record)}
}

// sorted gives an error of withKey its sentinel: it is the S3 layer's own or has
// one already.
func sorted(ctx context.Context, err error) error {
	var raw *s3.Error
	if errors.As(err, &raw) {
		return s3Error(ctx, err)
	}
	return err
}
