package main

import (
	"debug/buildinfo"
	"fmt"
	"io"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// writeBill writes the bill of materials of a binary: the modules that its own build
// information names, with the licences of parts. It is the same for the same binary.
func writeBill(out io.Writer, binary string, parts []part) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	licences := map[string][]string{}
	for _, p := range parts {
		licences[p.Path+"@"+p.Version] = p.Licences
	}
	main := library(info.Main.Path, "", []string{"Apache-2.0"})
	main.Type = cdx.ComponentTypeApplication
	bill := cdx.NewBOM()
	bill.Metadata = &cdx.Metadata{Component: &main}

	components := []cdx.Component{library(standard, info.GoVersion, licences[standard+"@"+info.GoVersion])}
	for _, m := range info.Deps {
		if m.Replace != nil {
			return fmt.Errorf("%s is replaced", m.Path)
		}
		components = append(components, library(m.Path, m.Version, licences[m.Path+"@"+m.Version]))
	}
	refs := make([]string, 0, len(components))
	for _, c := range components {
		if c.Licenses == nil {
			return fmt.Errorf("%s is linked and has no known licence", c.BOMRef)
		}
		refs = append(refs, c.BOMRef)
	}
	bill.Components = &components
	bill.Dependencies = &[]cdx.Dependency{{Ref: main.BOMRef, Dependencies: &refs}}
	encoder := cdx.NewBOMEncoder(out, cdx.BOMFileFormatJSON).SetPretty(true)
	return encoder.EncodeVersion(bill, cdx.SpecVersion1_6)
}

func library(path, version string, licences []string) cdx.Component {
	purl := "pkg:golang/" + path
	if version != "" {
		purl += "@" + version
	}
	c := cdx.Component{BOMRef: purl, Type: cdx.ComponentTypeLibrary, Name: path, Version: version, PackageURL: purl}
	if len(licences) > 0 {
		var all cdx.Licenses
		for _, id := range licences {
			all = append(all, cdx.LicenseChoice{License: &cdx.License{ID: id}})
		}
		c.Licenses = &all
	}
	return c
}
