package emulator

import (
	"fmt"

	"github.com/zuber-storage/zuber/pkg/emulator/objectstore"
)

// BucketSettings returns what a bucket of any region and project is configured with.
func (c *Cloudscale) BucketSettings(bucket string) (objectstore.Settings, error) {
	return c.store.Settings(bucket)
}

// SetBucketSettings replaces it behind everybody's back; see objectstore.Store.
func (c *Cloudscale) SetBucketSettings(bucket string, s objectstore.Settings) error {
	return c.store.SetSettings(bucket, s)
}

// SetUserTags replaces the tags of an objects user of any project behind everybody's
// back. It reports whether the user exists.
func (c *Cloudscale) SetUserTags(id string, tags map[string]string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, u := range c.users {
		if u.id == id {
			u.tags = tags
			return true
		}
	}
	return false
}

// BucketSettings returns what a bucket of the region, of any project, is configured with.
func (c *Stackit) BucketSettings(region, bucket string) (objectstore.Settings, error) {
	store := c.stores[region]
	if store == nil {
		return objectstore.Settings{}, fmt.Errorf("there is no region %q", region)
	}
	return store.Settings(bucket)
}

// SetBucketSettings replaces it behind everybody's back; see objectstore.Store.
func (c *Stackit) SetBucketSettings(region, bucket string, s objectstore.Settings) error {
	store := c.stores[region]
	if store == nil {
		return fmt.Errorf("there is no region %q", region)
	}
	return store.SetSettings(bucket, s)
}
