package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/zuber-storage/zuber/pkg/companion"
	"github.com/zuber-storage/zuber/pkg/driver"
	"github.com/zuber-storage/zuber/pkg/provider"
)

// The flags that zuber status alone has.
const (
	flagContext       = "context"
	flagNamespace     = "namespace"
	flagAllNamespaces = "all-namespaces"
)

// statusSettings is the configuration of `zuber status`.
type statusSettings struct {
	backendSettings
	meterSettings
	Usage         bool
	Kubeconfig    string
	Context       string
	Namespace     string
	AllNamespaces bool
	Output        string
	claim         string // empty is all
}

func (s *statusSettings) bind(fs *pflag.FlagSet) {
	s.bindReal(fs)
	fs.Lookup(flagDriverName).Usage = "name of the driver, as the classes say it; the bucket IDs of other drivers are shown and not taken apart"
	fs.Lookup(flagConfig).Usage += ". If it is given, the clouds are asked how much the buckets hold"
	fs.BoolVar(&s.Usage, flagUsage, false, "ask the clouds how much the buckets hold, also without --"+flagConfig+", with those variables")
	s.meterSettings.bind(fs)
	fs.StringVar(&s.Kubeconfig, flagKubeconfig, "", "kubeconfig to use; without it "+envKubeconfig+", then ~/.kube/config, and in a pod its service account")
	fs.StringVar(&s.Context, flagContext, "", "context of the kubeconfig; without it the current one")
	fs.StringVarP(&s.Namespace, flagNamespace, "n", "", "namespace of the BucketClaims; without it that of the context")
	fs.BoolVarP(&s.AllNamespaces, flagAllNamespaces, "A", false, "show the BucketClaims of all namespaces")
	fs.StringVarP(&s.Output, flagOutput, "o", formatText, "output: text, or json (one object)")
}

func (s *statusSettings) check(c *collector) {
	s.checkMark(c)
	s.meterSettings.check(c)
	oneOf(c, flagOutput, s.Output, formatText, formatJSON)
	switch {
	case s.AllNamespaces && s.Namespace != "":
		c.addf("--%s and --%s exclude each other", flagNamespace, flagAllNamespaces)
	case s.AllNamespaces && s.claim != "":
		c.addf("a BucketClaim is in one namespace: name that with --%s in place of --%s", flagNamespace, flagAllNamespaces)
	}
	for what, name := range map[string]string{"namespace": s.Namespace, "BucketClaim": s.claim} {
		if name != "" && len(validation.IsDNS1123Subdomain(name)) > 0 {
			c.addf("%q: no %s can be called so", name, what)
		}
	}
}

func newStatus(a *app) *cobra.Command {
	var s statusSettings
	cmd := &cobra.Command{
		Use:   "status [BUCKETCLAIM]",
		Short: "Show BucketClaims with their buckets, accesses, keys and errors",
		Long: `Show BucketClaims with their buckets, accesses, keys and errors.

It reads the cluster with your own rights and changes nothing in it. What you may
not read is named below the rest. Access key IDs are shown, secret access keys
never are. With the name of a BucketClaim everything about that one is shown.

With --config or --usage it also asks the clouds how much the buckets hold. A
cloud that does not say is named below the rest.

The exit code is 0 when something could be shown, whatever state it is in; 1
when the BucketClaim is not there or the API server does not answer; and 2 for a
fault of the command line.`,
		Example: strings.ReplaceAll(`  zuber status
  zuber status --all-namespaces
  zuber status photos --namespace prod
  zuber status --output json
  zuber status --all-namespaces --config zuber.yaml --usage-price cloudscale=0.03:CHF`, programName, a.called()),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return &usageError{fmt.Errorf("unexpected argument %q: one BucketClaim at a time can be named", args[1])}
			}
			return nil
		},
	}
	s.bind(cmd.Flags())
	c := collect(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c.apply(a.env)
		if len(args) > 0 {
			s.claim = args[0]
		}
		s.check(c)
		backends, err := s.backends(c, a.env)
		if err != nil {
			return err
		}
		return a.status(cmd.Context(), s, backends)
	}
	return cmd
}

// asksClouds says whether usage is asked for.
func (s *statusSettings) asksClouds() bool { return s.Usage || s.ConfigFile != "" }

// backends opens the back ends whose clouds are asked.
func (s *statusSettings) backends(c *collector, env environment) ([]driver.Backend, error) {
	if !s.asksClouds() {
		return nil, c.err()
	}
	specs := s.resolve(c, env)
	if len(c.faults) == 0 && len(specs) == 0 {
		c.addf(noCredentials)
	}
	if err := c.err(); err != nil {
		return nil, err
	}
	return openAll(specs, wiring{DriverName: s.DriverName, ClusterID: s.ClusterID})
}

func (a *app) status(ctx context.Context, s statusSettings, backends []driver.Backend) error {
	config, namespace, err := s.cluster(a.env)
	if err != nil {
		return &usageError{fmt.Errorf("the cluster: %w; name one with --%s and --%s", err, flagKubeconfig, flagContext)}
	}
	if s.AllNamespaces {
		namespace = ""
	}
	report, err := companion.Look(ctx, config, companion.LookOptions{Driver: s.DriverName, Namespace: namespace, Claim: s.claim})
	switch {
	case errors.Is(err, provider.ErrNotFound):
		return fmt.Errorf("%w; see %s status --%s", err, a.called(), flagAllNamespaces)
	case errors.Is(err, provider.ErrPermissionDenied) && s.AllNamespaces:
		return fmt.Errorf("%w, or name a namespace with --%s", err, flagNamespace)
	case errors.Is(err, provider.ErrUnavailable), errors.Is(err, provider.ErrPrecondition):
		return fmt.Errorf("%w; see that --%s and --%s name the right cluster", err, flagKubeconfig, flagContext)
	case err != nil:
		return err
	}
	if s.asksClouds() {
		s.addUsage(ctx, &report, backends)
	}
	if s.Output == formatJSON {
		return writeStatusJSON(a.stdout, report)
	}
	return statusText{
		Report: report, now: time.Now(), allNamespaces: s.AllNamespaces, one: s.claim != "", usage: s.asksClouds(), namespace: namespace,
	}.write(a.stdout)
}

// cluster finds the API server and the namespace to look into.
func (s *statusSettings) cluster(env environment) (config *rest.Config, namespace string, err error) {
	rules := clientcmd.ClientConfigLoadingRules{ExplicitPath: s.Kubeconfig}
	if s.Kubeconfig == "" {
		rules.Precedence = filepath.SplitList(env[envKubeconfig])
		if home := env["HOME"]; env[envKubeconfig] == "" && home != "" {
			rules.Precedence = []string{filepath.Join(home, ".kube", "config")}
		}
	}
	overrides := &clientcmd.ConfigOverrides{CurrentContext: s.Context, Context: clientcmdapi.Context{Namespace: s.Namespace}}
	loaded := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(&rules, overrides)
	if config, err = loaded.ClientConfig(); err != nil {
		return nil, "", err
	}
	if namespace, _, err = loaded.Namespace(); err != nil {
		return nil, "", err
	}
	config.UserAgent = "zuber/" + readBuild().Version
	config.Timeout = clusterTimeout
	return config, cmp.Or(namespace, "default"), nil
}
