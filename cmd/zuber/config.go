package main

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/zuber-storage/zuber/pkg/cosi"
	"github.com/zuber-storage/zuber/pkg/driver"
	"github.com/zuber-storage/zuber/pkg/emulator"
	"github.com/zuber-storage/zuber/pkg/emulator/objectstore"
	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/provider/transport"
)

// The variables that are read besides the ZUBER_ ones. None of ours begins with
// COSI_: COSI keeps that prefix for itself.
const (
	envPrefix       = "ZUBER_"
	envCOSIEndpoint = "COSI_ENDPOINT"
	envToken        = "CLOUDSCALE_API_TOKEN"      //nolint:gosec // the name of a variable, not a credential
	envTokenFile    = "CLOUDSCALE_API_TOKEN_FILE" //nolint:gosec // the name of a variable, not a credential
	envAPIURL       = "CLOUDSCALE_API_URL"
	envKubeconfig   = "KUBECONFIG"
)

// The names of the flags, in one place because code, documents and manifests
// speak of them.
const (
	flagEndpoint        = "endpoint"
	flagDriverName      = "driver-name"
	flagClusterID       = "cluster-id"
	flagMetricsAddress  = "metrics-address"
	flagConfig          = "config"
	flagEmulate         = "emulate"
	flagAllowDeleteAll  = "allow-delete-all"
	flagRPCTimeout      = "rpc-timeout"
	flagShutdownTimeout = "shutdown-timeout"
	flagRevokeGrace     = "revoke-grace"
	flagMaxConcurrent   = "max-concurrent-requests"
	flagVerbosity       = "v"
	flagLogFormat       = "log-format"
	flagListen          = "listen"
	flagKeyDelay        = "key-delay"
	flagSeed            = "seed"
	flagRGWRelease      = "rgw-release"
	flagToken           = "token"
	flagAllowRemote     = "allow-remote"
	flagBackend         = "backend"
	flagRegion          = "region"
	flagEndpointURL     = "endpoint-url"
	flagPathStyle       = "path-style"
	flagKeep            = "keep"
	flagOutput          = "output"
	flagTimeout         = "timeout"
	flagAPIVersion      = "api-version"
	flagRoot            = "root"
	flagFile            = "file"
	flagAssumeNone      = "assume-none"
	flagOnly            = "only"
	flagKeepBucket      = "keep-bucket"
	flagMinAge          = "min-age"
	flagSeenFile        = "seen-file"
	flagLookTwice       = "look-twice"
	flagDelete          = "delete"
	flagPurge           = "purge"
	flagYes             = "yes"
	flagRepair          = "repair"
	flagAuditInterval   = "audit-interval"
	flagAuditCallBudget = "audit-call-budget"
	flagUsage           = "usage"
	flagUsageInterval   = "usage-interval"
	flagUsageByListing  = "usage-by-listing"
	flagUsageCallBudget = "usage-call-budget"
	flagUsagePrice      = "usage-price"
)

const defaultDriverName = "cosi.zuber.dev"

// maxConcurrentMost bounds --max-concurrent-requests: each request holds a
// connection.
const maxConcurrentMost = 1000

// The values of --output, --log-format and --key-delay.
const (
	formatText     = "text"
	formatJSON     = "json"
	delayNone      = "none"
	delayRealistic = "realistic"
)

// noCredentials is the fault of a command that has no back end.
const noCredentials = "no credentials: set " + envToken + ", " + envTokenFile + ", " + envStackitKey + " or " + envStackitKeyPath + ", or name a file with --" + flagConfig

// backendSettings says where back ends come from.
type backendSettings struct {
	DriverName string
	ClusterID  string
	ConfigFile string
	Emulate    bool
	emulatorSettings
}

func (s *backendSettings) bind(fs *pflag.FlagSet) {
	s.bindReal(fs)
	fs.BoolVar(&s.Emulate, flagEmulate, false,
		"run against clouds inside this process, one back end each: no account, no network, nothing kept; credentials in the environment are not used")
	s.emulatorSettings.bind(fs)
}

// bindReal binds the flags of those commands that look at what is there already.
func (s *backendSettings) bindReal(fs *pflag.FlagSet) {
	fs.StringVar(&s.DriverName, flagDriverName, defaultDriverName,
		"name of the driver: what the sidecar and the classes call it, and the mark on everything it makes")
	fs.StringVar(&s.ClusterID, flagClusterID, "",
		"ID of this cluster, which nothing but it may have and which must never change: it is recorded with everything made, what has the ID of another cluster is left alone, "+
			"and bucketNameFrom: claim needs it; clusterID in the file of --"+flagConfig+" is read too")
	fs.StringVar(&s.ConfigFile, flagConfig, "",
		"YAML file that lists the back ends; without it "+envToken+" or "+envTokenFile+" makes one named cloudscale, and "+
			envStackitKey+", "+envStackitKeyPath+" or "+envStackitEmail+" one named stackit")
}

