package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/klog/v2"

	"github.com/zuber-storage/zuber/pkg/emulator"
	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/provider/stackit"
)

// providerStackit is the value of provider for STACKIT, and the name of the back
// end that STACKIT credentials in the environment make.
const providerStackit = "stackit"

// The variables that make a STACKIT back end; they are those of STACKIT's own
// tools.
const (
	envStackitKey            = "STACKIT_SERVICE_ACCOUNT_KEY"
	envStackitKeyPath        = "STACKIT_SERVICE_ACCOUNT_KEY_PATH"
	envStackitEmail          = "STACKIT_SERVICE_ACCOUNT_EMAIL"
	envStackitFederatedToken = "STACKIT_FEDERATED_TOKEN_FILE" //nolint:gosec // the name of a variable, not a credential
	envStackitProject        = "STACKIT_PROJECT_ID"
	envStackitRegion         = "STACKIT_REGION"
	envStackitTokenURL       = "STACKIT_TOKEN_BASEURL"      //nolint:gosec // the name of a variable, not a credential
	envStackitFederationURL  = "STACKIT_IDP_TOKEN_ENDPOINT" //nolint:gosec // the name of a variable, not a credential
	envStackitAPIURL         = "STACKIT_OBJECTSTORAGE_CUSTOM_ENDPOINT"
)

// resolveStackitEnvironment makes a back end of the variables, if one of them
// holds credentials.
func resolveStackitEnvironment(c *collector, env environment) []backendSpec {
	var set []string
	for _, name := range []string{envStackitKey, envStackitKeyPath, envStackitEmail} {
		if env[name] != "" {
			set = append(set, name)
		}
	}
	switch len(set) {
	case 0:
		return nil
	case 1:
	default:
		c.addf("%s exclude each other: set one", strings.Join(set, " and "))
		return nil
	}
	before := len(c.faults)
	entry := stackitEntry{ProjectID: env[envStackitProject], TokenURL: env[envStackitTokenURL]}
	if region := env[envStackitRegion]; region != "" {
		entry.Regions = []string{region}
	}
	switch set[0] {
	case envStackitKeyPath:
		entry.KeyFile = pathIn(c, env, envStackitKeyPath)
	case envStackitEmail:
		entry.ServiceAccountEmail = env[envStackitEmail]
		entry.FederatedTokenFile = pathIn(c, env, envStackitFederatedToken)
		entry.TokenURL = env[envStackitFederationURL]
	}
	spec := entry.spec(providerStackit)
	if set[0] == envStackitKey {
		spec.Stackit.Credentials.Key = staticToken(provider.NewSecret(env[envStackitKey]))
	}
	spec.APIURL = apiURLIn(c, env, envStackitAPIURL)
	if len(c.faults) == before {
		spec.verify(c, "the "+providerStackit+" back end of the environment")
	}
	return []backendSpec{spec}
}

// pathIn reads a variable that names a file.
func pathIn(c *collector, env environment, name string) string {
	if isContent(env[name]) || isKeyLine(env[name]) {
		c.addf("%s: want the path of a file, not what is in it", name)
	}
	return env[name]
}

// isContent reports whether a value that should be a path is a key or a token
// itself. Such a value must not get into a message about a missing file.
func isContent(value string) bool {
	// A token can hold a slash, and can have been joined to a directory.
	token := func(part string) bool { return strings.HasPrefix(part, "eyJ") }
	return strings.ContainsAny(value, "{}\n\r") || strings.Contains(value, "-----BEGIN") ||
		slices.ContainsFunc(strings.Split(filepath.ToSlash(value), "/"), token)
}

// isKeyLine reports whether a value is a line out of a private key.
func isKeyLine(value string) bool {
	return regexp.MustCompile(`^[A-Za-z0-9+/=]{60,}$`).MatchString(strings.TrimSpace(value))
}

