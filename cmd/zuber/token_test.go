package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/zuber-storage/zuber/pkg/provider"
)

func TestParseToken(t *testing.T) {
	for raw, want := range map[string]string{
		"abc":              "abc",
		"  aB3-._ \r\n":    "aB3-._",
		"":                 "",
		" \n\t":            "",
		"abc\ndef":         "",
		"abc def":          "",
		"Bearer abc":       "",
		"abc\x00":          "",
		"äbc":              "",
		`"abc"`:            "",
		"token: abc":       "",
		"abc\n# a comment": "",
	} {
		got, err := parseToken(raw)
		if got.Reveal() != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", raw, got.Reveal(), err)
		}
		if err != nil && strings.Contains(err.Error(), "abc") {
			t.Errorf("the error shows the value: %v", err)
		}
	}
}

// To open a pipe would block for ever.
func TestTokenFileThatIsAPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openTokenFile(path); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("got %v, want a refusal", err)
	}
}

func TestTokenFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	writeFile(t, path, "first\n")
	file, err := openTokenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := func(want string) {
		t.Helper()
		got, err := file.Token()
		if err != nil || got.Reveal() != want {
			t.Errorf("token %q, %v; want %q", got.Reveal(), err, want)
		}
	}
	fails := func(why string) {
		t.Helper()
		got, err := file.Token()
		if !errors.Is(err, provider.ErrUnauthenticated) || !got.Empty() {
			t.Fatalf("token %q, %v; want ErrUnauthenticated and none", got.Reveal(), err)
		}
		if !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), why) {
			t.Errorf("error %q, want the path and %q", err, why)
		}
	}
	want("first")

	writeFile(t, path, "second, longer than the first")
	fails("a character that no token has")
	writeFile(t, path, "second-longer")
	want("second-longer")

	writeFile(t, path, " \n")
	fails("it is empty")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	fails("no such file or directory")
	writeFile(t, path, "third")
	want("third")

	writeFile(t, path, strings.Repeat("x", tokenLimit+1))
	fails("larger than 4096 bytes")
	writeFile(t, path, "fourth")
	want("fourth")
}

// TestTokenFileIsReadOnlyOnChange shows that a file with the same state is not
// read, and that each part of the state counts.
func TestTokenFileIsReadOnlyOnChange(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "token")
	writeFile(t, path, "aaaa")
	moment := time.Now().Add(-time.Hour).Truncate(time.Second)
	touch := func(when time.Time) {
		t.Helper()
		if err := os.Chtimes(path, when, when); err != nil {
			t.Fatal(err)
		}
	}
	touch(moment)
	file, err := openTokenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := func(want string) {
		t.Helper()
		if got, err := file.Token(); err != nil || got.Reveal() != want {
			t.Errorf("token %q, %v; want %q", got.Reveal(), err, want)
		}
	}
	writeFile(t, path, "bbbb")
	touch(moment)
	want("aaaa") // same file, size and time: not read again
	touch(moment.Add(time.Second))
	want("bbbb")

	// Kubernetes swaps a link to a directory, so the new file may be of any time.
	writeFile(t, filepath.Join(dir, "new"), "cccc")
	if err := os.Chtimes(filepath.Join(dir, "new"), moment.Add(time.Second), moment.Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "new"), path); err != nil {
		t.Fatal(err)
	}
	want("cccc")
}

func TestTokenFileInParallel(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	writeFile(t, path, "token-0")
	file, err := openTokenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 50 {
				if token, err := file.Token(); err != nil || !strings.HasPrefix(token.Reveal(), "token-") {
					t.Errorf("%q, %v", token.Reveal(), err)
				}
			}
		})
	}
	for i := range 50 {
		next := path + ".next"
		writeFile(t, next, "token-"+strings.Repeat("9", i+1))
		if err := os.Rename(next, path); err != nil {
			t.Fatal(err)
		}
	}
	group.Wait()
}

// The name of the file is set where a token is meant, so the two get mixed up.
func TestTokenInPlaceOfItsFile(t *testing.T) {
	token := strings.Repeat("aB3", 12)
	_, err := openTokenFile(filepath.Join(t.TempDir(), token))
	if !errors.Is(err, provider.ErrUnauthenticated) || strings.Contains(err.Error(), token) || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("got %v, want the cause without the token", err)
	}
}

func TestTokenFileOfAnotherKind(t *testing.T) {
	if _, err := openTokenFile(t.TempDir()); !errors.Is(err, provider.ErrUnauthenticated) {
		t.Errorf("a directory: %v", err)
	}
}
