package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// version and commit are set by the linker: -X main.version=… -X main.commit=…
var version, commit string

// buildInfo says which program this is.
type buildInfo struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`
	Modified bool   `json:"modified"` // built from a tree with changes on top of the commit
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// readBuild prefers what the linker was told over what the Go tool recorded.
func readBuild() buildInfo {
	b := buildInfo{Version: version, Commit: commit, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		if info.Main.Version != "(devel)" {
			b.Version = cmp.Or(b.Version, info.Main.Version)
		}
		for _, setting := range info.Settings {
			switch setting.Key {
			case "vcs.revision":
				b.Commit = cmp.Or(b.Commit, setting.Value)
			case "vcs.modified":
				b.Modified = setting.Value == "true"
			}
		}
	}
	b.Version, b.Commit = cmp.Or(b.Version, "dev"), cmp.Or(b.Commit, "unknown")
	return b
}

// versionSettings is the configuration of `zuber version`.
type versionSettings struct{ Output string }

func (s *versionSettings) bind(fs *pflag.FlagSet) {
	fs.StringVar(&s.Output, flagOutput, formatText, "output: text or json")
}

func newVersion(a *app) *cobra.Command {
	var s versionSettings
	cmd := &cobra.Command{Use: "version", Short: "Print the version, the commit and the Go version", Args: noArgs}
	s.bind(cmd.Flags())
	c := collect(cmd.Flags())
	cmd.RunE = func(*cobra.Command, []string) error {
		c.apply(a.env)
		oneOf(c, flagOutput, s.Output, formatText, formatJSON)
		if err := c.err(); err != nil {
			return err
		}
		b := readBuild()
		if s.Output == formatJSON {
			return json.NewEncoder(a.stdout).Encode(b)
		}
		changes := ""
		if b.Modified {
			changes = " with changes"
		}
		_, err := fmt.Fprintf(a.stdout, "zuber %s\ncommit %s%s\n%s %s\n", b.Version, b.Commit, changes, b.Go, b.Platform)
		return err
	}
	return cmd
}
