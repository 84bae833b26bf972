package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/zuber-storage/zuber/pkg/driver"
	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/provider/cloudscale"
	"github.com/zuber-storage/zuber/pkg/provider/stackit"
)

// configFile is the form of the file that --config names.
type configFile struct {
	ClusterID string         `yaml:"clusterID"`
	Backends  []backendEntry `yaml:"backends"`
}

// backendEntry is one back end: a provider with its credentials.
type backendEntry struct {
	Name      string            `yaml:"name"`
	Provider  string            `yaml:"provider"`
	TokenFile string            `yaml:"tokenFile"`
	TokenEnv  string            `yaml:"tokenEnv"`
	APIURL    string            `yaml:"apiURL"`
	Endpoints map[string]string `yaml:"endpoints"`

	Stackit stackitEntry `yaml:",inline"`
}

// providerCloudscale is the value of provider for cloudscale.ch, and the name
// of the back end that a token in the environment makes.
const providerCloudscale = "cloudscale"

// readConfigFile reads and checks the file. Its error joins every fault, each
// with the file and, where YAML knows it, the line.
func readConfigFile(path string) (configFile, error) {
	raw, err := os.ReadFile(path) //nolint:gosec // the path is the administrator's own configuration
	if err != nil {
		return configFile{}, fmt.Errorf("--%s: open %s: %w", flagConfig, shownPath(path), errors.Unwrap(err))
	}
	var file configFile
	decoder := yaml.NewDecoder(bytes.NewReader(raw))
	decoder.KnownFields(true)
	if err := decoder.Decode(&file); err != nil && !errors.Is(err, io.EOF) {
		return configFile{}, yamlFaults(path, err)
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return configFile{}, fmt.Errorf("%s: it holds more than one YAML document", path)
	}
	var faults []error
	for _, fault := range file.check() {
		faults = append(faults, fmt.Errorf("%s: %w", path, fault))
	}
	// A relative file lies beside the configuration that names it.
	for i := range file.Backends {
		b := &file.Backends[i]
		for _, name := range append(b.Stackit.files(), &b.TokenFile) {
			if *name != "" && !filepath.IsAbs(*name) {
				*name = filepath.Join(filepath.Dir(path), *name)
			}
		}
	}
	return file, errors.Join(faults...)
}

// yamlFaults turns the decoder's findings into ours: one per line, without the
// names of Go types, and never with a value, which may be a secret.
func yamlFaults(path string, err error) error {
	var mismatch *yaml.TypeError
	if !errors.As(err, &mismatch) {
		return fmt.Errorf("%s: %s", path, provider.Redact(strings.TrimPrefix(err.Error(), "yaml: ")))
	}
	unknown := regexp.MustCompile(`^line (\d+): field (.+) not found in type (.+)$`)
	wrong := regexp.MustCompile(`(?s)^line (\d+): cannot unmarshal (!!\w+)`)
	known := map[string]string{
		"main.configFile": "backends and clusterID",
		"main.backendEntry": "name, provider, tokenFile, tokenEnv, apiURL, endpoints, and for STACKIT keyFile, serviceAccountEmail, " +
			"federatedTokenFile, projectID, regions, tokenURL, adminGroupID, adminKeyFile, adminKeyTTL",
	}
	var faults []error
	for _, text := range mismatch.Errors {
		if m := unknown.FindStringSubmatch(text); m != nil {
			hint := "the keys here are " + known[m[3]]
			if m[2] == "token" {
				hint = "a token does not belong into this file: put it into a file of its own and name that with tokenFile, or name a variable with tokenEnv"
			}
			if m[2] == "key" || m[2] == "serviceAccountKey" {
				hint = "a key does not belong into this file: put it into a file of its own and name that with keyFile"
			}
			faults = append(faults, fmt.Errorf("%s:%s: unknown key %q: %s", path, m[1], provider.Redact(m[2]), hint))
			continue
		}
		if m := wrong.FindStringSubmatch(text); m != nil && strings.HasSuffix(text, "into time.Duration") {
			faults = append(faults, fmt.Errorf("%s:%s: a duration such as 24h is wanted here", path, m[1]))
			continue
		}
		if m := wrong.FindStringSubmatch(text); m != nil {
			faults = append(faults, fmt.Errorf("%s:%s: a value of another kind than %s is wanted here", path, m[1], m[2]))
			continue
		}
		faults = append(faults, fmt.Errorf("%s: %s", path, provider.Redact(text)))
	}
	return errors.Join(faults...)
}

