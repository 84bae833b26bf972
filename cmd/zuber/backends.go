package main

import (
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
)

// backendSpec is a back end with everything read and checked that the start
// can check; nothing has been asked of a cloud.
type backendSpec struct {
	Name      string
	Kind      string
	Token     tokenSource
	APIURL    string            // empty means the cloud's own
	Endpoints map[string]string // by region; what is absent is the cloud's own
	Transport http.RoundTripper // below the adapter's retries; nil means its own
}

// wiring is what all back ends of a process share.
type wiring struct {
	DriverName string
	OnKeyWait  func(region string, waited time.Duration) // may be nil
}

// open makes the back end. It makes no call.
func (s backendSpec) open(w wiring) (driver.Backend, error) {
	p, err := cloudscale.New(cloudscale.Config{
		DriverName: w.DriverName,
		Token:      s.Token,
		APIURL:     s.APIURL,
		Endpoints:  s.Endpoints,
		Transport:  s.Transport,
		OnKeyWait:  w.OnKeyWait,
		UserAgent:  "zuber/" + readBuild().Version,
	})
	if err != nil {
		return driver.Backend{}, fmt.Errorf("back end %s: %w", s.Name, err)
	}
	return driver.Backend{Name: s.Name, Kind: s.Kind, Provider: p}, nil
}

// openAll opens back ends in order.
func openAll(specs []backendSpec, w wiring) ([]driver.Backend, error) {
	backends := make([]driver.Backend, 0, len(specs))
	for _, spec := range specs {
		b, err := spec.open(w)
		if err != nil {
			return nil, err
		}
		backends = append(backends, b)
	}
	return backends, nil
}

// resolve turns settings and environment into back ends and leaves every fault
// with the collector. No credentials at all are no fault: the result is empty.
// With the emulator it is empty too, see emulated.
func (s backendSettings) resolve(c *collector, env environment) []backendSpec {
	switch {
	case s.Emulate:
		return nil
	case s.ConfigFile != "":
		return s.resolveFile(c, env)
	}
	return resolveEnvironment(c, env)
}

func resolveEnvironment(c *collector, env environment) []backendSpec {
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
	if raw := env[envAPIURL]; raw != "" {
		base, err := normalAPIURL(raw)
		if err != nil {
			c.addf("%s %s: %w", envAPIURL, shown(raw), err)
		}
		spec.APIURL = base
	}
	return []backendSpec{spec}
}

func resolveTokenFile(c *collector, source, path string) tokenSource {
	file, err := openTokenFile(path)
	if err != nil {
		c.addf("%s: %w", source, err)
		return nil
	}
	return file.Token
}

func (s backendSettings) resolveFile(c *collector, env environment) []backendSpec {
	file, err := readConfigFile(s.ConfigFile)
	if err != nil {
		c.faults = append(c.faults, err)
	}
	named := map[string]bool{}
	specs := make([]backendSpec, 0, len(file.Backends))
	for _, b := range file.Backends {
		named[b.TokenEnv] = true
		spec := backendSpec{Name: b.Name, Kind: b.Provider, Endpoints: b.Endpoints}
		if b.APIURL != "" {
			// A malformed one is among the file's faults already.
			spec.APIURL, _ = normalAPIURL(b.APIURL)
		}
		at := fmt.Sprintf("%s: back end %s", s.ConfigFile, b.Name)
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
	for _, name := range []string{envToken, envTokenFile} {
		if env[name] != "" && !named[name] {
			c.addf("--%s and %s exclude each other: name the variable in the file with tokenEnv, or unset one of the two", flagConfig, name)
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
	}
	return found
}

// startEmulator runs the cloud inside this process and returns a back end for
// it. Where the bucket goes into the host name, the endpoints have names below
// localhost, which are reached on this machine whatever the resolver says.
func startEmulator(s backendSettings, virtualHosted bool) (*emulator.Emulator, backendSpec, error) {
	e, err := emulator.Start(emulator.Options{KeyDelay: keyDelays(s.KeyDelay), Seed: s.Seed})
	if err != nil {
		return nil, backendSpec{}, err
	}
	cloud := e.Cloudscale()
	spec := backendSpec{
		Name:      providerCloudscale,
		Kind:      providerCloudscale,
		Token:     staticToken(provider.NewSecret(cloud.Token)),
		APIURL:    cloud.APIURL,
		Endpoints: cloud.Endpoints,
	}
	if virtualHosted {
		spec.Endpoints = map[string]string{}
		for region, endpoint := range cloud.Endpoints {
			port := endpoint[strings.LastIndex(endpoint, ":"):]
			spec.Endpoints[region] = "http://" + cloud.Domains[region] + port
		}
		spec.Transport = localhostTransport()
	}
	return e, spec, nil
}

func keyDelays(choice string) map[string]emulator.Delay {
	if choice == delayRealistic {
		return emulator.RealisticKeyDelay()
	}
	return nil
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
