package cosi

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// socketPath reads an endpoint, unix:///absolute/path, into the path of its
// socket. What the path ends in does not matter to this driver; the v1alpha2
// sidecar wants ".sock".
func socketPath(endpoint string) (string, error) {
	bad := func(format string, args ...any) (string, error) {
		return "", fmt.Errorf("endpoint %q: %w: %s", endpoint, provider.ErrInvalidArgument, fmt.Sprintf(format, args...))
	}
	path, ok := strings.CutPrefix(endpoint, "unix://")
	switch {
	case !ok:
		return bad("want unix:// and an absolute path, for example unix:///var/lib/cosi/cosi.sock")
	case !filepath.IsAbs(path):
		return bad("the path is not absolute: want three slashes, as in unix:///var/lib/cosi/cosi.sock")
	case strings.HasSuffix(path, "/"):
		return bad("the path names a directory, want a file in it")
	case strings.ContainsRune(path, 0):
		return bad("the path holds a NUL byte")
	}
	path = filepath.Clean(path)
	// The system's limit counts the NUL byte that ends the path.
	if limit := len(syscall.RawSockaddrUnix{}.Path) - 1; len(path) > limit {
		return bad("the path has %d bytes, a unix socket's may have %d: choose a shorter directory", len(path), limit)
	}
	return path, nil
}
