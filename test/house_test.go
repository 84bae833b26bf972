// Package test holds what is true of the repository as a whole.
package test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	root     = ".."
	module   = "github.com/zuber-storage/zuber"
	maxLines = 500
)

// arrows says what a package of ours, and those below it without a row of their
// own, may import of ours. A name is one package; with "/..." it is also
// everything below.
var arrows = map[string][]string{
	"cmd/zuber":                {"pkg/..."},
	"pkg/cosi":                 {"pkg/cosi/...", "pkg/driver", "pkg/provider"},
	"pkg/driver":               {"pkg/provider"},
	"pkg/companion":            {"pkg/companion/...", "pkg/provider", "pkg/driver"},
	"pkg/gc":                   {"pkg/provider"},
	"pkg/provider":             {},
	"pkg/provider/transport":   {},
	"pkg/provider/conformance": {"pkg/provider", "pkg/s3"},
	"pkg/provider/cloudscale":  {"pkg/provider", "pkg/provider/transport", "pkg/s3"},
	"pkg/provider/stackit":     {"pkg/provider", "pkg/provider/transport", "pkg/s3"},
	"pkg/s3":                   {},
	"pkg/emulator":             {"pkg/emulator/..."},
	"test":                     {},
	"test/docs":                {},
	"test/e2e/cluster":         {"pkg/emulator"},
	"test/e2e/playground":      {"test/e2e/cluster"},
	"test/e2e/v1alpha2":        {"pkg/cosi/v1alpha2pb", "test/e2e/cluster"},
}

// fences says where alone a module may be imported.
var fences = map[string][]string{
	"github.com/cloudscale-ch":                           {"pkg/provider/cloudscale"},
	"github.com/stackitcloud":                            {"pkg/provider/stackit"},
	"github.com/minio":                                   {"pkg/s3"},
	"google.golang.org/grpc":                             {"pkg/cosi", "test/e2e/v1alpha2"},
	"google.golang.org/protobuf":                         {"pkg/cosi"},
	"sigs.k8s.io/container-object-storage-interface":     {"pkg/cosi"},
	"k8s.io/client-go":                                   {"pkg/companion", "cmd"},
	"k8s.io/api":                                         {"pkg/companion", "cmd"},
	"k8s.io/apimachinery":                                {"pkg/companion", "cmd"},
	"sigs.k8s.io/controller-runtime":                     {"pkg/companion", "cmd"},
	"github.com/aws":                                     {},
	"sigs.k8s.io/container-object-storage-interface-api": {},
}

type source struct {
	path, dir string
	test      bool
	file      *ast.File
	lines     int
}

// sources parses every Go file of the root module.
func sources(t *testing.T) []source {
	t.Helper()
	var all []source
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			nested := path != root && exists(filepath.Join(path, "go.mod"))
			if nested || path != root && strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		all = append(all, source{rel, rel[:strings.LastIndex(rel, "/")], strings.HasSuffix(rel, "_test.go"), file, bytes.Count(text, []byte("\n"))})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 20 {
		t.Fatalf("found %d Go files: looked in the wrong place", len(all))
	}
	return all
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// below reports whether name is dir or lies in it.
func below(name, dir string) bool { return name == dir || strings.HasPrefix(name, dir+"/") }

func TestImportArrowsAndFences(t *testing.T) {
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		allowed, known := arrowsOf(s.dir)
		if !known {
			t.Errorf("%s: package %s has no row in arrows", s.path, s.dir)
		}
		for _, i := range s.file.Imports {
			path, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if ours, ok := strings.CutPrefix(path, module+"/"); ok {
				if !covered(ours, allowed) {
					t.Errorf("%s imports %s: %s may import only %v of ours", s.path, path, s.dir, allowed)
				}
				continue
			}
			for fenced, dirs := range fences {
				if below(path, fenced) && !slices.ContainsFunc(dirs, func(dir string) bool { return below(s.dir, dir) }) {
					t.Errorf("%s imports %s, which stays inside %v", s.path, path, dirs)
				}
			}
			if below(s.dir, "pkg/emulator") && strings.Contains(strings.Split(path, "/")[0], ".") {
				t.Errorf("%s imports %s: the emulator has no dependency", s.path, path)
			}
		}
	}
}

