package loop

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// elect runs work while this process holds the lease.
func (l *Loop) elect(ctx context.Context, work func(context.Context)) error {
	lock := &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Name: l.lease, Namespace: l.namespace},
		Client:     l.kube.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: l.options.Identity},
	}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:            lock,
		LeaseDuration:   l.options.LeaseDuration,
		RenewDeadline:   l.options.RenewDeadline,
		RetryPeriod:     l.options.RetryPeriod,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: work,
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return fmt.Errorf("leader election: %w", err)
	}
	elector.Run(ctx)
	if ctx.Err() == nil {
		return errors.New("the lease " + l.lease + " is lost")
	}
	return nil
}

// leaseName is the lock and the component in the letters that a lease's name may have.
func leaseName(lock, component string) string {
	name := regexp.MustCompile(`[^a-zA-Z0-9-]`).ReplaceAllString(lock+"/"+component, "-")
	return strings.ToLower(name)
}

// namespace is that of the pod, where the lease is.
func namespace() string {
	if name := os.Getenv("POD_NAMESPACE"); name != "" {
		return name
	}
	if name, err := os.ReadFile(namespaceFile); err == nil {
		return strings.TrimSpace(string(name))
	}
	return "default"
}
