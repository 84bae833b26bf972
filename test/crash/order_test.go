package crash

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/zuber-storage/zuber/pkg/emulator/objectstore"
)

// allowed finds the users that a policy of cloudscale's lets in.
var allowed = regexp.MustCompile(`"Effect":"Allow","Principal":\{"AWS":\["arn:aws:iam::[^:]*:user/([0-9a-f]{64})"\]\}`)

// ordered implements cloud: a policy lets nobody in who is gone, because the key of
// a deleted user can go on working for a while.
func (c rgw) ordered(rpc) error {
	var users []string
	for _, u := range c.Users() {
		users = append(users, u.ID)
	}
	var faults []error
	for _, b := range c.Inspect() {
		for _, m := range allowed.FindAllStringSubmatch(b.Policy, -1) {
			if !slices.Contains(users, m[1]) {
				faults = append(faults, fmt.Errorf("the policy of bucket %s lets user %s in, who is gone", b.Name, m[1]))
			}
		}
	}
	return errors.Join(faults...)
}

// ordered implements cloud: an access that has a key stands in a policy. Whoever
// has access to several buckets keeps the key when one of them goes.
func (c grid) ordered(r rpc) error {
	if r.kind == kindDelete {
		return nil
	}
	var faults []error
	for _, g := range c.Groups() {
		named := slices.ContainsFunc(c.Inspect(), func(b objectstore.BucketState) bool { return strings.Contains(b.Policy, g.URN) })
		if accountOf(g.DisplayName) != "" && g.Keys > 0 && !named {
			faults = append(faults, fmt.Errorf("group %s has %d keys and stands in no policy", g.DisplayName, g.Keys))
		}
	}
	return errors.Join(faults...)
}