// covered reports whether one of the arrows reaches the package.
func covered(name string, allowed []string) bool {
	return slices.ContainsFunc(allowed, func(arrow string) bool {
		dir, whole := strings.CutSuffix(arrow, "/...")
		return name == dir || whole && below(name, dir)
	})
}

// An arrow to the contract is none to the adapters that lie below it.
func TestArrowsReachNoAdapter(t *testing.T) {
	for _, from := range []string{"pkg/cosi", "pkg/driver", "pkg/companion", "pkg/gc", "pkg/provider/conformance", "pkg/provider/cloudscale", "pkg/provider/stackit"} {
		allowed, _ := arrowsOf(from)
		for _, to := range []string{"pkg/provider/cloudscale", "pkg/provider/stackit", "pkg/provider/conformance"} {
			if covered(to, allowed) {
				t.Errorf("%s may import %s", from, to)
			}
		}
		if !covered("pkg/provider", allowed) {
			t.Errorf("%s may not import the contract", from)
		}
	}
}

// arrowsOf returns the row of the nearest package above dir.
func arrowsOf(dir string) ([]string, bool) {
	for d := dir; ; d = filepath.ToSlash(filepath.Dir(d)) {
		if a, ok := arrows[d]; ok {
			return a, true
		}
		if d == "." {
			return nil, false
		}
	}
}

func TestFilesStaySmall(t *testing.T) {
	for _, s := range sources(t) {
		if s.lines > maxLines && !ast.IsGenerated(s.file) {
			t.Errorf("%s has %d lines, more than %d", s.path, s.lines, maxLines)
		}
	}
}

// TestEnvironmentIsReadInCmd also holds the rules that nothing but main ends
// the process and that no package does work when it is imported.
func TestEnvironmentIsReadInCmd(t *testing.T) {
	forbidden := map[string]bool{
		"os.Getenv": true, "os.LookupEnv": true, "os.Environ": true, "os.ExpandEnv": true, "os.Exit": true,
		"log.Fatal": true, "log.Fatalf": true, "klog.Fatal": true, "klog.Fatalf": true, "klog.Exit": true,
	}
	for _, s := range sources(t) {
		if s.test || below(s.dir, "cmd") {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && forbidden[x.Name+"."+n.Sel.Name] && !ends(s, x.Name+"."+n.Sel.Name) {
					t.Errorf("%s uses %s.%s outside cmd", s.path, x.Name, n.Sel.Name)
				}
			case *ast.FuncDecl:
				if n.Name.Name == "init" && n.Recv == nil && !ast.IsGenerated(s.file) {
					t.Errorf("%s has an init function", s.path)
				}
			case *ast.CallExpr:
				if f, ok := n.Fun.(*ast.Ident); ok && f.Name == "panic" && !ast.IsGenerated(s.file) {
					t.Errorf("%s panics", s.path)
				}
			}
			return true
		})
	}
}

// ends reports whether a command of the tests ends its own process.
func ends(s source, call string) bool { return s.file.Name.Name == "main" && call == "os.Exit" }

func TestTopLevelIsAsDesigned(t *testing.T) {
	want := []string{"cmd", "pkg", "config", "test", "docs", "Justfile", "Justfile.vars.just", "Dockerfile", "go.mod", "go.sum", "README.md", "LICENSE", "CHANGELOG.md", "SECURITY.md"}
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") && e.Name() != "bin" && e.Name() != "dist" && !slices.Contains(want, e.Name()) {
			t.Errorf("%s does not belong at the top level", e.Name())
		}
	}
	for _, name := range want {
		if !exists(filepath.Join(root, name)) {
			t.Errorf("%s is missing", name)
		}
	}
}

// TestJustfileRecipesAreOneLine keeps the Justfile a list of plain commands.
func TestJustfileRecipesAreOneLine(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "Justfile"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	body := 0
	for i, line := range lines {
		switch {
		case strings.HasPrefix(line, "    "):
			if body++; body > 1 {
				t.Errorf("Justfile:%d: the recipe has more than one line", i+1)
			}
		case strings.Contains(line, ":") && !strings.HasPrefix(line, "#") && line != "":
			body = 0
			if !strings.HasPrefix(line, "_") && (i == 0 || !strings.HasPrefix(lines[i-1], "# ")) {
				t.Errorf("Justfile:%d: no comment line above the recipe", i+1)
			}
		}
	}
}
