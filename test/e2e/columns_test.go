package e2e

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// TestColumns compares the tables that kubectl prints.
func TestColumns(t *testing.T) {
	s := together(t)
	class, accessClass := s.class(cloudscale), s.accessClass()
	claim := s.claim("photos", class)
	access := s.access("reader", "photos", accessClass)
	s.claim("waiting", "no-such-class")
	account := s.ready(access).text("status", "accountID")
	bucket := s.bucket(claim)
	id := bucket.text("status", "bucketID")
	if id == "" || account == "" {
		t.Fatalf("bucket ID %q, account ID %q", id, account)
	}
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"get", "bucketclaims", "-n", s.ns}, fmt.Sprintf(`
			NAME READY BUCKET CLASS AGE
			photos true %s %s AGE
			waiting no-such-class AGE`, bucket.name(), class)},
		{[]string{"get", "bucketaccesses", "-n", s.ns}, fmt.Sprintf(`
			NAME READY CLAIM SECRET ACCOUNT AGE
			reader true photos reader-credentials %s AGE`, account)},
		{[]string{"get", "bucketaccesses", "-n", s.ns, "-o", "wide"}, fmt.Sprintf(`
			NAME READY CLAIM SECRET ACCOUNT CLASS AGE
			reader true photos reader-credentials %s %s AGE`, account, accessClass)},
		{[]string{"get", "bucket", bucket.name()}, fmt.Sprintf(`
			NAME READY BUCKET ID NAMESPACE CLAIM AGE
			%s true %s %s photos AGE`, bucket.name(), id, s.ns)},
		{[]string{"get", "bucket", bucket.name(), "-o", "wide"}, fmt.Sprintf(`
			NAME READY BUCKET ID NAMESPACE CLAIM CLASS POLICY DRIVER AGE
			%s true %s %s photos %s Delete %s AGE`, bucket.name(), id, s.ns, class, driverName)},
		{[]string{"get", "bucketclass", class, "-o", "wide"}, fmt.Sprintf(`
			NAME POLICY DRIVER AGE
			%s Delete %s AGE`, class, driverName)},
		{[]string{"get", "bucketaccessclass", accessClass, "-o", "wide"}, fmt.Sprintf(`
			NAME AUTHENTICATION DRIVER AGE
			%s Key %s AGE`, accessClass, driverName)},
	} {
		if got, want := table(s.kubectl(tc.args...)), table(tc.want); got != want {
			t.Errorf("kubectl %s:\n%s\nwant:\n%s", strings.Join(tc.args, " "), got, want)
		}
	}
}

// table is a table with single spaces, and with AGE for an age.
func table(text string) string {
	var rows []string
	for row := range strings.Lines(strings.TrimSpace(text)) {
		rows = append(rows, strings.Join(strings.Fields(row), " "))
	}
	return regexp.MustCompile(`(?m) \d+m?s$| \d+m\d+s$`).ReplaceAllString(strings.Join(rows, "\n"), " AGE")
}
