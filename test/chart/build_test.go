package chart

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/zuber-storage/zuber/test/e2e/cluster"
)

// built builds programs of test/tools, or finds them built.
func built[T any](t *testing.T, build func(ctx context.Context, root string, log io.Writer) (T, error)) T {
	t.Helper()
	if testing.Short() {
		t.Skip("it builds other programs")
	}
	dir, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	made, err := build(t.Context(), dir, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func binaries(t *testing.T) cluster.Binaries {
	t.Helper()
	return built(t, cluster.Build)
}
