package stackit

import (
	"fmt"
	"strings"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// Clusters may share a project and the driver's name, and then its admin group, too.
// A bucket that carries the mark with the ID of another cluster is that cluster's,
// with its accesses; without an ID it is everybody's, as it was made by a driver that
// knew none.

// elsewhereMade reports whether the tags carry the ID of another cluster.
func (p *Provider) elsewhereMade(tags map[string]string) bool {
	id := tags[tagCluster]
	return id != "" && id != p.config.ClusterID
}

// whose says which cluster has a bucket of elsewhereMade.
func (p *Provider) whose(tags map[string]string) string {
	text := fmt.Sprintf("it belongs to cluster %q", clip(tags[tagCluster]))
	if claim := tags[tagClaim]; claim != "" {
		text += ", for " + ownedBy(claim)
	}
	if p.config.ClusterID == "" {
		text += ", and this driver has no cluster ID"
	} else {
		text += fmt.Sprintf(", and this driver has the cluster ID %q", p.config.ClusterID)
	}
	return text + "; it is left alone; if both are the same cluster, start the driver with that ID"
}

// manager names the driver or the cluster that has a bucket which is not ours.
func (p *Provider) manager(b *bucket) string {
	if p.marked(b) {
		return fmt.Sprintf("cluster %q", clip(b.tags[tagCluster]))
	}
	return fmt.Sprintf("driver %q", clip(b.tags[tagManagedBy]))
}

// othersMark is ErrPermissionDenied for a bucket whose mark is another driver's or
// cluster's.
func (p *Provider) othersMark(b *bucket) error {
	if p.marked(b) {
		return refuse(provider.ErrPermissionDenied, "%s", p.whose(b.tags))
	}
	return refuse(provider.ErrPermissionDenied, "its tag %s says that %s manages it; let that one give access to it", tagManagedBy, p.manager(b))
}

// intentNames returns the display names of the groups that announce a bucket of the
// driver: first that of its own cluster, then that of a driver without an ID.
func (p *Provider) intentNames(bucket string) []string {
	names := []string{intentName(p.config.DriverName, p.config.ClusterID, bucket)}
	if p.config.ClusterID != "" {
		names = append(names, intentName(p.config.DriverName, "", bucket))
	}
	return names
}

// announces reports whether a group of that name announces a bucket of the driver.
func (p *Provider) announces(name string) bool {
	return strings.HasPrefix(name, intentsOf(p.config.DriverName, p.config.ClusterID)) || strings.HasPrefix(name, intentsOf(p.config.DriverName, ""))
}
