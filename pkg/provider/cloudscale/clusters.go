package cloudscale

import (
	"fmt"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// Clusters may share a project and the driver's name. What carries the mark with
// the ID of another cluster is that cluster's; without an ID it is everybody's, as
// it was made by a driver that knew none.

// elsewhereMade reports whether the user carries the ID of another cluster.
func (p *Provider) elsewhereMade(u user) bool {
	id := u.tags[tagCluster]
	return id != "" && id != p.config.ClusterID
}

// otherClusterError is ErrPermissionDenied for what another cluster has.
type otherClusterError struct{ error }

func (e *otherClusterError) Unwrap() error { return e.error }

// otherCluster says whose the user is, and which claim the bucket is for.
func (p *Provider) otherCluster(u user, bucket string) error {
	whose := fmt.Sprintf("objects user %s belongs to cluster %q", u.id, u.tags[tagCluster])
	suffix := ""
	if p.marksTenant(u) {
		suffix = bucketSuffix(bucket)
	}
	if r, err := readFacts(u.tags, suffix); err == nil && r.claim != (provider.ClaimRef{}) {
		whose += ", for " + ownedBy(r.claim)
	}
	mine := fmt.Sprintf("this driver has the cluster ID %q", p.config.ClusterID)
	if p.config.ClusterID == "" {
		mine = "this driver has no cluster ID"
	}
	return &otherClusterError{refuse(provider.ErrPermissionDenied, "%s, and %s; it is left alone; if both are the same cluster, start the driver with that ID", whose, mine)}
}
