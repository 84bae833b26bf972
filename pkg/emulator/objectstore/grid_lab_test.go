package objectstore

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

const (
	gridAccount  = "12345678901234567890"
	otherAccount = "98765432109876543210"
	gridRegion   = "eu01"
)

// gridLab is a grid with two accounts, served over loopback. The groups admin, rw, ro, wo and out are of
// the one account, foreign is of the other; root is the one account itself, whose key nobody has in
// the cloud.
type gridLab struct {
	*lab
	url string
	// delay is how late a write of a policy takes effect, in nanoseconds.
	delay atomic.Int64
}

func newGrid(t testing.TB) *gridLab {
	t.Helper()
	g := &gridLab{lab: &lab{clock: &clock{}, keys: &keyRing{keys: make(map[string]Key)}}}
	own := Account{ID: gridAccount, Name: "project"}
	for _, name := range []string{"admin", "rw", "ro", "wo", "out"} {
		g.keys.keys["AK"+name] = gridKey(own, name)
	}
	g.keys.keys["AKforeign"] = gridKey(Account{ID: otherAccount, Name: "other"}, "foreign")
	g.keys.keys["AKroot"] = Key{Secret: "secret-of-root", Identity: Identity{UID: "urn:sgws:identity::" + gridAccount + ":root", Account: own}}
	g.store = New(Options{
		Profile: StorageGRID, Keys: g.keys, Now: g.clock.now,
		PolicyDelay: func() time.Duration { return time.Duration(g.delay.Load()) },
		Regions:     []Region{{Name: gridRegion, Domains: []string{"object.storage.eu01.localhost"}, URL: func() string { return g.url }}},
	})
	g.url = serve(t, g.store.Handler(gridRegion))
	return g
}

func serve(t testing.TB, h http.Handler) string {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL
}

func gridKey(account Account, name string) Key {
	return Key{Secret: "secret-of-" + name, Identity: Identity{
		UID: "urn:sgws:identity::" + account.ID + ":user/" + name, DisplayName: name,
		Account: account, Group: "urn:sgws:identity::" + account.ID + ":group/" + name,
	}}
}

// as returns a client with the key of a group, or without any.
func (g *gridLab) as(name string) *client {
	c := &client{url: g.url, region: gridRegion, clock: g.clock}
	if name != "" {
		c.accessKey, c.secret = "AK"+name, "secret-of-"+name
	}
	return c
}

func (g *gridLab) minio(t *testing.T, name string) *minio.Core {
	t.Helper()
	u, err := url.Parse(g.url)
	if err != nil {
		t.Fatal(err)
	}
	c, err := minio.NewCore(u.Host, &minio.Options{
		Creds: credentials.NewStaticV4("AK"+name, "secret-of-"+name, ""), Region: gridRegion, MaxRetries: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// urns turns names of groups into what a policy calls them.
func urns(names ...string) []string {
	var out []string
	for _, n := range names {
		account := gridAccount
		if n == "foreign" {
			account = otherAccount
		}
		out = append(out, "urn:sgws:identity::"+account+":group/"+n)
	}
	return out
}

// gridStatement is a statement of a bucket policy; what is nil is left out.
type gridStatement struct {
	Sid          string              `json:",omitempty"`
	Effect       string              //
	Principal    map[string][]string `json:",omitempty"`
	NotPrincipal map[string][]string `json:",omitempty"`
	Action       []string            `json:",omitempty"`
	NotAction    []string            `json:",omitempty"`
	Resource     []string
}

// gridPolicy renders statements about a bucket and everything in it.
func gridPolicy(t testing.TB, bucket string, statements ...gridStatement) string {
	t.Helper()
	for i := range statements {
		statements[i].Resource = []string{"arn:aws:s3:::" + bucket, "arn:aws:s3:::" + bucket + "/*"}
	}
	text, err := json.Marshal(map[string]any{"Statement": statements})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func principals(names ...string) map[string][]string { return map[string][]string{"AWS": names} }

// onlyFor denies everything to all but the named groups.
func onlyFor(names ...string) gridStatement {
	return gridStatement{Sid: "deny-outsiders", Effect: "Deny", NotPrincipal: principals(urns(names...)...), Action: []string{"s3:*"}}
}

// nothingBut denies a group everything but the actions.
func nothingBut(name string, actions ...string) gridStatement {
	return gridStatement{Sid: name, Effect: "Deny", Principal: principals(urns(name)...), NotAction: actions}
}

// The actions of the three modes.
func gridModes() map[string][]string {
	read := []string{
		"s3:GetObject", "s3:GetObjectVersion", "s3:GetObjectTagging", "s3:GetObjectVersionTagging",
		"s3:ListBucket", "s3:ListBucketVersions",
	}
	probe := []string{"s3:GetBucketLocation", "s3:GetBucketVersioning", "s3:GetBucketObjectLockConfiguration"}
	write := []string{
		"s3:PutObject", "s3:PutOverwriteObject", "s3:PutObjectTagging", "s3:ListMultipartUploadParts", "s3:AbortMultipartUpload",
	}
	join := func(lists ...[]string) []string {
		var all []string
		for _, l := range lists {
			all = append(all, l...)
		}
		return all
	}
	return map[string][]string{
		"rw": join(read, probe, write, []string{"s3:DeleteObject", "s3:DeleteObjectTagging", "s3:ListBucketMultipartUploads"}),
		"ro": join(read, probe),
		"wo": join(write, probe),
	}
}

// modesPolicy gives the groups rw, ro and wo their modes, and leaves admin alone with everything.
func modesPolicy(t testing.TB, bucket string) string {
	t.Helper()
	modes := gridModes()
	return gridPolicy(t, bucket, onlyFor("admin", "rw", "ro", "wo"),
		nothingBut("rw", modes["rw"]...), nothingBut("ro", modes["ro"]...), nothingBut("wo", modes["wo"]...))
}
