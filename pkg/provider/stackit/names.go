package stackit

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/zuber-storage/zuber/pkg/provider"
)

var (
	bucketPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
	regionPattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$`)
	labelPattern  = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$`)
	uuidPattern   = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)
	namePattern   = regexp.MustCompile(`^[0-9a-f]{32}$`)
)

// checkBucketName applies the rules of S3 before any call is made.
func checkBucketName(name string) error {
	const rule = "want 3 to 63 of a-z, 0-9, hyphen and dot, a letter or digit at both ends, no \"..\", \".-\", \"-.\" and no IP address"
	bad := !bucketPattern.MatchString(name) || strings.Contains(name, "..") ||
		strings.Contains(name, ".-") || strings.Contains(name, "-.")
	if _, err := netip.ParseAddr(name); err == nil || bad {
		return refuse(provider.ErrInvalidArgument, "bucket name %q: %s", name, rule)
	}
	return nil
}

// checkRegion refuses a region that the back end does not serve. The API has no
// list of regions; the configuration has.
func (p *Provider) checkRegion(region string) error {
	if !slices.Contains(p.config.Regions, region) {
		return refuse(provider.ErrInvalidArgument, "region %q is not served; allowed are %s (the back end's regions)",
			region, strings.Join(p.config.Regions, ", "))
	}
	return nil
}

// checkRef refuses a reference that cannot name a bucket of this back end. Its
// parts become parts of URLs.
func (p *Provider) checkRef(ref provider.BucketRef) error {
	if err := checkBucketName(ref.Name); err != nil {
		return err
	}
	return p.checkRegion(ref.Region)
}

// groupName returns the display name of the account's credentials group: the 32
// hex digits of the UUID in COSI's "ba-<uid>". An account of another form gets a
// version 8 UUID of its hash, which no Kubernetes uid can be.
func groupName(account string) string {
	uid, ok := strings.CutPrefix(account, "ba-")
	if name := strings.ReplaceAll(uid, "-", ""); ok && uuidPattern.MatchString(uid) && namePattern.MatchString(name) && name[12] != '8' {
		return name
	}
	sum := sha256.Sum256([]byte("zuber account\x00" + account))
	name := []byte(hex.EncodeToString(sum[:16]))
	name[12], name[16] = '8', '8'
	return string(name)
}

// accountOf returns the account that a group name was derived from, "" if it
// cannot be told.
func accountOf(name string) string {
	if !namePattern.MatchString(name) || name[12] == '8' {
		return ""
	}
	return "ba-" + dashed(name)
}

// dashed writes 32 hex digits as a UUID.
func dashed(h string) string {
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// adminName returns the display name of the driver's admin group: as much of the
// driver's name as people need to recognise it, and a hash that tells drivers
// apart. At most 32 characters of [a-z0-9-].
func adminName(driver string) string {
	readable := strings.ReplaceAll(driver, ".", "-")
	readable = strings.Trim(readable[:min(15, len(readable))], "-")
	return readable + "-admin-" + digest(10, "zuber admin", driver)
}

// adminPattern recognises the admin groups of all drivers of this kind.
var adminPattern = regexp.MustCompile(`^[a-z0-9-]{1,15}-admin-[0-9a-f]{10}$`)

const intentPrefix = "zuber-new-"

// intentName returns the display name of the group that announces a bucket. The
// first part after the prefix tells drivers and clusters apart, the second buckets.
func intentName(driver, cluster, bucket string) string {
	return intentsOf(driver, cluster) + digest(16, "zuber bucket", driver, bucket)
}

// intentsOf returns what all intents of the driver begin with in the cluster, whose
// ID may be empty.
func intentsOf(driver, cluster string) string {
	if cluster == "" {
		return intentPrefix + digest(6, "zuber driver", driver)
	}
	return intentPrefix + digest(6, "zuber driver", driver, cluster)
}

// digest returns n hex digits of the hash of the parts.
func digest(n int, parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:])[:n]
}

// bucketKey names a bucket in locks and caches.
func bucketKey(ref provider.BucketRef) string { return fmt.Sprintf("%s/%s", ref.Region, ref.Name) }
