package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// tokenSource yields the token to use for the next request.
type tokenSource func() (provider.Secret, error)

// tokenLimit is far above any token's length: a file beyond it is something
// else.
const tokenLimit = 4096

// parseToken trims and checks a token. The error never shows it.
func parseToken(raw string) (provider.Secret, error) {
	token := strings.TrimSpace(raw)
	switch {
	case token == "":
		return provider.Secret{}, errors.New("it is empty")
	case !regexp.MustCompile(`^[a-zA-Z0-9._-]+$`).MatchString(token):
		return provider.Secret{}, errors.New("it holds a character that no token has: want letters, digits, '.', '_' and '-' only, on one line")
	}
	return provider.NewSecret(token), nil
}

// staticToken is a source that never changes.
func staticToken(token provider.Secret) tokenSource {
	return func() (provider.Secret, error) { return token, nil }
}

// tokenFile reads a token from a file, and again when the file has changed:
// a mounted Kubernetes Secret is replaced while the process runs.
type tokenFile struct {
	path string

	mu    sync.Mutex
	seen  os.FileInfo
	token provider.Secret
}

// openTokenFile reads the file once; a file that cannot be read or holds no
// token is an error.
func openTokenFile(path string) (*tokenFile, error) {
	t := &tokenFile{path: path}
	if _, err := t.Token(); err != nil {
		return nil, err
	}
	return t, nil
}

// Token returns the file's token. It is safe for concurrent use. The error
// wraps provider.ErrUnauthenticated.
func (t *tokenFile) Token() (provider.Secret, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	token, err := t.load()
	if err != nil {
		// The next call reads the file whatever its time says.
		t.seen = nil
		return provider.Secret{}, fmt.Errorf("%w: the token file %s: %w", provider.ErrUnauthenticated, shownPath(t.path), err)
	}
	return token, nil
}

// shownPath is the path for a message, unless it looks as if the token itself
// stood where its file belongs.
func shownPath(path string) string {
	if regexp.MustCompile(`^[A-Za-z0-9]{32,}$`).MatchString(filepath.Base(path)) {
		return "(not shown, the name looks like a token)"
	}
	return path
}

func (t *tokenFile) load() (provider.Secret, error) {
	info, err := os.Stat(t.path)
	if err != nil {
		return provider.Secret{}, errors.Unwrap(err)
	}
	// To open a pipe blocks until somebody writes, and what it gave is gone: the
	// token is read again and again.
	if !info.Mode().IsRegular() {
		return provider.Secret{}, errors.New("it is not a regular file")
	}
	if t.seen != nil && os.SameFile(t.seen, info) && info.ModTime().Equal(t.seen.ModTime()) && info.Size() == t.seen.Size() {
		return t.token, nil
	}
	raw, err := readLimited(t.path)
	if err != nil {
		return provider.Secret{}, err
	}
	token, err := parseToken(raw)
	if err != nil {
		return provider.Secret{}, err
	}
	// The file's state was taken before it was read: a change in between is
	// seen by the next call.
	t.seen, t.token = info, token
	return token, nil
}

func readLimited(path string) (string, error) {
	f, err := os.Open(path) //nolint:gosec // the path is the administrator's own configuration
	if err != nil {
		return "", errors.Unwrap(err)
	}
	defer func() { _ = f.Close() }()
	raw, err := io.ReadAll(io.LimitReader(f, tokenLimit+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("read: %w", err)
	case len(raw) > tokenLimit:
		return "", fmt.Errorf("it is larger than %d bytes: a token is not", tokenLimit)
	}
	return string(raw), nil
}
