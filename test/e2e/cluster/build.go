package cluster

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// kubernetesVersion is what the programs call themselves; kubectl cannot read
// the version of a server that was built without one.
const kubernetesVersion = "v1.36.3"

// Binaries are the paths of what Build makes.
type Binaries struct {
	Etcd, APIServer, ControllerManager, Kubectl string
	COSIController, COSISidecar                 string
	// Upstream is a directory with upstream's kustomization, and what it needs.
	Upstream string
}

// module is one of the modules under test/tools and what is made of it.
type module struct {
	name     string
	packages map[string]string // package by the name of its program
	ldflags  string
	// copies are directories of other modules: the module's path, the directory
	// in it and where its copy goes.
	copies [][3]string
}

const upstreamModule = "sigs.k8s.io/container-object-storage-interface"

func kubernetesModule() module {
	return module{
		name: "kubernetes",
		packages: map[string]string{
			"etcd":                    "go.etcd.io/etcd/server/v3",
			"kube-apiserver":          "k8s.io/kubernetes/cmd/kube-apiserver",
			"kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
			"kubectl":                 "k8s.io/kubernetes/cmd/kubectl",
		},
		ldflags: "-s -w -X k8s.io/component-base/version.gitVersion=" + kubernetesVersion,
	}
}

func cosiModule() module {
	return module{
		name:     "cosi",
		packages: map[string]string{"cosi-controller": "./cosi-controller", "cosi-sidecar": "./cosi-sidecar"},
		ldflags:  "-s -w",
		copies: [][3]string{
			{upstreamModule, ".", "upstream"},
			{upstreamModule + "/client", "config/crd", "upstream/client/config/crd"},
		},
	}
}

// Build makes the programs of a cluster, or finds them in the user's cache
// directory, where they stay. The first time takes minutes. Any number of
// processes may call it at once: one builds, the others wait.
func Build(ctx context.Context, root string, log io.Writer) (Binaries, error) {
	kubernetes, err := kubernetesModule().build(ctx, root, log)
	if err != nil {
		return Binaries{}, err
	}
	cosi, err := cosiModule().build(ctx, root, log)
	if err != nil {
		return Binaries{}, err
	}
	return Binaries{
		Etcd:              filepath.Join(kubernetes, "etcd"),
		APIServer:         filepath.Join(kubernetes, "kube-apiserver"),
		ControllerManager: filepath.Join(kubernetes, "kube-controller-manager"),
		Kubectl:           filepath.Join(kubernetes, "kubectl"),
		COSIController:    filepath.Join(cosi, "cosi-controller"),
		COSISidecar:       filepath.Join(cosi, "cosi-sidecar"),
		Upstream:          filepath.Join(cosi, "upstream"),
	}, nil
}

// BuildHelm makes the program of test/tools/helm, as Build does, and returns its
// path.
func BuildHelm(ctx context.Context, root string, log io.Writer) (string, error) {
	dir, err := module{name: "helm", packages: map[string]string{"helm": "."}, ldflags: "-s -w"}.build(ctx, root, log)
	return filepath.Join(dir, "helm"), err
}

// build returns the directory with the module's programs.
func (m module) build(ctx context.Context, root string, log io.Writer) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("cache of built programs: %w", err)
	}
	cache = filepath.Join(cache, "zuber-e2e")
	if err := os.MkdirAll(cache, 0o750); err != nil {
		return "", err
	}
	source := filepath.Join(root, "test", "tools", m.name)
	key, err := m.key(source)
	if err != nil {
		return "", err
	}
	target := filepath.Join(cache, m.name+"-"+key)
	unlock, err := lockFile(ctx, filepath.Join(cache, m.name+".lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(target); err == nil {
		return target, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	start := time.Now()
	_, _ = fmt.Fprintf(log, "building %s into %s; the first time takes minutes\n", m.name, target)
	unfinished, err := os.MkdirTemp(cache, m.name+"-unfinished-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(unfinished) }()
	if err := m.fill(ctx, source, unfinished); err != nil {
		return "", fmt.Errorf("building %s in %s: %w", m.name, source, err)
	}
	if err := os.Rename(unfinished, target); err != nil {
		return "", err
	}
	_, _ = fmt.Fprintf(log, "built %s in %s\n", m.name, time.Since(start).Round(time.Second))
	return target, nil
}

// fill builds the programs into a directory and copies what goes with them.
func (m module) fill(ctx context.Context, source, target string) error {
	for name, pkg := range m.packages {
		args := []string{"build", "-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags", m.ldflags, "-o", filepath.Join(target, name), pkg}
		if _, err := goTool(ctx, source, "CGO_ENABLED=0", args...); err != nil {
			return err
		}
	}
	for _, c := range m.copies {
		out, err := goTool(ctx, source, "CGO_ENABLED=0", "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", c[0])
		if err != nil {
			return err
		}
		from := filepath.Join(strings.TrimSpace(out), filepath.FromSlash(c[1]))
		if err := os.CopyFS(filepath.Join(target, filepath.FromSlash(c[2])), os.DirFS(from)); err != nil {
			return err
		}
	}
	return nil
}

// goTool runs the go command in a module, with one more variable, and returns
// what it writes.
func goTool(ctx context.Context, dir, variable string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // the arguments are this package's own
	cmd.Dir = dir
	cmd.Env = append(cmd.Environ(), variable, "GOFLAGS=", "GOWORK=off")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("%w; what is compiled so far is kept, so that the next try goes on from here: run it with a longer -timeout", context.Cause(ctx))
		}
		return "", fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, &stderr)
	}
	return stdout.String(), nil
}

// key tells what the programs depend on: the Go version, the build flags, and
// the module's own files, go.sum among them.
func (m module) key(source string) (string, error) {
	h := sha256.New()
	_, _ = fmt.Fprintln(h, runtime.Version(), runtime.GOOS, runtime.GOARCH, m.ldflags, m.packages, m.copies)
	err := filepath.WalkDir(source, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path) //nolint:gosec // a file of the module
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(h, "%s %x\n", strings.TrimPrefix(path, source), sha256.Sum256(text))
		return nil
	})
	if err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil))[:16], nil
}