// emulatorSettings says what the emulator is like.
type emulatorSettings struct {
	KeyDelay   string
	Seed       uint64
	RGWRelease string
}

func (s *emulatorSettings) bind(fs *pflag.FlagSet) {
	fs.StringVar(&s.KeyDelay, flagKeyDelay, delayNone,
		"how long the emulator takes to learn a new key and to forget a removed one: none, or realistic (up to 20 s)")
	fs.Uint64Var(&s.Seed, flagSeed, 1, "seed of the emulator's chance, for key delays")
	fs.StringVar(&s.RGWRelease, flagRGWRelease, string(objectstore.Reef),
		"release of the Ceph gateway that cloudscale.ch's S3 is emulated after: reef (18.2.7), or tentacle (20.2.4)")
}

func (s *emulatorSettings) check(c *collector) {
	oneOf(c, flagKeyDelay, s.KeyDelay, delayNone, delayRealistic)
	oneOf(c, flagRGWRelease, s.RGWRelease, string(objectstore.Reef), string(objectstore.Tentacle))
}

func (s *emulatorSettings) options() emulator.Options {
	o := emulator.Options{Seed: s.Seed, RGWRelease: objectstore.Release(s.RGWRelease)}
	if s.KeyDelay == delayRealistic {
		o.KeyDelay = emulator.RealisticKeyDelay()
	}
	return o
}

func (s *backendSettings) check(c *collector) {
	s.checkMark(c)
	s.emulatorSettings.check(c)
	if s.Emulate && s.ConfigFile != "" {
		c.addf("--%s and --%s exclude each other: the emulator brings its own back ends", flagEmulate, flagConfig)
	}
}

// logSettings says what is logged and how.
type logSettings struct {
	Verbosity int
	Format    string
}

func (s *logSettings) bind(fs *pflag.FlagSet) {
	fs.IntVarP(&s.Verbosity, flagVerbosity, flagVerbosity, 0, "log verbosity: 0 is one line per RPC and change of state, higher says more")
	fs.StringVar(&s.Format, flagLogFormat, formatText, "log format: text or json")
}

func (s *logSettings) check(c *collector) {
	oneOf(c, flagLogFormat, s.Format, formatText, formatJSON)
	if s.Verbosity < 0 || s.Verbosity > 10 {
		c.addf("--%s is %d: it goes from 0 to 10", flagVerbosity, s.Verbosity)
	}
}

// serveSettings is the configuration of `zuber serve`.
type serveSettings struct {
	backendSettings
	logSettings
	companionSettings
	Endpoint        string
	MetricsAddress  string
	AllowDeleteAll  bool
	RPCTimeout      time.Duration
	ShutdownTimeout time.Duration
	RevokeGrace     time.Duration
	// MaxConcurrentRequests is how many requests a back end has under way at one
	// endpoint.
	MaxConcurrentRequests int
	// AuditInterval is how often back ends are audited; 0 is never.
	AuditInterval   time.Duration
	AuditCallBudget int // calls a minute
	usageSettings
}

func (s *serveSettings) bind(fs *pflag.FlagSet) {
	fs.StringVar(&s.Endpoint, flagEndpoint, "unix:///var/lib/cosi/cosi.sock",
		"socket to serve on; "+envCOSIEndpoint+" is read too")
	s.backendSettings.bind(fs)
	fs.StringVar(&s.MetricsAddress, flagMetricsAddress, ":8080", "host:port of /metrics, /healthz and /readyz; 0 turns them off")
	fs.BoolVar(&s.AllowDeleteAll, flagAllowDeleteAll, false,
		"let bucketDeletionPolicy: DeleteAll delete the data of a bucket; without it such a deletion is refused (on with --"+flagEmulate+")")
	fs.DurationVar(&s.RPCTimeout, flagRPCTimeout, cosi.DefaultRPCTimeout, "longest time of one RPC; the sidecar sets no limit of its own. A create that fails may take 20 s more, to remove what it made")
	fs.DurationVar(&s.ShutdownTimeout, flagShutdownTimeout, cosi.DefaultShutdownTimeout, "how long running RPCs may take after a signal")
	fs.DurationVar(&s.RevokeGrace, flagRevokeGrace, driver.DefaultRevokeGrace,
		"how long the deletion of a bucket waits for the revocation of its accesses before it revokes them itself; 0 does not wait")
	fs.IntVar(&s.MaxConcurrentRequests, flagMaxConcurrent, transport.DefaultMaxConcurrent,
		"how many requests a back end has under way at the same time at its cloud's API, and at each S3 endpoint; more wait for their turn")
	fs.DurationVar(&s.AuditInterval, flagAuditInterval, 10*time.Minute,
		"how often each back end is compared with what the driver has recorded, give or take a half; what differs is logged and counted, and not repaired; 0 turns it off")
	fs.IntVar(&s.AuditCallBudget, flagAuditCallBudget, 300, "how many calls a minute that comparison makes of a back end's cloud, on average; it rests between buckets")
	s.usageSettings.bind(fs)
	s.companionSettings.bind(fs)
	s.logSettings.bind(fs)
}

