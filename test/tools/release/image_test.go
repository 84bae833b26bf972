package main

import (
	"archive/tar"
	"bytes"
	"debug/buildinfo"
	"debug/elf"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

const (
	version = "1.2.3"
	commit  = "0123456789abcdef0123456789abcdef01234567"
	// limit bounds what a node pulls; the base, which is not here, takes 2 MiB of it
	// at the very most.
	limit = 30<<20 - 2<<20
)

// epoch is the time of everything in the image, as SOURCE_DATE_EPOCH gives it.
var epoch = time.Unix(1_700_000_000, 0).UTC()

// made is an image, and its files before they were packed.
type made struct {
	v1.Image
	files string
}

// makeImage does what the Dockerfile says, below a new directory, with an empty base.
func makeImage(t *testing.T, architecture string) made {
	t.Helper()
	build, final, _ := dockerfile(t)
	dir := t.TempDir()
	given := variables{"VERSION=" + version, "COMMIT=" + commit, "TARGETOS=linux", "TARGETARCH=" + architecture}
	var base []string
	for _, key := range []string{"PATH", "HOME", "GOPROXY", "GOSUMDB", "GONOSUMDB", "GOMODCACHE", "GOCACHE", "HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy", "SSL_CERT_FILE"} {
		if value, ok := os.LookupEnv(key); ok {
			base = append(base, key+"="+value)
		}
	}
	first := &stage{dir: filepath.Join(dir, "build"), context: filepath.Join(dir, "context"), base: base, given: given}
	copyContext(t, first.context)
	if err := first.run(t, build); err != nil {
		t.Fatal(err)
	}
	second := &stage{dir: filepath.Join(dir, "image"), from: first.dir, given: given}
	if err := second.run(t, final); err != nil {
		t.Fatal(err)
	}
	return made{assemble(t, second, architecture), second.dir}
}

// assemble packs what the stage holds into one layer.
func assemble(t *testing.T, s *stage, architecture string) v1.Image {
	t.Helper()
	var packed bytes.Buffer
	w := tar.NewWriter(&packed)
	err := filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == s.dir {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		header, err := tar.FileInfoHeader(info, "")
		if err != nil {
			return err
		}
		name, err := filepath.Rel(s.dir, path)
		if err != nil {
			return err
		}
		header.Name, header.ModTime, header.Uid, header.Gid, header.Uname, header.Gname = filepath.ToSlash(name), epoch, 0, 0, "", ""
		if err := w.WriteHeader(header); err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		_, err = w.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed.Bytes())), nil })
	if err != nil {
		t.Fatal(err)
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		t.Fatal(err)
	}
	file, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Created, file.Config = "linux", architecture, v1.Time{Time: epoch}, s.config
	if image, err = mutate.ConfigFile(image, file); err != nil {
		t.Fatal(err)
	}
	return image
}

// TestImage makes the image for each architecture, in two directories each.
func TestImage(t *testing.T) {
	for _, architecture := range architectures {
		t.Run(architecture, func(t *testing.T) {
			m := makeImage(t, architecture)
			t.Run("again", func(t *testing.T) {
				a, err := m.Digest()
				if err != nil {
					t.Fatal(err)
				}
				if b, err := makeImage(t, architecture).Digest(); err != nil || a != b {
					t.Errorf("two builds of the same sources are %s and %s (%v)", a, b, err)
				}
			})
			t.Run("config", func(t *testing.T) { checkConfig(t, m) })
			t.Run("size", func(t *testing.T) { checkSize(t, m) })
			t.Run("program", func(t *testing.T) { checkProgram(t, m, architecture) })
			t.Run("bill", func(t *testing.T) { checkBill(t, m) })
			t.Run("notices", func(t *testing.T) { checkNotices(t, m) })
			if architecture == runtime.GOARCH {
				t.Run("runs", func(t *testing.T) { checkRuns(t, m, architecture) })
			}
		})
	}
}

func checkConfig(t *testing.T, m made) {
	file, err := m.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	c := file.Config
	if !regexp.MustCompile(`^[1-9]\d*:[1-9]\d*$`).MatchString(c.User) {
		t.Errorf("the user is %q: the kubelet knows only of a number that it is not root", c.User)
	}
	if !slices.Equal(c.Entrypoint, []string{"/zuber"}) || !slices.Equal(c.Cmd, []string{"serve"}) {
		t.Errorf("it starts %q %q", c.Entrypoint, c.Cmd)
	}
	for key, want := range map[string]string{
		"title": "zuber", "licenses": "Apache-2.0", "version": version, "revision": commit, "source": "https://github.com/zuber-storage/zuber",
	} {
		if got := c.Labels["org.opencontainers.image."+key]; got != want {
			t.Errorf("label %s is %q, want %q", key, got, want)
		}
	}
	var names []string
	err = filepath.WalkDir(m.files, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			name, _ := filepath.Rel(m.files, path)
			names = append(names, filepath.ToSlash(name))
		}
		return err
	})
	want := []string{"usr/share/doc/zuber/LICENSE", "usr/share/doc/zuber/THIRD_PARTY_NOTICES", "usr/share/doc/zuber/sbom.cdx.json", "zuber"}
	if err != nil || !slices.Equal(names, want) {
		t.Errorf("the image holds %q, want %q (%v)", names, want, err)
	}
}

