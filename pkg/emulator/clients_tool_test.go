package emulator_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/zuber-storage/zuber/pkg/emulator"
)

// requireClients names the variable that turns a missing client into a failure.
const requireClients = "ZUBER_REQUIRE_CLIENTS"

// clientTimeout bounds one run of a client; the slowest takes seconds.
const clientTimeout = 2 * time.Minute

// bucketName is the bucket the owner makes before a client begins.
const bucketName = "clients"

// tool is an installed S3 client, at home in a directory of its own, with the
// key of one user.
type tool struct {
	t         *testing.T
	path      string
	dir       string // work files and the client's home
	env       []string
	cloud     *emulator.Emulator
	endpoint  string // http://host:port
	host      string // host:port
	accessKey string
	secretKey string
	owner     *minio.Client // the bucket owner's client
	isOwner   bool
}

// withClient runs the steps twice: as the owner of the bucket, and as a user
// whom the bucket's policy gives read and write access.
func withClient(t *testing.T, name string, steps func(*tool)) {
	t.Helper()
	if testing.Short() {
		t.Skip("the clients take a minute")
	}
	t.Parallel()
	path, err := exec.LookPath(name)
	if err != nil {
		if os.Getenv(requireClients) == "1" {
			t.Fatalf("%s=1, but: %v", requireClients, err)
		}
		t.Skipf("%v", err)
	}
	for _, identity := range []string{"owner", "access user"} {
		t.Run(identity, func(t *testing.T) {
			t.Parallel()
			steps(newTool(t, path, identity == "owner"))
		})
	}
}

func newTool(t *testing.T, path string, isOwner bool) *tool {
	t.Helper()
	e, err := emulator.Start(emulator.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	c := &tool{t: t, path: path, dir: t.TempDir(), cloud: e, endpoint: e.Cloudscale().Endpoints["rma"], isOwner: isOwner}
	u, err := url.Parse(c.endpoint)
	if err != nil {
		t.Fatal(err)
	}
	c.host = u.Host
	owner := c.createUser("owner")
	c.owner = c.minio(owner)
	if err := c.owner.MakeBucket(t.Context(), bucketName, minio.MakeBucketOptions{}); err != nil {
		t.Fatal(err)
	}
	user := owner
	if !isOwner {
		user = c.createUser("access")
		if err := c.owner.SetBucketPolicy(t.Context(), bucketName, readWritePolicy(user.ID)); err != nil {
			t.Fatal(err)
		}
	}
	c.accessKey, c.secretKey = user.Keys[0].AccessKey, user.Keys[0].SecretKey
	// A client that leaves the loopback fails at a proxy that is not there.
	c.env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + c.dir, "TMPDIR=" + c.dir, "XDG_CACHE_HOME=" + c.dir, "LC_ALL=C.UTF-8",
		"HTTP_PROXY=http://127.0.0.1:1", "HTTPS_PROXY=http://127.0.0.1:1", "NO_PROXY=127.0.0.1",
	}
	return c
}

// objectsUser is what the control plane answers.
type objectsUser struct {
	ID   string `json:"id"`
	Keys []struct {
		AccessKey string `json:"access_key"`
		SecretKey string `json:"secret_key"`
	} `json:"keys"`
}

func (c *tool) createUser(name string) objectsUser {
	c.t.Helper()
	cloud := c.cloud.Cloudscale()
	req, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, cloud.APIURL+"v1/objects-users",
		strings.NewReader(`{"display_name":"`+name+`"}`))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+cloud.Token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var u objectsUser
	if err := json.NewDecoder(resp.Body).Decode(&u); err != nil || len(u.Keys) != 1 {
		c.t.Fatalf("create user: %s, %v", resp.Status, err)
	}
	return u
}