// verify reports what the adapter finds wrong with a STACKIT back end. It reads
// the credentials and makes no call.
func (s backendSpec) verify(c *collector, at string) {
	if s.Stackit.AdminKey != nil {
		if _, err := s.Stackit.AdminKey(); err != nil {
			c.addf("%s: the admin key: %w", at, err)
		}
	}
	_, err := s.provider(wiring{DriverName: defaultDriverName}) // the real name is checked as a flag
	if err == nil {
		return
	}
	kind := provider.ErrInvalidArgument.Error() + ": "
	for _, fault := range strings.Split(strings.TrimPrefix(err.Error(), "stackit: "+kind), "\n") {
		c.addf("%s: %s", at, strings.TrimPrefix(fault, kind))
	}
}

// keyLimit is far above the size of a service account key.
const keyLimit = 64 << 10

// secretFile is a source that reads the file anew each time it is asked.
func secretFile(path string) func() (provider.Secret, error) {
	return func() (provider.Secret, error) {
		f, err := os.Open(path) //nolint:gosec // the path is the administrator's own configuration
		if err != nil {
			return provider.Secret{}, err
		}
		defer func() { _ = f.Close() }()
		raw, err := io.ReadAll(io.LimitReader(f, keyLimit+1))
		if err != nil {
			return provider.Secret{}, err
		}
		if len(raw) > keyLimit {
			return provider.Secret{}, fmt.Errorf("%s is larger than %d bytes: it is no key", path, keyLimit)
		}
		return provider.NewSecret(strings.TrimSpace(string(raw))), nil
	}
}

// adminKeyFile is a source of the admin group's key, kept by somebody else as
// {"accessKeyID": …, "secretAccessKey": …}.
func adminKeyFile(path string) func() (provider.Credentials, error) {
	read := secretFile(path)
	return func() (provider.Credentials, error) {
		raw, err := read()
		if err != nil {
			return provider.Credentials{}, err
		}
		var key struct {
			AccessKeyID     string `json:"accessKeyID"`
			SecretAccessKey string `json:"secretAccessKey"`
		}
		// The decoder's own words may quote what it read.
		if json.Unmarshal([]byte(raw.Reveal()), &key) != nil || key.AccessKeyID == "" || key.SecretAccessKey == "" {
			return provider.Credentials{}, fmt.Errorf(`%s: want {"accessKeyID": "…", "secretAccessKey": "…"}`, path)
		}
		return provider.Credentials{AccessKeyID: key.AccessKeyID, SecretAccessKey: provider.NewSecret(key.SecretAccessKey)}, nil
	}
}

// stackitEntry is what a back end of the configuration file says of STACKIT
// alone.
type stackitEntry struct {
	KeyFile             string        `yaml:"keyFile"`
	ServiceAccountEmail string        `yaml:"serviceAccountEmail"`
	FederatedTokenFile  string        `yaml:"federatedTokenFile"`
	ProjectID           string        `yaml:"projectID"`
	Regions             []string      `yaml:"regions"`
	TokenURL            string        `yaml:"tokenURL"`
	AdminGroupID        string        `yaml:"adminGroupID"`
	AdminKeyFile        string        `yaml:"adminKeyFile"`
	AdminKeyTTL         time.Duration `yaml:"adminKeyTTL"`
}

// set returns the keys of the file that are set.
func (e stackitEntry) set() []string {
	var keys []string
	v := reflect.ValueOf(e)
	for i := range v.NumField() {
		if !v.Field(i).IsZero() {
			keys = append(keys, v.Type().Field(i).Tag.Get("yaml"))
		}
	}
	return keys
}

