package clients

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

const (
	// runLimit bounds one run of a client; the slowest takes seconds.
	runLimit = 5 * time.Minute

	smallSize = 39
	// bigSize is more than any client here uploads in one part.
	bigSize = 6 << 20
	// partSize is the least that S3 takes, for clients that want to be told.
	partSize = 5 << 20

	// gotten is the directory that downloads go to.
	gotten = "got"

	// hidden is an object whose name no command line holds, so a client that
	// prints it has listed the bucket.
	hidden = "theirs/only-a-list-shows-me"
)

// session is a client at work in a cloud of its own, with a key that the driver
// granted, beside somebody else who uses the same bucket.
type session struct {
	t      *testing.T
	cloud  *cloud
	key    access
	others access      // a ReadWrite access
	other  *minio.Core // with that

	path      string   // of the program; "" for a library
	dir       string   // work files and the program's home
	env       []string // of the program
	flags     []string // after the program's name
	checksums bool     // a library's own settings
	// refusals of the same request end the program; 0 lets it go on
	refusals int
	printed  string // by the program, in the latest operation
}

// tree is a directory that clients copy: names that need encoding, an empty
// file, and one below another.
func tree() map[string]int {
	return map[string]int{"small.txt": smallSize, "empty": 0, "sub/a b+c%20&=ü.txt": 5000}
}

// doomed are objects that are there to be deleted, below each prefix.
func doomed(prefix string) []string { return []string{prefix + "1", prefix + "2", prefix + "3"} }

func newSession(t *testing.T, p place, g grant, path string) *session {
	t.Helper()
	c := newCloud(t, p)
	s := &session{t: t, cloud: c, path: path, dir: t.TempDir()}
	s.key = c.grant(t, "the-client", g)
	s.others = c.grant(t, "the-other", readWrite())
	s.other = c.s3(t, s.others, credentials.NewStaticV4)
	s.write("ca.pem", c.authority)
	// A program that leaves the loopback fails at a proxy that is not there.
	s.env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "TMPDIR=" + s.dir, "XDG_CACHE_HOME=" + s.dir, "LC_ALL=C.UTF-8",
		"HTTP_PROXY=http://127.0.0.1:1", "HTTPS_PROXY=http://127.0.0.1:1", "NO_PROXY=127.0.0.1",
	}
	objects := map[string]int{"theirs/small.txt": smallSize, "theirs/big.bin": bigSize, hidden: smallSize}
	for _, key := range slices.Concat(doomed("delete/one/"), doomed("delete/batch/"), doomed("delete/tree/")) {
		objects[key] = smallSize
	}
	s.file("src/small.txt", smallSize)
	s.file("src/big.bin", bigSize)
	for name, size := range tree() {
		s.file("src/tree/"+name, size)
		objects["tree/"+name] = size
	}
	for key, size := range objects {
		_, err := s.other.Client.PutObject(t.Context(), bucketName, key, bytes.NewReader(content(size)), int64(size), minio.PutObjectOptions{PartSize: partSize})
		if err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// run starts the program; the error has what it printed.
func (s *session) run(args ...string) error { return s.pipe(nil, args...) }

// pipe is run with a standard input.
func (s *session) pipe(stdin []byte, args ...string) error {
	ctx, cancel := context.WithTimeout(s.t.Context(), runLimit)
	defer cancel()
	defer s.cloud.refused.end(s.refusals, cancel)()
	cmd := exec.CommandContext(ctx, s.path, append(slices.Clone(s.flags), args...)...)
	cmd.Dir, cmd.Env, cmd.Stdin = s.dir, s.env, bytes.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	s.printed = stdout.String()
	if err != nil {
		const most = 2000
		said := stdout.String() + stderr.String()
		return fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, said[:min(len(said), most)])
	}
	return nil
}

// prints runs the program, which must print all the words.
func (s *session) prints(words []string, args ...string) error {
	if err := s.run(args...); err != nil {
		return err
	}
	for _, w := range words {
		if !strings.Contains(s.printed, w) {
			return fmt.Errorf("%s: %q is not in the output:\n%s", strings.Join(args, " "), w, s.printed)
		}
	}
	return nil
}

