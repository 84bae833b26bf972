// Command helm does with a chart what helm template and helm lint do, with Helm's
// own library: the whole command would bring kubectl's and a registry's client.
//
//	helm render RELEASE NAMESPACE CHART VALUES
//	helm lint CHART VALUES
package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	switch {
	case len(args) == 5 && args[0] == "render":
		return render(args[1], args[2], args[3], args[4], out)
	case len(args) == 3 && args[0] == "lint":
		return check(args[1], args[2])
	}
	return errors.New("want render RELEASE NAMESPACE CHART VALUES, or lint CHART VALUES")
}

// render writes the notes, too, as comments.
func render(release, namespace, dir, file string, out io.Writer) error {
	values, err := chartutil.ReadValuesFile(file)
	if err != nil {
		return err
	}
	c, err := loader.Load(dir)
	if err != nil {
		return err
	}
	if err := chartutil.ProcessDependenciesWithMerge(c, values); err != nil {
		return err
	}
	options := chartutil.ReleaseOptions{Name: release, Namespace: namespace, Revision: 1, IsInstall: true}
	all, err := chartutil.ToRenderValues(c, values, options, chartutil.DefaultCapabilities)
	if err != nil {
		return err
	}
	files, err := engine.Render(c, all)
	if err != nil {
		return err
	}
	for _, d := range c.CRDObjects() {
		files[d.Filename] = string(d.File.Data)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		text := strings.TrimSpace(files[name])
		switch {
		case text == "" || strings.HasPrefix(filepath.Base(name), "_"):
			continue
		case filepath.Ext(name) == ".txt":
			text = "# " + strings.ReplaceAll(text, "\n", "\n# ")
		}
		if _, err := fmt.Fprintf(out, "---\n# Source: %s\n%s\n", name, text); err != nil {
			return err
		}
	}
	return nil
}

// check is an error if lint has anything to say that is more than information.
func check(dir, file string) error {
	values, err := chartutil.ReadValuesFile(file)
	if err != nil {
		return err
	}
	var faults []error
	for _, m := range lint.AllWithKubeVersion(dir, values, "default", nil).Messages {
		if m.Severity > support.InfoSev {
			faults = append(faults, m)
		}
	}
	return errors.Join(faults...)
}