// faults returns what the entry's text alone shows; the rest is for the adapter.
func (e stackitEntry) faults() []error {
	var faults []error
	switch {
	case e.KeyFile == "" && e.ServiceAccountEmail == "":
		faults = append(faults, errors.New("the credentials are missing: set keyFile or serviceAccountEmail"))
	case e.KeyFile != "" && e.ServiceAccountEmail != "":
		faults = append(faults, errors.New("keyFile and serviceAccountEmail exclude each other"))
	case e.KeyFile != "" && e.FederatedTokenFile != "":
		faults = append(faults, errors.New("federatedTokenFile belongs to serviceAccountEmail, not to keyFile"))
	}
	for _, path := range e.files() {
		if isContent(*path) || isKeyLine(*path) {
			faults = append(faults, errors.New("keyFile, federatedTokenFile and adminKeyFile: want the path of a file, not what is in it"))
			break
		}
	}
	return faults
}

// files returns the paths in the entry.
func (e *stackitEntry) files() []*string {
	return []*string{&e.KeyFile, &e.FederatedTokenFile, &e.AdminKeyFile}
}

// spec turns the entry into a back end.
func (e stackitEntry) spec(name string) backendSpec {
	c := stackit.Config{
		ProjectID: e.ProjectID, Regions: e.Regions, TokenURL: e.TokenURL,
		AdminGroupID: e.AdminGroupID, AdminKeyTTL: e.AdminKeyTTL,
		Credentials: stackit.Credentials{FederationEmail: e.ServiceAccountEmail, FederatedTokenFile: e.FederatedTokenFile},
	}
	if e.KeyFile != "" {
		c.Credentials.Key = secretFile(e.KeyFile)
	}
	if e.AdminKeyFile != "" {
		c.AdminKey = adminKeyFile(e.AdminKeyFile)
	}
	return backendSpec{Name: name, Kind: providerStackit, Stackit: &c}
}

// emulatedRegion is the one that the emulated back end serves.
const emulatedRegion = "eu01"

// emulatedStackit is the back end of an emulated STACKIT.
func emulatedStackit(cloud *emulator.Stackit) backendSpec {
	return backendSpec{
		Name:      providerStackit,
		Kind:      providerStackit,
		APIURL:    cloud.APIURL,
		Endpoints: map[string]string{emulatedRegion: cloud.Endpoints[emulatedRegion]},
		Stackit: &stackit.Config{
			Credentials: stackit.Credentials{Key: staticToken(provider.NewSecret(cloud.ServiceAccountKey()))},
			Regions:     []string{emulatedRegion},
			ListingWait: 10 * time.Millisecond, // the emulator's lists do not lag unless told to
		},
	}
}

// reloads tells of credentials that are replaced while the driver runs.
type reloads struct {
	logger klog.Logger
	ok     *prometheus.GaugeVec
	expiry *prometheus.GaugeVec
}

func newReloads(registerer prometheus.Registerer, logger klog.Logger) *reloads {
	r := &reloads{
		logger: logger,
		ok: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "zuber_backend_credentials_reload_ok",
			Help: "1 if the newest credentials at their source are in use, 0 if they were rejected and older ones are still used.",
		}, []string{"backend"}),
		expiry: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "zuber_backend_credentials_expiry_timestamp_seconds",
			Help: "When the credentials in use expire, in seconds since 1970; absent where they do not say.",
		}, []string{"backend"}),
	}
	registerer.MustRegister(r.ok, r.expiry)
	return r
}

// seen records and logs which credentials are in use. A nil *reloads ignores it.
func (r *reloads) seen(backend string, s stackit.CredentialState) {
	if r == nil {
		return
	}
	if s.ValidUntil.IsZero() {
		r.expiry.DeleteLabelValues(backend)
	} else {
		r.expiry.WithLabelValues(backend).Set(float64(s.ValidUntil.Unix()))
	}
	if s.Rejected != nil {
		r.ok.WithLabelValues(backend).Set(0)
		r.logger.Error(s.Rejected, "New credentials rejected, the old ones stay in use", "backend", backend)
		return
	}
	r.ok.WithLabelValues(backend).Set(1)
	if s.ValidUntil.IsZero() {
		r.logger.Info("Credentials in use", "backend", backend)
		return
	}
	r.logger.Info("Credentials in use", "backend", backend, "validUntil", s.ValidUntil)
}
