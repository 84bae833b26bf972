// Package loop feeds upstream's listeners with the events of a cluster, as
// upstream's own runtime does: one work queue, 40 workers for each listener,
// retries from 100 ms to 30 s, events about failures, and a leader's lease.
//
// In one thing it is kinder than upstream: an operation that arrives while the
// one before it still runs is not lost.
package loop

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"sigs.k8s.io/container-object-storage-interface/client/clientset/versioned"
	"sigs.k8s.io/container-object-storage-interface/client/clientset/versioned/scheme"
	"sigs.k8s.io/container-object-storage-interface/client/informers/externalversions"
)

const (
	workersPerListener = 40
	resync             = 30 * time.Second
)

// Listener is upstream's handler of one kind of object.
type Listener[T metav1.Object] interface {
	InitializeKubeClient(kubernetes.Interface)
	InitializeBucketClient(versioned.Interface)
	InitializeEventRecorder(record.EventRecorder)
	Add(ctx context.Context, object T) error
	Update(ctx context.Context, old, object T) error
	Delete(ctx context.Context, object T) error
}

// Loop is a set of listeners with what they share.
type Loop struct {
	// Informers is where a listener's events come from.
	Informers externalversions.SharedInformerFactory

	options   Options
	lease     string
	namespace string
	kube      kubernetes.Interface
	buckets   versioned.Interface
	recorder  record.EventRecorder
	stop      func()
	queue     *queue
	workers   int
}

// New connects to the cluster. The lease is named after the lock and the
// component, which is also the source of events.
func New(o Options, component, lock string) (*Loop, error) {
	config, err := clientcmd.BuildConfigFromFlags("", o.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	config.QPS, config.Burst = float32(o.QPS), o.Burst
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	buckets, err := versioned.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	broadcaster := record.NewBroadcaster()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: kube.CoreV1().Events("")})
	return &Loop{
		Informers: externalversions.NewSharedInformerFactory(buckets, resync),
		options:   o,
		lease:     leaseName(lock, component),
		namespace: namespace(),
		kube:      kube,
		buckets:   buckets,
		recorder:  broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: component}),
		stop:      broadcaster.Shutdown,
		queue:     newQueue(),
	}, nil
}

// Listen gives the events of an informer to a listener. It is called before Run.
func Listen[T metav1.Object](l *Loop, kind string, informer cache.SharedIndexInformer, listener Listener[T]) error {
	listener.InitializeKubeClient(l.kube)
	listener.InitializeBucketClient(l.buckets)
	listener.InitializeEventRecorder(l.recorder)
	l.workers += workersPerListener
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) {
			object := o.(T)
			l.queue.put(object.GetUID(), &operation{what: "add " + kind + " " + object.GetName(), do: func(ctx context.Context) error {
				return listener.Add(ctx, object)
			}})
		},
		UpdateFunc: func(o, n any) {
			if equality.Semantic.DeepEqual(o, n) {
				return // a resync brings nothing new, and upstream does nothing then
			}
			old, object := o.(T), n.(T)
			l.queue.put(object.GetUID(), &operation{what: "update " + kind + " " + object.GetName(), do: func(ctx context.Context) error {
				return listener.Update(ctx, old, object)
			}})
		},
		DeleteFunc: func(o any) {
			if unknown, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = unknown.Obj
			}
			object := o.(T)
			l.queue.put(object.GetUID(), &operation{once: true, what: "delete " + kind + " " + object.GetName(), do: func(ctx context.Context) error {
				return listener.Delete(ctx, object)
			}})
		},
	})
	if err != nil {
		return fmt.Errorf("%s: %w", kind, err)
	}
	return nil
}

// Run works while it is the leader, until ctx ends. Losing the lease is an error.
func (l *Loop) Run(ctx context.Context) error {
	defer l.stop()
	return l.elect(ctx, func(ctx context.Context) {
		l.Informers.Start(ctx.Done())
		for kind, synced := range l.Informers.WaitForCacheSync(ctx.Done()) {
			if !synced {
				klog.ErrorS(errors.New("the informer did not sync"), "Not working", "kind", kind)
				return
			}
		}
		klog.InfoS("Working", "lease", l.lease, "workers", l.workers)
		for range l.workers {
			go l.queue.run(ctx)
		}
		<-ctx.Done()
		l.queue.keys.ShutDown()
	})
}
