package companion

import (
	"context"
	"encoding/base64"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr/funcr"
	"k8s.io/klog/v2"
)

// verbose is a context whose logger shows everything, and what it has shown. It
// ends with the first line that holds last.
func verbose(t *testing.T, last string) (context.Context, func() string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	var mu sync.Mutex
	var all strings.Builder
	logger := funcr.New(func(prefix, args string) {
		mu.Lock()
		defer mu.Unlock()
		all.WriteString(prefix + " " + args + "\n")
		if last != "" && strings.Contains(args, last) {
			cancel()
		}
	}, funcr.Options{Verbosity: 10})
	return klog.NewContext(ctx, logger), func() string {
		mu.Lock()
		defer mu.Unlock()
		return all.String()
	}
}

// TestNoBodiesInTheLog: however much the log shows, what the API server is asked
// and answers, Secrets among it, is not in it. Of the first case it would be.
func TestNoBodiesInTheLog(t *testing.T) {
	server, config := newAPIServer(t)
	companion, err := New(Config{Driver: "cosi.zuber.dev", REST: config, AllowWipe: true})
	if err != nil {
		t.Fatal(err)
	}
	encoded := base64.StdEncoding.EncodeToString([]byte(hidden))
	server.put(t, secretsPath+"/s", `{"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "ns", "name": "s"}, "data": {"k": "`+encoded+`"}}`)
	s := &secrets{client: companion.client, live: companion.client}
	a := access{meta: meta{namespace: "ns"}}
	for name, c := range map[string]struct {
		last string
		do   func(context.Context)
		body bool // whether the log has one
	}{
		"by itself": {"", func(ctx context.Context) { _, err = s.read(ctx, a, "s") }, true},
		"limited": {"", func(ctx context.Context) {
			logger := klog.FromContext(withoutBodies(ctx)).WithName("n").WithValues("k", "v")
			_, err = s.read(klog.NewContext(ctx, logger), a, "s")
		}, false},
		"Run":  {"The companion does not work", func(ctx context.Context) { companion.Run(ctx, nil) }, false},
		"wipe": {"", func(ctx context.Context) { companion.WipeOnDelete(ctx, wipedID) }, false},
	} {
		ctx, shown := verbose(t, c.last)
		if c.do(ctx); err != nil {
			t.Fatal(err)
		}
		log := shown()
		if has := strings.Contains(log, encoded) || strings.Contains(log, "Response Body"); has != c.body {
			t.Errorf("%s: a body is in the log: %v", name, has)
		}
	}
}
