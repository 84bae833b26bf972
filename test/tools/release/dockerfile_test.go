package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"github.com/moby/buildkit/frontend/dockerfile/shell"
)

// root is the repository.
const root = "../../.."

// dockerfile reads the two stages and the arguments above them.
func dockerfile(t *testing.T) (build, final instructions.Stage, global variables) {
	t.Helper()
	file, err := os.Open(filepath.Join(root, "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	parsed, err := parser.Parse(file)
	if err != nil {
		t.Fatal(err)
	}
	stages, args, err := instructions.Parse(parsed.AST, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(stages) != 2 {
		t.Fatalf("%d stages, want one that builds and one that is the image", len(stages))
	}
	for _, a := range args {
		for _, pair := range a.Args {
			global = append(global, pair.Key+"="+pair.ValueString())
		}
	}
	return stages[0], stages[1], global
}

// variables are an environment: KEY=VALUE, of which the last counts.
type variables []string

func (v variables) Get(key string) (string, bool) {
	for _, pair := range slices.Backward(v) {
		if value, ok := strings.CutPrefix(pair, key+"="); ok {
			return value, true
		}
	}
	return "", false
}

func (v variables) Keys() []string {
	var keys []string
	for _, pair := range v {
		key, _, _ := strings.Cut(pair, "=")
		keys = append(keys, key)
	}
	return keys
}

func (v variables) expand(word string) (string, error) {
	out, _, err := shell.NewLex('\\').ProcessWord(word, v)
	return out, err
}

// stage runs a stage's instructions in a directory that stands for its root.
type stage struct {
	dir     string   // of this stage
	context string   // what .dockerignore lets in
	from    string   // the directory of the other stage
	base    []string // the environment of the machine that its commands need
	given   variables
	env     variables
	workdir string
	config  v1.Config
}

// run refuses instructions that it does not know, so that none is left out.
func (s *stage) run(t *testing.T, of instructions.Stage) error {
	for _, command := range of.Commands {
		if e, ok := command.(interface {
			Expand(instructions.SingleWordExpander) error
		}); ok {
			if err := e.Expand(s.env.expand); err != nil {
				return err
			}
		}
		if err := s.step(t, command); err != nil {
			return fmt.Errorf("%v: %w", command, err)
		}
	}
	return nil
}

func (s *stage) step(t *testing.T, command instructions.Command) error {
	switch c := command.(type) {
	case *instructions.ArgCommand:
		for _, a := range c.Args {
			if value, ok := s.given.Get(a.Key); ok {
				s.env = append(s.env, a.Key+"="+value)
			} else if a.Value != nil {
				s.env = append(s.env, a.Key+"="+*a.Value)
			}
		}
	case *instructions.EnvCommand:
		for _, e := range c.Env {
			s.env = append(s.env, e.Key+"="+e.Value)
		}
	case *instructions.WorkdirCommand:
		s.workdir = c.Path
		return os.MkdirAll(s.inside(""), 0o750)
	case *instructions.CopyCommand:
		return s.copy(c)
	case *instructions.RunCommand:
		cmd := exec.CommandContext(t.Context(), "sh", "-c", strings.Join(c.CmdLine, " "))
		cmd.Dir, cmd.Env = s.inside(""), slices.Concat(s.base, s.env)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%w\n%s", err, out)
		}
	case *instructions.LabelCommand:
		for _, l := range c.Labels {
			if s.config.Labels == nil {
				s.config.Labels = map[string]string{}
			}
			s.config.Labels[l.Key] = l.Value
		}
	case *instructions.UserCommand:
		s.config.User = c.User
	case *instructions.EntrypointCommand:
		s.config.Entrypoint = c.CmdLine
	case *instructions.CmdCommand:
		s.config.Cmd = c.CmdLine
	default:
		return errors.New("this test does not know the instruction")
	}
	return nil
}

// inside is where a path of the stage lies on this machine.
func (s *stage) inside(name string) string {
	if !path.IsAbs(name) {
		name = path.Join(s.workdir, name)
	}
	return filepath.Join(s.dir, filepath.FromSlash(name))
}

func (s *stage) copy(c *instructions.CopyCommand) error {
	for _, source := range c.SourcePaths {
		from := filepath.Join(s.context, source)
		if c.From != "" {
			from = filepath.Join(s.from, source)
		}
		to := s.inside(c.DestPath)
		info, err := os.Stat(from)
		if err != nil {
			return err
		}
		if info.IsDir() {
			if err := os.CopyFS(to, os.DirFS(from)); err != nil {
				return err
			}
			continue
		}
		if strings.HasSuffix(c.DestPath, "/") {
			to = filepath.Join(to, filepath.Base(source))
		}
		if err := copyFile(from, to, info.Mode()); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(from, to string, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, mode)
}

// copyContext copies what .dockerignore lets in. It has to shut out everything, and
// then let in paths by their names.
func copyContext(t *testing.T, to string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, ".dockerignore"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if lines[0] != "*" {
		t.Fatalf(".dockerignore begins with %q", lines[0])
	}
	for _, line := range lines[1:] {
		name, ok := strings.CutPrefix(line, "!")
		if !ok || strings.ContainsAny(name, "*?[") {
			t.Fatalf(".dockerignore: %q names no path that is let in", line)
		}
		from := filepath.Join(root, name)
		info, err := os.Stat(from)
		if err != nil {
			t.Fatal(err)
		}
		if info.IsDir() {
			err = os.CopyFS(filepath.Join(to, name), os.DirFS(from))
		} else {
			err = copyFile(from, filepath.Join(to, name), info.Mode())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