// write makes a file of the work directory.
func (s *session) write(name string, b []byte) {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *session) file(name string, size int) {
	s.t.Helper()
	s.write(name, content(size))
}

// random is as much as any object here holds. Clients cannot compress it.
var random = sync.OnceValue(func() []byte {
	b := make([]byte, bigSize)
	_, _ = rand.NewChaCha8([32]byte{}).Read(b) // never fails
	return b
})

// content returns the same bytes for the same size. They are not to be changed.
func content(size int) []byte { return random()[bigSize-size:] }

// same fails unless b is the content of that size.
func same(what string, b []byte, size int) error {
	if !bytes.Equal(b, content(size)) {
		return fmt.Errorf("%s: %d bytes differ from the %d sent", what, len(b), size)
	}
	return nil
}

// got fails unless the work directory's file is the content of that size.
func (s *session) got(name string, size int) error {
	b, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		return err
	}
	return same(name, b, size)
}

// gotTree fails unless the directory holds the tree and nothing else.
func (s *session) gotTree(dir string) error {
	var faults []error
	found := 0
	err := filepath.WalkDir(filepath.Join(s.dir, dir), func(_ string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			found++
		}
		return err
	})
	if found != len(tree()) {
		err = errors.Join(err, fmt.Errorf("%s has %d files", dir, found))
	}
	for name, size := range tree() {
		faults = append(faults, s.got(dir+"/"+name, size))
	}
	return errors.Join(err, errors.Join(faults...))
}

// stored fails unless the other finds that content under the key.
func (s *session) stored(key string, size int) error {
	body, _, _, err := s.other.GetObject(s.t.Context(), bucketName, key, minio.GetObjectOptions{})
	if err != nil {
		return fmt.Errorf("the other reads %s: %w", key, err)
	}
	defer func() { _ = body.Close() }()
	b, err := io.ReadAll(body)
	if err != nil {
		return fmt.Errorf("the other reads %s: %w", key, err)
	}
	return same(key, b, size)
}

// storedTree is stored for the tree below a prefix.
func (s *session) storedTree(prefix string) error {
	var faults []error
	for name, size := range tree() {
		faults = append(faults, s.stored(prefix+name, size))
	}
	return errors.Join(faults...)
}

// gone fails unless the other finds none of the keys.
func (s *session) gone(keys ...string) error {
	there := s.objects()
	for _, k := range keys {
		if _, ok := there[k]; ok {
			return fmt.Errorf("%s is still there", k)
		}
	}
	return nil
}

// objects returns the ETags of all objects by key, as the other sees them.
func (s *session) objects() map[string]string {
	s.t.Helper()
	out := map[string]string{}
	for o := range s.other.Client.ListObjects(s.t.Context(), bucketName, minio.ListObjectsOptions{Recursive: true}) {
		if o.Err != nil {
			s.t.Fatal(o.Err)
		}
		out[o.Key] = o.ETag
	}
	return out
}

// called fails unless the client made use of the S3 operation.
func (s *session) called(operation string) error {
	for _, call := range s.cloud.Calls() {
		if call.Operation == operation {
			return nil
		}
	}
	return fmt.Errorf("no call of %s", operation)
}

// then returns the first error of the steps and does not go beyond it.
func then(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// leaks tells what an operation that was refused has brought to light.
func (s *session) leaks(before map[string]string) error {
	var faults []error
	if after := s.objects(); !maps.Equal(before, after) {
		faults = append(faults, fmt.Errorf("it changed the bucket from %v to %v", before, after))
	}
	if strings.Contains(s.printed, hidden) {
		faults = append(faults, errors.New("it listed the bucket"))
	}
	err := filepath.WalkDir(filepath.Join(s.dir, gotten), func(path string, d os.DirEntry, err error) error {
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		i, err := d.Info()
		if err == nil && i.Size() > 0 {
			err = fmt.Errorf("it read %d bytes into %s", i.Size(), filepath.Base(path))
		}
		return err
	})
	return errors.Join(append(faults, err)...)
}