// check returns every fault that the file's text alone shows.
func (f configFile) check() []error {
	var faults []error
	addf := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if err := driver.CheckClusterID(f.ClusterID); err != nil {
		addf("clusterID: %w", err)
	}
	if len(f.Backends) == 0 {
		addf("backends: it is missing or empty: list at least one")
	}
	names := map[string]int{}
	label := regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	for i, b := range f.Backends {
		at := fmt.Sprintf("backends[%d]", i)
		if first, taken := names[b.Name]; taken && b.Name != "" {
			addf("%s.name: %q is the name of backends[%d] too", at, b.Name, first)
		} else {
			names[b.Name] = i
		}
		if !label.MatchString(b.Name) {
			addf("%s.name: %q: want 1 to 63 of a-z, 0-9 and '-', with '-' neither first nor last", at, b.Name)
		}
		switch b.Provider {
		case providerCloudscale:
			for _, key := range b.Stackit.set() {
				addf("%s.%s: it is for %s, but the provider is %s", at, key, providerStackit, providerCloudscale)
			}
			b.checkToken(at, addf)
		case providerStackit:
			for _, fault := range b.Stackit.faults() {
				addf("%s: %w", at, fault)
			}
			if b.TokenFile != "" || b.TokenEnv != "" {
				addf("%s: tokenFile and tokenEnv are for %s, but the provider is %s", at, providerCloudscale, providerStackit)
			}
		default:
			addf("%s.provider: %q: want %s or %s", at, b.Provider, providerCloudscale, providerStackit)
			b.checkToken(at, addf)
		}
		if b.APIURL != "" {
			if _, err := normalAPIURL(b.APIURL); err != nil {
				addf("%s.apiURL: %s: %w", at, shown(b.APIURL), err)
			}
		}
		for _, region := range slices.Sorted(maps.Keys(b.Endpoints)) {
			if fault := b.strange(region); fault != "" {
				addf("%s.endpoints.%s: %s", at, region, fault)
			}
			if err := checkURL(b.Endpoints[region]); err != nil {
				addf("%s.endpoints.%s: %s: %w", at, region, shown(b.Endpoints[region]), err)
			}
		}
	}
	return faults
}

// strange says what is wrong with a region that the entry has an endpoint for, ""
// if nothing is. A misspelt one would never be used, and nobody would be told.
func (b backendEntry) strange(region string) string {
	if b.Provider == providerStackit {
		regions := b.Stackit.Regions
		if len(regions) == 0 {
			regions = stackit.DefaultRegions()
		}
		if !slices.Contains(regions, region) {
			return fmt.Sprintf("the back end has no such region: want %s%s", strings.Join(regions, " or "), driver.DidYouMean(region, regions))
		}
		return ""
	}
	// The cloud may have more regions by now, but none with such a name.
	regions := cloudscale.KnownRegions()
	hint := driver.DidYouMean(region, regions)
	slug := regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$`)
	if slices.Contains(regions, region) || hint == "" && slug.MatchString(region) {
		return ""
	}
	return fmt.Sprintf("it is not the name of a region: want one such as %s%s", strings.Join(regions, " or "), hint)
}

// checkToken reports what is wrong with the source of a token.
func (b backendEntry) checkToken(at string, addf func(format string, args ...any)) {
	variable := regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	switch {
	case b.TokenFile == "" && b.TokenEnv == "":
		addf("%s: the token is missing: set tokenFile or tokenEnv", at)
	case b.TokenFile != "" && b.TokenEnv != "":
		addf("%s: tokenFile and tokenEnv exclude each other", at)
	case b.TokenEnv != "" && !variable.MatchString(b.TokenEnv):
		addf("%s.tokenEnv: want the name of an environment variable, not the token itself", at)
	}
}

// urls returns the entry's URLs without the malformed ones, which check reports.
func (b backendEntry) urls() (apiURL string, endpoints map[string]string) {
	if b.APIURL != "" {
		apiURL, _ = normalAPIURL(b.APIURL)
	}
	for region, endpoint := range b.Endpoints {
		if checkURL(endpoint) != nil {
			continue
		}
		if endpoints == nil {
			endpoints = map[string]string{}
		}
		endpoints[region] = endpoint
	}
	return apiURL, endpoints
}

// normalAPIURL checks the base URL of a control plane and ends it in a slash.
// Other tools write the same base with /v1, so that is taken off.
func normalAPIURL(raw string) (string, error) {
	base := strings.TrimSuffix(strings.TrimSuffix(raw, "/"), "/v1")
	if err := checkURL(base); err != nil {
		return "", err
	}
	return base + "/", nil
}
