package cloudscale

import (
	"net/netip"
	"regexp"
	"strings"

	"github.com/zuber-storage/zuber/pkg/provider"
)

var (
	bucketPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
	regionPattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$`)
	userIDPattern = regexp.MustCompile(`^[A-Za-z0-9_-]{1,128}$`)
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

// checkRef refuses a reference that cannot name a bucket of this cloud. Its
// parts become parts of URLs.
func checkRef(ref provider.BucketRef) error {
	if err := checkBucketName(ref.Name); err != nil {
		return err
	}
	if !regionPattern.MatchString(ref.Region) {
		return refuse(provider.ErrInvalidArgument, "bucket %q: region %q is malformed", ref.Name, ref.Region)
	}
	if ref.OwnerID != "" && !userIDPattern.MatchString(ref.OwnerID) {
		return refuse(provider.ErrInvalidArgument, "bucket %q: owner ID %q is malformed", ref.Name, ref.OwnerID)
	}
	return nil
}
