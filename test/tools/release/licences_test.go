package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLicences: what is linked has licences that allow it.
func TestLicences(t *testing.T) {
	parts, err := linked(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	if len(parts) < 20 || parts[len(parts)-1].Path == "" {
		t.Fatalf("%d parts: it looked in the wrong place", len(parts))
	}
	for _, p := range parts {
		if p.Version == "" || len(p.Licences) == 0 {
			t.Errorf("%+v", p)
		}
	}
}

func TestClassify(t *testing.T) {
	apache, err := os.ReadFile(filepath.Join(root, "LICENSE"))
	if err != nil {
		t.Fatal(err)
	}
	const gpl = "This program is free software: you can redistribute it and/or modify it under the terms of the GNU General Public License as published by the Free Software Foundation, either version 3 of the License, or (at your option) any later version.\n"
	for name, c := range map[string]struct {
		texts map[string]string
		fault string
	}{
		"allowed":                 {map[string]string{"LICENSE": string(apache), "NOTICE": "whatever"}, ""},
		"copyleft":                {map[string]string{"COPYING": gpl}, "GPL"},
		"copyleft beside allowed": {map[string]string{"LICENSE": string(apache), "third_party/LICENSE": gpl}, "GPL"},
		"unknown":                 {map[string]string{"LICENSE": "All rights reserved. Ask us before you do anything with this."}, "no known licence"},
		"a notice alone":          {map[string]string{"NOTICE": string(apache)}, "no licence found"},
		"none":                    {nil, "no licence found"},
	} {
		got, err := classify(c.texts)
		if c.fault == "" && (err != nil || len(got) != 1 || got[0] != "Apache-2.0") {
			t.Errorf("%s: %v, %v", name, got, err)
		}
		if c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault)) {
			t.Errorf("%s: %v, want a fault that says %q", name, err, c.fault)
		}
	}
}

func TestLicenceFile(t *testing.T) {
	for name, want := range map[string]bool{
		"LICENSE": true, "LICENCE.md": true, "LICENSE-APACHE": true, "license.txt": true, "COPYING": true, "COPYING.LESSER": true,
		"NOTICE.txt": true, "UNLICENSE": true, "LICENSES.md": true, "README.md": false, "relicense": false,
	} {
		if got := licenceFile.MatchString(name); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

func TestUsage(t *testing.T) {
	if err := run(t.Context(), []string{"sbom", root}, nil); err == nil {
		t.Error("half a command was accepted")
	}
}
