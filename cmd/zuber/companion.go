package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/zuber-storage/zuber/pkg/companion"
)

// The flags of the companion.
const (
	flagCompanion           = "companion"
	flagKubeconfig          = "kubeconfig"
	flagAllowWipeAnnotation = "allow-wipe-annotation"
)

// The values of --companion.
const (
	companionAuto = "auto"
	companionOn   = "on"
	companionOff  = "off"
)

// envPodNamespace is the namespace that the driver runs in. Without it, that of
// the ServiceAccount or of the kubeconfig's context counts.
const envPodNamespace = "POD_NAMESPACE"

// serviceAccountNamespace is where Kubernetes puts it in every container.
const serviceAccountNamespace = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// companionSettings says whether and how the companion runs.
type companionSettings struct {
	Companion           string
	Kubeconfig          string
	AllowWipeAnnotation bool
	podNamespace        string
}

func (s *companionSettings) bind(fs *pflag.FlagSet) {
	fs.StringVar(&s.Companion, flagCompanion, companionAuto,
		"whether the Kubernetes side works, too (env Secrets, rotation, events for claims): auto is where there is a cluster that allows it, "+
			"on makes it an error in the log if it does not, off leaves Kubernetes alone; the driver itself needs it for names of buckets alone")
	fs.StringVar(&s.Kubeconfig, flagKubeconfig, "", "kubeconfig for the companion; without it the ServiceAccount of its Pod is used")
	fs.BoolVar(&s.AllowWipeAnnotation, flagAllowWipeAnnotation, false,
		"let the annotation "+companion.AnnotationWipeOnDelete+" of a BucketClaim delete the data of its bucket with it")
}

func (s *companionSettings) check(c *collector, env environment) {
	oneOf(c, flagCompanion, s.Companion, companionAuto, companionOn, companionOff)
	if s.Companion == companionOff && s.AllowWipeAnnotation {
		c.addf("--%s needs the companion, which --%s=%s turns off", flagAllowWipeAnnotation, flagCompanion, companionOff)
	}
	s.podNamespace = env[envPodNamespace]
}

// errNoCluster is why there is nothing for the companion to do.
var errNoCluster = errors.New("there is no cluster: neither a Pod's ServiceAccount nor --" + flagKubeconfig)

// newCompanion makes the companion; nil is none. Whatever keeps it from starting
// is logged and harms nothing else.
func newCompanion(ctx context.Context, s serveSettings, metrics *companion.Metrics) *companion.Companion {
	if s.Companion == companionOff {
		return nil
	}
	logger := klog.FromContext(ctx)
	config, namespace, err := s.cluster()
	if err == nil {
		var made *companion.Companion
		if made, err = companion.New(companion.Config{
			Driver: s.DriverName, REST: config, Namespace: namespace,
			AllowWipe: s.AllowWipeAnnotation, Insist: s.Companion == companionOn, Metrics: metrics,
		}); err == nil {
			return made
		}
	}
	if s.Companion == companionOn || !errors.Is(err, errNoCluster) {
		logger.Error(err, "The companion does not work; the driver does")
	} else {
		logger.Info("The companion does not work; the driver does", "reason", err.Error())
	}
	return nil
}

// cluster finds the API server, and the namespace that the driver is in.
func (s *companionSettings) cluster() (config *rest.Config, namespace string, err error) {
	if s.Kubeconfig != "" {
		loaded := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
			&clientcmd.ClientConfigLoadingRules{ExplicitPath: s.Kubeconfig}, &clientcmd.ConfigOverrides{})
		if config, err = loaded.ClientConfig(); err != nil {
			return nil, "", fmt.Errorf("--%s: %w", flagKubeconfig, err)
		}
		namespace, _, err = loaded.Namespace()
		return config, cmp.Or(s.podNamespace, namespace), err
	}
	config, err = rest.InClusterConfig()
	if errors.Is(err, rest.ErrNotInCluster) || errors.Is(err, os.ErrNotExist) {
		return nil, "", errNoCluster
	}
	if err != nil {
		return nil, "", fmt.Errorf("the Pod's ServiceAccount: %w", err)
	}
	text, err := os.ReadFile(serviceAccountNamespace)
	if s.podNamespace != "" {
		return config, s.podNamespace, nil
	}
	return config, strings.TrimSpace(string(text)), err
}