func (s *serveSettings) check(c *collector, env environment) {
	s.backendSettings.check(c)
	s.companionSettings.check(c, env)
	s.logSettings.check(c)
	if err := checkEndpoint(s.Endpoint); err != nil {
		c.addf("--%s %q: %v", flagEndpoint, s.Endpoint, err)
	}
	if s.metricsEnabled() {
		if _, err := splitHostPort(s.MetricsAddress); err != nil {
			c.addf("--%s %q: %v (0 turns it off)", flagMetricsAddress, s.MetricsAddress, err)
		}
	}
	positive(c, flagRPCTimeout, s.RPCTimeout)
	positive(c, flagShutdownTimeout, s.ShutdownTimeout)
	if s.MaxConcurrentRequests < 1 || s.MaxConcurrentRequests > maxConcurrentMost {
		c.addf("--%s is %d: it goes from 1 to %d", flagMaxConcurrent, s.MaxConcurrentRequests, maxConcurrentMost)
	}
	if s.AuditInterval < 0 {
		c.addf("--%s is %s: it cannot be negative (0 turns it off)", flagAuditInterval, s.AuditInterval)
	}
	if s.AuditCallBudget < 1 {
		c.addf("--%s is %d: it must be at least 1 (--%s 0 turns the comparison off)", flagAuditCallBudget, s.AuditCallBudget, flagAuditInterval)
	}
	s.usageSettings.check(c)
	if s.RevokeGrace < 0 {
		c.addf("--%s is %s: it cannot be negative", flagRevokeGrace, s.RevokeGrace)
	}
}

func (s *serveSettings) metricsEnabled() bool {
	return s.MetricsAddress != "" && s.MetricsAddress != "0"
}

// emulateSettings is the configuration of `zuber emulate`.
type emulateSettings struct {
	emulatorSettings
	Listen      string
	Token       string
	AllowRemote bool
}

func (s *emulateSettings) bind(fs *pflag.FlagSet) {
	fs.StringVar(&s.Listen, flagListen, "127.0.0.1:7470",
		"host:port of cloudscale.ch's control plane; all other endpoints take the ports after it, or free ones when the port is 0")
	s.emulatorSettings.bind(fs)
	fs.StringVar(&s.Token, flagToken, "", "token of cloudscale.ch's control plane; without it a random one, which is printed (it opens nothing but this emulator)")
	fs.BoolVar(&s.AllowRemote, flagAllowRemote, false, "listen on an address that is not loopback, although anyone who reaches it is served")
}

func (s *emulateSettings) check(c *collector) {
	s.emulatorSettings.check(c)
	if s.Token != "" {
		if _, err := parseToken(s.Token); err != nil {
			c.addf("--%s: %w", flagToken, err)
		}
	}
	host, err := splitHostPort(s.Listen)
	switch {
	case err != nil:
		c.addf("--%s %q: %v", flagListen, s.Listen, err)
	case !s.AllowRemote && !loopback(host):
		c.addf("--%s %q is not a loopback address: use 127.0.0.1, or --%s if others may reach the emulator", flagListen, s.Listen, flagAllowRemote)
	}
}

// selftestSettings is the configuration of `zuber selftest`.
type selftestSettings struct {
	backendSettings
	Backend     string
	Regions     []string
	EndpointURL string
	PathStyle   bool
	APIVersion  string
	Keep        bool
	Output      string
	Timeout     time.Duration
	Verbosity   int
}

