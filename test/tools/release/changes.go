package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// writeChanges writes what CHANGELOG.md says of a version. A release without that
// is an error.
func writeChanges(out io.Writer, root, version string) error {
	text, err := os.ReadFile(filepath.Join(root, "CHANGELOG.md")) //nolint:gosec // a file of the repository
	if err != nil {
		return err
	}
	heading := regexp.MustCompile(`(?m)^## \[` + regexp.QuoteMeta(version) + `\].*$`)
	at := heading.FindIndex(text)
	if at == nil {
		return fmt.Errorf("CHANGELOG.md says nothing of %s", version)
	}
	part, _, _ := strings.Cut(string(text[at[1]:]), "\n## ")
	if part = strings.TrimSpace(part); part == "" {
		return fmt.Errorf("CHANGELOG.md says nothing below %s", version)
	}
	_, err = fmt.Fprintln(out, part)
	return err
}
