package main

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/zuber-storage/zuber/pkg/driver"
	"github.com/zuber-storage/zuber/pkg/emulator"
	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/provider/cloudscale"
	"github.com/zuber-storage/zuber/pkg/provider/stackit"
	"github.com/zuber-storage/zuber/pkg/provider/transport"
)

// backendSpec is a back end with everything read and checked that the start
// can check; nothing has been asked of a cloud.
type backendSpec struct {
	Name      string
	Kind      string
	APIURL    string            // empty means the cloud's own
	Endpoints map[string]string // by region; what is absent is the cloud's own
	Transport http.RoundTripper // below the adapter's retries; nil means its own
	Token     tokenSource       // of a cloudscale.ch back end
	Stackit   *stackit.Config   // of a STACKIT back end: what the fields above do not say
}

// wiring is what all back ends of a process share.
type wiring struct {
	DriverName    string
	ClusterID     string
	MaxConcurrent int                                        // of the requests to one endpoint; 0 means the transport's default
	OnKeyWait     func(region string, waited time.Duration)  // may be nil
	Reloads       *reloads                                   // may be nil
	OnProbe       func(backend string, v cloudscale.Verdict) // may be nil
	Endpoints     *endpoints                                 // may be nil
	Clouds        *clouds                                    // may be nil
}

// open makes the back end. It makes no call.
func (s backendSpec) open(w wiring) (driver.Backend, error) {
	p, err := s.provider(w)
	if err != nil {
		return driver.Backend{}, fmt.Errorf("back end %s: %w", s.Name, err)
	}
	return driver.Backend{Name: s.Name, Kind: s.Kind, Provider: p}, nil
}

func (s backendSpec) provider(w wiring) (provider.Provider, error) {
	userAgent := "zuber/" + readBuild().Version
	pacing := transport.Pacing{
		MaxConcurrent: w.MaxConcurrent,
		OnEvent:       func(e transport.Event) { w.Endpoints.happened(s.Name, e) },
		OnCall:        func(c transport.Call) { w.Clouds.called(s.Name, c) },
	}
	w.Clouds.known(s.Name)
	onKeyWaited := func(region string, waited time.Duration, works bool) {
		w.Clouds.keyWaited(s.Name, region, waited, works)
	}
	onPurge := func(objects, bytes int64) { w.Clouds.purged(s.Name, objects, bytes) }
	if s.Stackit != nil {
		c := *s.Stackit
		c.DriverName, c.ClusterID, c.OnKeyWait, c.UserAgent = w.DriverName, w.ClusterID, w.OnKeyWait, userAgent
		c.APIURL, c.Endpoints, c.Transport, c.Pacing = s.APIURL, s.Endpoints, s.Transport, pacing
		c.OnKeyWaited, c.OnPurge = onKeyWaited, onPurge
		c.OnCredentials = func(state stackit.CredentialState) { w.Reloads.seen(s.Name, state) }
		p, err := stackit.New(c)
		if err != nil {
			return nil, err
		}
		w.Reloads.seen(s.Name, p.CredentialState())
		return p, nil
	}
	onProbe := func(v cloudscale.Verdict) {
		if w.OnProbe != nil {
			w.OnProbe(s.Name, v)
		}
	}
	return cloudscale.New(cloudscale.Config{
		DriverName:  w.DriverName,
		ClusterID:   w.ClusterID,
		Token:       s.Token,
		APIURL:      s.APIURL,
		Endpoints:   s.Endpoints,
		Transport:   s.Transport,
		Pacing:      pacing,
		OnKeyWait:   w.OnKeyWait,
		OnKeyWaited: onKeyWaited,
		OnPurge:     onPurge,
		OnProbe:     onProbe,
		UserAgent:   userAgent,
	})
}

// openAll opens back ends in order. No cloud is asked, so whatever fails is the
// configuration's fault.
func openAll(specs []backendSpec, w wiring) ([]driver.Backend, error) {
	backends := make([]driver.Backend, 0, len(specs))
	for _, spec := range specs {
		b, err := spec.open(w)
		if err != nil {
			return nil, &usageError{err}
		}
		backends = append(backends, b)
	}
	return backends, nil
}

// resolve turns settings and environment into back ends and leaves every fault
// with the collector. No credentials at all are no fault: the result is empty.
// With the emulator it is empty too, see emulated. The file's cluster ID becomes
// that of the settings.
func (s *backendSettings) resolve(c *collector, env environment) []backendSpec {
	switch {
	case s.Emulate:
		return nil
	case s.ConfigFile != "":
		return s.resolveFile(c, env)
	}
	return resolveEnvironment(c, env)
}

// resolveEnvironment makes one back end of each cloud whose variables are set.
func resolveEnvironment(c *collector, env environment) []backendSpec {
	return append(resolveCloudscaleEnvironment(c, env), resolveStackitEnvironment(c, env)...)
}

func resolveCloudscaleEnvironment(c *collector, env environment) []backendSpec {
	spec := backendSpec{Name: providerCloudscale, Kind: providerCloudscale}
	switch token, file := env[envToken], env[envTokenFile]; {
	case token != "" && file != "":
		c.addf("%s and %s exclude each other: set one", envToken, envTokenFile)
		return nil
	case token != "":
		secret, err := parseToken(token)
		if err != nil {
			c.addf("%s: %w", envToken, err)
		}
		spec.Token = staticToken(secret)
	case file != "":
		spec.Token = resolveTokenFile(c, envTokenFile, file)
	default:
		return nil
	}
	spec.APIURL = apiURLIn(c, env, envAPIURL)
	return []backendSpec{spec}
}