func (c *tool) minio(u objectsUser) *minio.Client {
	c.t.Helper()
	m, err := minio.New(c.host, &minio.Options{
		Creds: credentials.NewStaticV4(u.Keys[0].AccessKey, u.Keys[0].SecretKey, ""), Region: "us-east-1",
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return m
}

// readWritePolicy is what was measured to suffice these clients.
func readWritePolicy(uid string) string {
	return fmt.Sprintf(`{"Version":"2012-10-17","Statement":[
 {"Effect":"Allow","Principal":{"AWS":["arn:aws:iam:::user/%[1]s"]},"Resource":["arn:aws:s3:::%[2]s"],
  "Action":["s3:ListBucket","s3:ListBucketVersions","s3:ListBucketMultipartUploads","s3:GetBucketLocation","s3:GetBucketVersioning"]},
 {"Effect":"Allow","Principal":{"AWS":["arn:aws:iam:::user/%[1]s"]},"Resource":["arn:aws:s3:::%[2]s","arn:aws:s3:::%[2]s/*"],
  "Action":["s3:GetObject","s3:GetObjectVersion","s3:PutObject","s3:DeleteObject","s3:DeleteObjectVersion","s3:AbortMultipartUpload",
   "s3:ListMultipartUploadParts","s3:GetObjectTagging","s3:PutObjectTagging"]}]}`, uid, bucketName)
}

// run starts the client and returns what it prints; it must end with success.
func (c *tool) run(args ...string) string {
	c.t.Helper()
	return c.pipe(nil, args...)
}

// pipe is run with a standard input.
func (c *tool) pipe(stdin []byte, args ...string) string {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), clientTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.path, args...)
	cmd.Dir, cmd.Env, cmd.Stdin = c.dir, c.env, bytes.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		c.t.Fatalf("%s %s: %v\n%s%s%s", filepath.Base(c.path), strings.Join(args, " "), err, stdout.String(), stderr.String(), c.calls())
	}
	return stdout.String()
}

// calls lists the latest S3 calls, for failures.
func (c *tool) calls() string {
	calls := c.cloud.Calls()
	var b strings.Builder
	for _, call := range calls[max(0, len(calls)-20):] {
		fmt.Fprintf(&b, "%s %s %s -> %d\n", call.Operation, call.Method, call.Path, call.Status)
	}
	return b.String()
}

// contains fails unless the output names all the words.
func (c *tool) contains(output string, words ...string) {
	c.t.Helper()
	for _, w := range words {
		if !strings.Contains(output, w) {
			c.t.Errorf("%q is not in the output:\n%s", w, output)
		}
	}
}

// called fails unless the client made use of the S3 operation.
func (c *tool) called(operation string) {
	c.t.Helper()
	for _, call := range c.cloud.Calls() {
		if call.Operation == operation {
			return
		}
	}
	c.t.Errorf("no call of %s", operation)
}

// objects fails unless the bucket holds that many objects.
func (c *tool) objects(want int64) {
	c.t.Helper()
	for _, b := range c.cloud.Cloudscale().Buckets() {
		if b.Name == bucketName {
			if b.Objects != want {
				c.t.Errorf("the bucket holds %d objects, want %d", b.Objects, want)
			}
			return
		}
	}
	c.t.Error("the bucket is gone")
}

// write makes a file of the work directory.
func (c *tool) write(name string, content []byte) {
	c.t.Helper()
	path := filepath.Join(c.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// sourceTree makes the directory that clients copy: names that need encoding,
// an empty file, and one of 20 MiB that they upload in parts.
func (c *tool) sourceTree() {
	c.t.Helper()
	for name, size := range map[string]int{
		"src/small.txt": 39, "src/empty": 0, "src/sub/a b+c%20&=ü.txt": 5000, "src/big.bin": 20 << 20,
	} {
		c.write(name, content(size))
	}
}

// content returns the same incompressible bytes for the same size.
func content(size int) []byte {
	b := make([]byte, size)
	seed := [32]byte{byte(size)}
	_, _ = rand.NewChaCha8(seed).Read(b) // never fails
	return b
}

// sameTrees fails unless both directories hold the same files.
func (c *tool) sameTrees(want, got string) {
	c.t.Helper()
	a, b := c.tree(want), c.tree(got)
	if !maps.Equal(a, b) {
		c.t.Errorf("%s and %s differ:\n%v\n%v", want, got, a, b)
	}
	if len(a) == 0 {
		c.t.Errorf("%s is empty", want)
	}
}

// tree returns the hash of every file below the directory.
func (c *tool) tree(dir string) map[string]string {
	c.t.Helper()
	out := map[string]string{}
	root := os.DirFS(filepath.Join(c.dir, dir))
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := fs.ReadFile(root, path)
		out[path] = fmt.Sprintf("%x", sha256.Sum256(b))
		return err
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return out
}