func checkSize(t *testing.T, m made) {
	layers, err := m.Layers()
	if err != nil {
		t.Fatal(err)
	}
	var sum int64
	for _, l := range layers {
		size, err := l.Size()
		if err != nil {
			t.Fatal(err)
		}
		sum += size
	}
	t.Logf("%.1f MiB compressed, without the base", float64(sum)/(1<<20))
	if sum > limit {
		t.Errorf("%d bytes compressed, more than %d", sum, limit)
	}
}

// checkProgram: it is static, of the architecture, and says nothing of where it was
// built.
func checkProgram(t *testing.T, m made, architecture string) {
	name := filepath.Join(m.files, "zuber")
	program, err := elf.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = program.Close() }()
	if want := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[architecture]; program.Machine != want {
		t.Errorf("it is for %v, want %v", program.Machine, want)
	}
	for _, p := range program.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			t.Errorf("it is not static: it has a %v", p.Type)
		}
	}
	info, err := buildinfo.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	if settings["-trimpath"] != "true" || settings["CGO_ENABLED"] != "0" || settings["vcs.revision"] != "" {
		t.Errorf("it was built with %v", settings)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, place := range []string{filepath.Dir(m.files), runtime.GOROOT() + "/src"} {
		if bytes.Contains(text, []byte(place)) {
			t.Errorf("it names the directory %s", place)
		}
	}
}

// checkBill compares the bill of materials with what the go command lists.
func checkBill(t *testing.T, m made) {
	docs := filepath.Join(m.files, "usr", "share", "doc", "zuber")
	file, err := os.Open(filepath.Join(docs, "sbom.cdx.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	var bill cdx.BOM
	if err := cdx.NewBOMDecoder(file, cdx.BOMFileFormatJSON).Decode(&bill); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range *bill.Components {
		if c.Licenses == nil || c.PackageURL == "" {
			t.Errorf("%s has no licence or address", c.Name)
		}
		got = append(got, c.Name+" "+c.Version)
	}
	file2, err := m.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	packages, err := list(t.Context(), root, file2.Architecture)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{standard + " " + runtime.Version()}
	for _, p := range packages {
		if p.Module != nil && !p.Module.Main {
			want = append(want, p.Module.Path+" "+p.Module.Version)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if want = slices.Compact(want); !slices.Equal(got, want) {
		t.Errorf("the bill lists\n%s\nand what is linked is\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func checkNotices(t *testing.T, m made) {
	text, err := os.ReadFile(filepath.Join(m.files, "usr", "share", "doc", "zuber", "THIRD_PARTY_NOTICES"))
	if err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.ReadFile(filepath.Join(m.files, "zuber"))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range info.Deps {
		if !strings.Contains(string(text), "\n"+d.Path+" "+d.Version+" (") {
			t.Errorf("the notices lack %s %s", d.Path, d.Version)
		}
	}
}

// checkRuns runs the program where there is nothing but the image's files, as its
// user.
func checkRuns(t *testing.T, m made, architecture string) {
	if os.Getuid() != 0 {
		t.Skip("only root may change its root directory")
	}
	run := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), "/zuber", args...)
		cmd.Dir, cmd.Env = "/", []string{}
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: m.files, Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return string(out)
	}
	var says struct{ Version, Commit, Platform string }
	if err := json.Unmarshal([]byte(run("version", "--output", "json")), &says); err != nil {
		t.Fatal(err)
	}
	if says.Version != version || says.Commit != commit || says.Platform != "linux/"+architecture {
		t.Errorf("it says it is %+v", says)
	}
	if out := run("selftest", "--emulate"); !strings.Contains(out, "passed: ") {
		t.Error(out)
	}
}

// TestBasesByDigest: no image that the Dockerfile begins with can become another.
func TestBasesByDigest(t *testing.T) {
	build, final, global := dockerfile(t)
	for _, s := range []string{build.BaseName, final.BaseName} {
		name, err := global.expand(s)
		if err != nil || !regexp.MustCompile(`^[^@]+:[^@]+@sha256:[0-9a-f]{64}$`).MatchString(name) {
			t.Errorf("%s is %q, want an image with tag and digest (%v)", s, name, err)
		}
	}
	if build.Platform != "$BUILDPLATFORM" {
		t.Errorf("the build runs on %q, want the machine's own platform", build.Platform)
	}
}
