package stackit

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/zuber-storage/zuber/pkg/provider"
)

func TestGroupNames(t *testing.T) {
	const account = "ba-6a1e3b5c-9d2f-4e7a-8b1c-0d3e5f7a9b1c"
	if got := groupName(account); got != "6a1e3b5c9d2f4e7a8b1c0d3e5f7a9b1c" {
		t.Errorf("%s becomes %s", account, got)
	}
	if got := accountOf(groupName(account)); got != account {
		t.Errorf("%s comes back as %s", account, got)
	}
	seen := map[string]string{}
	for _, a := range []string{account, strings.ToUpper(account), "ba-x", "x", "ba-", "ba-6a1e3b5c-9d2f-8e7a-8b1c-0d3e5f7a9b1c", "ba-6a1e3b5c9d2f4e7a8b1c0d3e5f7a9b1c"} {
		name := groupName(a)
		if !namePattern.MatchString(name) || seen[name] != "" {
			t.Errorf("%q and %q become %s", a, seen[name], name)
		}
		seen[name] = a
		if back := accountOf(name); back != "" && back != a {
			t.Errorf("%q comes back as %q", a, back)
		}
	}
}

// TestDerivedNames: within the cloud's 32 characters, and distinct.
func TestDerivedNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		driver := rapid.StringMatching(`[a-z]([a-z0-9.-]{0,61}[a-z0-9])?`).Draw(t, "driver")
		other := rapid.StringMatching(`[a-z]([a-z0-9.-]{0,61}[a-z0-9])?`).Draw(t, "other")
		bucket := rapid.StringMatching(`[a-z0-9][a-z0-9-]{1,61}[a-z0-9]`).Draw(t, "bucket")
		names := []string{adminName(driver), intentName(driver, "", bucket), intentName(driver, other, bucket)}
		for _, n := range names {
			if len(n) > 32 || strings.Trim(n, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
				t.Fatalf("%q is no group name", n)
			}
		}
		if !strings.HasPrefix(names[1], intentsOf(driver, "")) || namePattern.MatchString(names[0]) || namePattern.MatchString(names[1]) {
			t.Fatalf("%v may be mistaken", names)
		}
		if names[1] == names[2] || strings.HasPrefix(names[2], intentsOf(driver, "")) {
			t.Fatalf("the clusters %q and none share names", other)
		}
		if driver != other && (adminName(driver) == adminName(other) || intentsOf(driver, "") == intentsOf(other, "")) {
			t.Fatalf("%q and %q share names", driver, other)
		}
	})
	if adminName("a.b") == adminName("a-b") {
		t.Error("a.b and a-b share the admin")
	}
	if got := adminName("cosi.zuber.dev"); !strings.HasPrefix(got, "cosi-zuber-dev-admin-") {
		t.Errorf("nobody recognises %s", got)
	}
}

func TestBucketNames(t *testing.T) {
	for _, good := range []string{"abc", "bucket-0f7a6c1e-1b7e-4d2c-9a51-2f6f8f1f4c10", "a.b.c", strings.Repeat("a", 63)} {
		if err := checkBucketName(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{"", "ab", strings.Repeat("a", 64), "Abc", "a_b", "a/b", "-ab", "ab-", "a..b", "a.-b", "192.168.1.1", "a\nb", "../.."} {
		if err := checkBucketName(bad); !errors.Is(err, provider.ErrInvalidArgument) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
