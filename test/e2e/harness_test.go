package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zuber-storage/zuber/test/e2e/cluster"
)

const (
	root = "../.."
	// patience bounds the waits of a story.
	patience = 2 * time.Minute
	// long bounds those for hundreds of objects.
	long = 6 * time.Minute
	// spare is what is left of the test's time to say why it ended early.
	spare = 15 * time.Second
)

// shared is the cluster of all stories.
var shared struct {
	sync.Once
	*cluster.Cluster
	err error

	mu   sync.Mutex
	kept []string // UIDs whose resources in the clouds stay on purpose
}

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if shared.Cluster != nil {
		if err := end(code == 0); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

// options are those of every cluster of the tests.
func options() cluster.Options {
	return cluster.Options{Root: root, Log: os.Stderr, Race: race, QPS: -1, CreateBucket: time.Second, ClusterID: "e2e"}
}

// theCluster starts the shared cluster for the first story.
func theCluster(t *testing.T) *cluster.Cluster {
	t.Helper()
	if testing.Short() {
		t.Skip("it starts a cluster")
	}
	shared.Do(func() {
		ctx, cancel := context.Background(), func() {}
		if deadline, ok := t.Deadline(); ok {
			ctx, cancel = context.WithDeadlineCause(ctx, deadline.Add(-spare), errors.New("the test's time is over"))
		}
		defer cancel()
		shared.Cluster, shared.err = cluster.Start(ctx, options())
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.Cluster
}

// end closes the cluster. If all went well, the clouds must be empty and the
// driver must have run without a race.
func end(well bool) error {
	left := leftInClouds(shared.Emulator, "")
	races := strings.Count(shared.Driver.Log(), "WARNING: DATA RACE")
	err := shared.Close()
	switch {
	case err != nil:
		return err
	case races > 0:
		return fmt.Errorf("the driver raced %d times", races)
	case well && len(left) > 0:
		shared.mu.Lock()
		defer shared.mu.Unlock()
		left = slices.DeleteFunc(left, func(what string) bool {
			return slices.ContainsFunc(shared.kept, func(uid string) bool { return concerns(what, uid) })
		})
		if len(left) > 0 {
			return fmt.Errorf("left in the clouds:\n%s", strings.Join(left, "\n"))
		}
	}
	return nil
}