// apiURLIn reads a variable that holds the base URL of a control plane; it is
// empty when the variable is.
func apiURLIn(c *collector, env environment, name string) string {
	if env[name] == "" {
		return ""
	}
	base, err := normalAPIURL(env[name])
	if err != nil {
		c.addf("%s %s: %w", name, shown(env[name]), err)
	}
	return base
}

func resolveTokenFile(c *collector, source, path string) tokenSource {
	file, err := openTokenFile(path)
	if err != nil {
		c.addf("%s: %w", source, err)
		return nil
	}
	return file.Token
}

func (s *backendSettings) resolveFile(c *collector, env environment) []backendSpec {
	file, err := readConfigFile(s.ConfigFile)
	if err != nil {
		c.faults = append(c.faults, err)
	}
	if s.ClusterID != "" && file.ClusterID != "" && s.ClusterID != file.ClusterID {
		c.addf("--%s is %q and clusterID in %s is %q: set one, or both to the same", flagClusterID, s.ClusterID, s.ConfigFile, file.ClusterID)
	}
	s.ClusterID = cmp.Or(s.ClusterID, file.ClusterID)
	named := map[string]bool{}
	specs := make([]backendSpec, 0, len(file.Backends))
	for _, b := range file.Backends {
		named[b.TokenEnv] = true
		at := fmt.Sprintf("%s: back end %s", s.ConfigFile, b.Name)
		spec := backendSpec{Name: b.Name, Kind: b.Provider}
		if b.Provider == providerStackit {
			spec = b.Stackit.spec(b.Name)
		}
		spec.APIURL, spec.Endpoints = b.urls()
		if b.Provider == providerStackit {
			if len(b.Stackit.faults()) == 0 {
				spec.verify(c, at)
			}
			specs = append(specs, spec)
			continue
		}
		switch {
		case b.TokenFile != "" && b.TokenEnv == "":
			spec.Token = resolveTokenFile(c, at, filepath.Clean(b.TokenFile))
		case b.TokenEnv != "" && b.TokenFile == "":
			secret, err := parseToken(env[b.TokenEnv])
			if err != nil {
				c.addf("%s: the variable that tokenEnv names: %w", at, err)
			}
			spec.Token = staticToken(secret)
		}
		specs = append(specs, spec)
	}
	// A token that nobody asked for is more likely a leftover than a wish, and
	// whichever of the two were ignored would surprise somebody.
	if env[envToken] != "" && !named[envToken] {
		c.addf("--%s and %s exclude each other: name the variable in the file with tokenEnv, or unset one of the two", flagConfig, envToken)
	}
	if env[envTokenFile] != "" {
		c.addf("--%s and %s exclude each other: name the token's file with tokenFile and unset the variable", flagConfig, envTokenFile)
	}
	// A cluster may set the e-mail address of federation by itself, so that one
	// is no fault.
	for _, name := range []string{envStackitKey, envStackitKeyPath} {
		if env[name] != "" {
			c.addf("--%s and %s exclude each other: name the key in the file with keyFile, or unset one of the two", flagConfig, name)
		}
	}
	return specs
}

// withoutTLS lists what of the back ends is reached without TLS beyond this
// machine.
func withoutTLS(specs []backendSpec) []string {
	var found []string
	check := func(raw string) {
		if u, err := url.Parse(raw); err == nil && u.Scheme == "http" && !loopback(u.Hostname()) {
			found = append(found, raw)
		}
	}
	for _, s := range specs {
		check(s.APIURL)
		for _, endpoint := range s.Endpoints {
			check(endpoint)
		}
		if s.Stackit != nil {
			check(s.Stackit.TokenURL)
		}
	}
	return found
}

// startEmulator runs the clouds inside this process and returns a back end for
// each. Where the bucket goes into the host name, the endpoints have names below
// localhost, which are reached on this machine whatever the resolver says.
func startEmulator(s backendSettings, virtualHosted bool) (*emulator.Emulator, []backendSpec, error) {
	e, err := emulator.Start(s.options())
	if err != nil {
		return nil, nil, err
	}
	cloud := e.Cloudscale()
	specs := []backendSpec{
		{
			Name:      providerCloudscale,
			Kind:      providerCloudscale,
			APIURL:    cloud.APIURL,
			Endpoints: cloud.Endpoints,
			Token:     staticToken(provider.NewSecret(cloud.Token)),
		},
		emulatedStackit(e.Stackit()),
	}
	if virtualHosted {
		specs[0].Endpoints = byHostName(specs[0].Endpoints, cloud.Domains)
		specs[1].Endpoints = byHostName(specs[1].Endpoints, e.Stackit().Domains)
		for i := range specs {
			specs[i].Transport = localhostTransport()
		}
	}
	return e, specs, nil
}

// byHostName gives endpoints on loopback the names of their regions.
func byHostName(endpoints, domains map[string]string) map[string]string {
	named := map[string]string{}
	for region, endpoint := range endpoints {
		named[region] = "http://" + domains[region] + endpoint[strings.LastIndex(endpoint, ":"):]
	}
	return named
}

// localhostTransport connects every name below localhost to loopback, as RFC
// 6761 asks resolvers to and many do not.
func localhostTransport() http.RoundTripper {
	dialer := &net.Dialer{Timeout: 5 * time.Second}
	return &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			if host, port, err := net.SplitHostPort(address); err == nil && strings.HasSuffix(host, ".localhost") {
				address = net.JoinHostPort("127.0.0.1", port)
			}
			return dialer.DialContext(ctx, network, address)
		},
		ResponseHeaderTimeout: time.Minute,
		IdleConnTimeout:       30 * time.Second,
	}
}