func (s *selftestSettings) bind(fs *pflag.FlagSet) {
	s.backendSettings.bind(fs)
	fs.StringVar(&s.Backend, flagBackend, "", "back end to test; without it every one")
	fs.StringSliceVar(&s.Regions, flagRegion, nil, "region to test, may be repeated; without it every region of the back end. Of several back ends those are tested that have it")
	fs.StringVar(&s.EndpointURL, flagEndpointURL, "", "S3 endpoint to use instead of the region's own, as the BucketClass parameter endpointURL does")
	fs.BoolVar(&s.PathStyle, flagPathStyle, true, "address buckets by path; false puts the bucket into the host name, as the parameter s3PathStyle does")
	fs.StringVar(&s.APIVersion, flagAPIVersion, string(cosi.V1alpha1), "version of the COSI API to call the driver by: v1alpha1 or v1alpha2")
	fs.BoolVar(&s.Keep, flagKeep, false, "after a failure leave what was made, and say what it is")
	fs.StringVar(&s.Output, flagOutput, formatText, "output: text, or json (one object per back end and region, one a line)")
	fs.DurationVar(&s.Timeout, flagTimeout, 5*time.Minute, "longest time for one back end and region")
	fs.IntVarP(&s.Verbosity, flagVerbosity, flagVerbosity, 0, "log the driver's RPCs to stderr when it is above 0")
}

func (s *selftestSettings) check(c *collector) {
	s.backendSettings.check(c)
	oneOf(c, flagOutput, s.Output, formatText, formatJSON)
	oneOf(c, flagAPIVersion, s.APIVersion, string(cosi.V1alpha1), string(cosi.V1alpha2))
	positive(c, flagTimeout, s.Timeout)
	if s.Verbosity < 0 || s.Verbosity > 10 {
		c.addf("--%s is %d: it goes from 0 to 10", flagVerbosity, s.Verbosity)
	}
	for _, region := range s.Regions {
		if region == "" {
			c.addf("--%s: a region has no name", flagRegion)
		}
	}
	if s.EndpointURL != "" {
		if err := checkURL(s.EndpointURL); err != nil {
			c.addf("--%s %s: %v", flagEndpointURL, shown(s.EndpointURL), err)
		}
		if len(s.Regions) != 1 {
			c.addf("--%s belongs to one region: name it with --%s", flagEndpointURL, flagRegion)
		}
	}
}

// checkMark checks what is recorded with everything made.
func (s *backendSettings) checkMark(c *collector) {
	checkDriverName(c, s.DriverName)
	if err := driver.CheckClusterID(s.ClusterID); err != nil {
		c.addf("--%s: %w", flagClusterID, err)
	}
}

// driverName is a sequence of lower-case DNS labels, as both COSI versions
// accept it.
func checkDriverName(c *collector, name string) {
	labels := regexp.MustCompile(`^[a-z]([-a-z0-9]*[a-z0-9])?(\.[a-z]([-a-z0-9]*[a-z0-9])?)*$`)
	if len(name) > 63 || !labels.MatchString(name) {
		c.addf("--%s %q: want at most 63 characters in lower-case DNS labels that begin with a letter, such as %s", flagDriverName, name, defaultDriverName)
	}
}

// checkEndpoint holds COSI's rule for sockets: unix://, an absolute path, .sock.
func checkEndpoint(endpoint string) error {
	path, found := strings.CutPrefix(endpoint, "unix://")
	switch {
	case !found:
		return errors.New("want unix:// and an absolute path")
	case !filepath.IsAbs(path):
		return errors.New("the path after unix:// must be absolute")
	case !strings.HasSuffix(path, ".sock"):
		return errors.New("the socket's name must end in .sock")
	case len(path) > 107:
		return fmt.Errorf("the path has %d characters: a unix socket's has at most 107", len(path))
	}
	return nil
}

// checkURL accepts scheme://host[:port] with an optional trailing slash.
func checkURL(raw string) error {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return errors.New("not a URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return errors.New("want http:// or https://")
	case u.Hostname() == "":
		return errors.New("the host is missing")
	case u.User != nil, u.RawQuery != "", u.Fragment != "", strings.Trim(u.Path, "/") != "":
		return errors.New("want scheme://host[:port] and nothing else")
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return errors.New("the port is not from 1 to 65535")
		}
	}
	return nil
}

// shown quotes a URL for a message without what may be a password or a token.
func shown(raw string) string {
	if strings.Contains(raw, "@") {
		return "(not shown, it holds an @)"
	}
	address, query, _ := strings.Cut(raw, "?")
	if query != "" {
		address += "?" + provider.Redact(query)
	}
	return strconv.Quote(address)
}

func splitHostPort(address string) (host string, err error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", errors.New("want host:port")
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", fmt.Errorf("%q is not a port from 0 to 65535", port)
	}
	return host, nil
}

func loopback(host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

func oneOf(c *collector, flag, value string, allowed ...string) {
	for _, a := range allowed {
		if value == a {
			return
		}
	}
	c.addf("--%s %q: want %s", flag, value, strings.Join(allowed, " or "))
}

func positive(c *collector, flag string, d time.Duration) {
	if d <= 0 {
		c.addf("--%s is %s: it must be more than 0", flag, d)
	}
}
