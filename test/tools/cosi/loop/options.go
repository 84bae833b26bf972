package loop

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// Options are the flags that both commands have. Their defaults are upstream's.
type Options struct {
	Kubeconfig string
	QPS        float64
	Burst      int

	Identity      string
	LeaseDuration time.Duration
	RenewDeadline time.Duration
	RetryPeriod   time.Duration
}

// Bind adds the flags, those of klog among them.
func (o *Options) Bind(flags *flag.FlagSet) error {
	hostname, err := os.Hostname()
	if err != nil {
		return err
	}
	klog.InitFlags(flags)
	flags.StringVar(&o.Kubeconfig, "kubeconfig", "", "path of the kubeconfig; without it the pod's service account is used")
	flags.Float64Var(&o.QPS, "kube-api-qps", float64(rest.DefaultQPS), "requests per second of each client; upstream leaves it at the default")
	flags.IntVar(&o.Burst, "kube-api-burst", rest.DefaultBurst, "requests of each client in a burst; upstream leaves it at the default")
	flags.StringVar(&o.Identity, "identity", hostname, "holder of the lease")
	flags.DurationVar(&o.LeaseDuration, "lease-duration", 150*time.Second, "how long others wait for a holder that is gone")
	flags.DurationVar(&o.RenewDeadline, "renew-deadline", 120*time.Second, "how long the holder tries to renew")
	flags.DurationVar(&o.RetryPeriod, "retry-period", 60*time.Second, "time between two tries for the lease")
	return nil
}

// Main is the whole of a command: it parses the arguments, runs until a signal
// and returns the exit code.
func Main(args []string, bind func(*flag.FlagSet), run func(context.Context, Options) error) int {
	var o Options
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	if err := o.Bind(flags); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	bind(flags)
	if err := flags.Parse(args[1:]); err != nil {
		return 2
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer cancel()
	defer klog.Flush()
	if err := run(ctx, o); err != nil && ctx.Err() == nil {
		klog.ErrorS(err, "Ended")
		return 1
	}
	return 0
}
