package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// command is what is released, and architectures are those it is released for.
const command = "./cmd/zuber"

var architectures = []string{"amd64", "arm64"}

// allowed are the licences of what may be linked, as SPDX calls them. What is not
// here is refused, whatever it is.
var allowed = []string{"0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT"}

// standard is the name of the part that Go's own library is.
const standard = "std"

// part is a module of which something is linked.
type part struct {
	Path, Version string
	Licences      []string          // as SPDX calls them, sorted
	Texts         map[string]string // of licences and notices, by their file's name in the module
}

// licenceFile are the names under which texts of licences and notices go.
var licenceFile = regexp.MustCompile(`(?i)^(un)?(licen[cs]e|copying|notice)s?([-._][a-z0-9-]+)*(\.(md|txt))?$`)

// listed is a package as the go command lists it.
type listed struct {
	Dir      string
	Standard bool
	Module   *struct {
		Path, Version, Dir string
		Main               bool
		Replace            *struct{ Path string }
	}
}

// linked lists the modules of which a package is linked into the command, on any
// architecture, with the licences that hold for those packages.
func linked(ctx context.Context, root string) ([]part, error) {
	parts := map[string]*part{}
	for _, architecture := range architectures {
		packages, err := list(ctx, root, architecture)
		if err != nil {
			return nil, err
		}
		for _, p := range packages {
			if err := add(ctx, root, parts, p); err != nil {
				return nil, err
			}
		}
	}
	var all []part
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		p := parts[name]
		var err error
		p.Licences, err = classify(p.Texts)
		if err != nil {
			faults = append(faults, fmt.Errorf("%s %s: %w", p.Path, p.Version, err))
		}
		all = append(all, *p)
	}
	return all, errors.Join(faults...)
}

// list asks the go command what the command is made of.
func list(ctx context.Context, root, architecture string) ([]listed, error) {
	text, err := goTool(ctx, root, []string{"GOOS=linux", "GOARCH=" + architecture, "CGO_ENABLED=0"}, "list", "-deps", "-json=Dir,Standard,Module", command)
	if err != nil {
		return nil, err
	}
	var all []listed
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
}

// add adds the texts that lie in a package's directory and above it, up to that of
// its module.
func add(ctx context.Context, root string, parts map[string]*part, p listed) error {
	path, version, top := standard, "", ""
	switch {
	case p.Standard:
		if parts[standard] != nil {
			return nil
		}
		out, err := goTool(ctx, root, nil, "env", "GOROOT", "GOVERSION")
		if err != nil {
			return err
		}
		lines := strings.Split(string(out), "\n")
		top, version = strings.TrimSpace(lines[0]), strings.TrimSpace(lines[1])
		p.Dir = top
	case p.Module.Main:
		return nil
	case p.Module.Replace != nil:
		return fmt.Errorf("%s is replaced: the list of parts would name what is not linked", p.Module.Path)
	default:
		path, version, top = p.Module.Path, p.Module.Version, p.Module.Dir
	}
	if parts[path] == nil {
		parts[path] = &part{Path: path, Version: version, Texts: map[string]string{}}
	}
	for dir := p.Dir; ; dir = filepath.Dir(dir) {
		if err := addTexts(parts[path].Texts, top, dir); err != nil {
			return err
		}
		if dir == top || len(dir) < len(top) {
			return nil
		}
	}
}

func addTexts(texts map[string]string, top, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() || filepath.Ext(e.Name()) == ".go" || !licenceFile.MatchString(e.Name()) {
			continue
		}
		path := filepath.Join(dir, e.Name())
		name, err := filepath.Rel(top, path)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path) //nolint:gosec // a file of a module
		if err != nil {
			return err
		}
		texts[filepath.ToSlash(name)] = string(text)
	}
	return nil
}

// known is how much of a text must be that of licences, in percent, for it to be
// one; the rest is names of holders and the like.
const known = 70

// classify names the licences of texts. A notice is none, but one of the texts must
// be, and all that are must be allowed.
func classify(texts map[string]string) ([]string, error) {
	found := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if strings.HasPrefix(strings.ToLower(filepath.Base(name)), "notice") {
			continue
		}
		coverage := licensecheck.Scan([]byte(texts[name]))
		if coverage.Percent < known {
			return nil, fmt.Errorf("%s is of no known licence (%.0f %% known)", name, coverage.Percent)
		}
		for _, m := range coverage.Match {
			if m.IsURL {
				continue
			}
			if !slices.Contains(allowed, m.ID) {
				return nil, fmt.Errorf("%s: the licence %s is not among those allowed, %s", name, m.ID, strings.Join(allowed, ", "))
			}
			found[m.ID] = true
		}
	}
	if len(found) == 0 {
		return nil, errors.New("no licence found")
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// writeNotices writes every text once, below the parts that have it.
func writeNotices(out io.Writer, parts []part) error {
	owners := map[string][]string{}
	for _, p := range parts {
		for name, text := range p.Texts {
			text = strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n"))
			owners[text] = append(owners[text], fmt.Sprintf("%s %s (%s)", p.Path, p.Version, name))
		}
	}
	for _, names := range owners {
		slices.Sort(names)
	}
	texts := slices.SortedFunc(maps.Keys(owners), func(a, b string) int { return cmp.Compare(owners[a][0], owners[b][0]) })
	if _, err := fmt.Fprintln(out, "Zuber is linked with these modules. What follows are their licences and notices."); err != nil {
		return err
	}
	rule := strings.Repeat("=", 80)
	for _, text := range texts {
		if _, err := fmt.Fprintf(out, "\n%s\n%s\n\n%s\n", rule, strings.Join(owners[text], "\n"), text); err != nil {
			return err
		}
	}
	return nil
}

// goTool runs the go command in a directory, with more variables, and returns what
// it writes.
func goTool(ctx context.Context, dir string, variables []string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // the arguments are this command's own
	cmd.Dir = dir
	cmd.Env = append(cmd.Environ(), append(variables, "GOFLAGS=-mod=readonly", "GOWORK=off")...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, &stderr)
	}
	return out, nil
}
