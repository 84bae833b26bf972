package stackit

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zuber-storage/zuber/pkg/emulator"
	"github.com/zuber-storage/zuber/pkg/provider"
	"github.com/zuber-storage/zuber/pkg/s3"
)

// admins returns the groups that are named as the driver's admin.
func (c *cloud) admins() []emulator.Group {
	var found []emulator.Group
	for _, g := range c.Groups() {
		if g.Project == c.ProjectID && g.Region == testRegion && g.DisplayName == adminName("cosi.zuber.dev") {
			found = append(found, g)
		}
	}
	return found
}

// TestOneAdminForAllProcesses, although they start at once and lists lag; and
// each has a key of its own that nobody else touches.
func TestOneAdminForAllProcesses(t *testing.T) {
	for range 5 {
		oneAdminForAll(t)
	}
}

func oneAdminForAll(t *testing.T) {
	t.Helper()
	c := newCloud(t, emulator.Options{Stackit: emulator.StackitOptions{ListDelay: emulator.Delay{Min: 5 * time.Millisecond, Max: 15 * time.Millisecond}}})
	const n = 4
	processes := make([]*Provider, n)
	var wg sync.WaitGroup
	for i := range n {
		processes[i] = c.provider(t, func(config *Config) { config.ListingWait = 60 * time.Millisecond })
		wg.Go(func() {
			for range 20 {
				_, err := processes[i].adminGroup(t.Context(), testRegion, true)
				if err == nil {
					return
				}
				if !errors.Is(err, provider.ErrConflict) {
					t.Error(err)
				}
			}
			t.Error("no admin after 20 calls")
		})
	}
	wg.Wait()
	if a := c.admins(); len(a) != 1 {
		t.Fatalf("admins %v", a)
	}
	if n := len(c.Groups()); n != 1 {
		t.Fatalf("%d groups", n)
	}
	mustCreate(t, processes[0], "bucket-1")
	for i, p := range processes {
		if p.admins[testRegion].group.id != c.admins()[0].ID {
			t.Errorf("process %d uses another admin", i)
		}
		mustCreate(t, p, "bucket-1")
	}
	if a := c.admins(); a[0].Keys != n {
		t.Errorf("%d keys", a[0].Keys)
	}
}

// TestAdminOfACrashedProcess: it was made just before, so that the list does not
// show it to the next process at first, and nobody is left to remove it.
func TestAdminOfACrashedProcess(t *testing.T) {
	c := newCloud(t, emulator.Options{Stackit: emulator.StackitOptions{ListDelay: emulator.Delay{Min: 10 * time.Millisecond, Max: 12 * time.Millisecond}}})
	// Whichever of the two IDs is the smaller one.
	for i := range 8 {
		fresh := c.fresh(fmt.Sprintf("driver-%d", i))
		p := fresh.provider(t)
		orphan, err := p.createGroup(t.Context(), testRegion, adminName(fresh.driver))
		if err != nil {
			t.Fatal(err)
		}
		adm, err := p.adminGroup(t.Context(), testRegion, true)
		if err != nil || adm.id != orphan.id {
			t.Errorf("admin %s, want the orphan %s: %v", adm.id, orphan.id, err)
		}
		if n := len(c.Groups()); n != i+1 {
			t.Fatalf("%d groups after %d drivers", n, i+1)
		}
	}
}

func TestTwoAdminsAreRefused(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	p := c.provider(t)
	var made []string
	for range 2 {
		g, err := p.createGroup(t.Context(), testRegion, adminName("cosi.zuber.dev"))
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, g.id)
	}
	_, err := p.CreateBucket(t.Context(), spec("bucket-1"))
	if !errors.Is(err, provider.ErrConflict) || !strings.Contains(err.Error(), made[0]) || !strings.Contains(err.Error(), made[1]) {
		t.Errorf("two candidates: %v", err)
	}
	if len(c.Buckets()) != 0 || len(c.admins()) != 2 {
		t.Error("something was made or removed")
	}
	chosen := c.provider(t, func(config *Config) { config.AdminGroupID, config.Regions = made[1], []string{testRegion} })
	mustCreate(t, chosen, "bucket-1")
	if got := chosen.admins[testRegion].group.id; got != made[1] {
		t.Errorf("admin %s, want %s", got, made[1])
	}
}

func TestConfiguredAdminMustExist(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	p := c.provider(t, func(config *Config) { config.AdminGroupID, config.Regions = testGroup, []string{testRegion} })
	if _, err := p.CreateBucket(t.Context(), spec("bucket-1")); !errors.Is(err, provider.ErrPrecondition) || !strings.Contains(err.Error(), testGroup) {
		t.Error(err)
	}
	if len(c.admins()) != 0 {
		t.Error("another admin was made")
	}
}

// TestAnotherAdminIsTold: a bucket whose policy names an admin that this process
// does not have cannot be read, and the error says what to do.
func TestAnotherAdminIsTold(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	p := c.provider(t)
	mustCreate(t, p, "bucket-1")
	g, err := p.createGroup(t.Context(), testRegion, "mine")
	if err != nil {
		t.Fatal(err)
	}
	other := c.provider(t, func(config *Config) { config.AdminGroupID, config.Regions = g.id, []string{testRegion} })
	_, create := other.CreateBucket(t.Context(), spec("bucket-1"))
	_, get := other.GetBucket(t.Context(), refOf("bucket-1"))
	if !errors.Is(create, provider.ErrPrecondition) || !errors.Is(get, provider.ErrPermissionDenied) {
		t.Errorf("%v; %v", create, get)
	}
	for _, err := range []error{create, get} {
		if !strings.Contains(err.Error(), "set the back end's admin group") {
			t.Error(err)
		}
	}
}

// clock is a time that a test moves.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// TestAdminKeyIsRenewed at two thirds of its life; the old one runs out by
// itself, and a renewal that fails does no harm while it lasts.
func TestAdminKeyIsRenewed(t *testing.T) {
	var offset clock
	now := func() time.Time { return time.Now().Add(offset.Now().Sub(time.Time{})) }
	c := newCloud(t, emulator.Options{})
	p := c.provider(t, func(config *Config) { config.Now = now })
	mustCreate(t, p, "bucket-1")
	minted := func() int {
		n := 0
		for _, call := range c.emu.Calls() {
			if call.Operation == "CreateAccessKey" && call.Status == http.StatusCreated {
				n++
			}
		}
		return n
	}
	for _, s := range []struct {
		move  time.Duration
		fails bool
		want  int
	}{
		{0, false, 1}, {15 * time.Hour, false, 1}, {2 * time.Hour, true, 1}, {0, false, 2}, {0, false, 2},
	} {
		offset.move(s.move)
		remove := func() {}
		if s.fails {
			remove = c.emu.Inject(emulator.Fault{Operation: "CreateAccessKey", Status: http.StatusServiceUnavailable})
		}
		if _, err := p.GetBucket(t.Context(), refOf("bucket-1")); err != nil {
			t.Errorf("after %s: %v", s.move, err)
		}
		remove()
		if n := minted(); n != s.want {
			t.Errorf("after %s: %d keys, want %d", s.move, n, s.want)
		}
	}
	for _, call := range c.emu.Calls() {
		if call.Operation == "DeleteAccessKey" {
			t.Error("a key was deleted")
		}
	}
	keys, err := p.listKeys(t.Context(), testRegion, c.admins()[0].ID)
	if err != nil || len(keys) != 2 {
		t.Errorf("%d keys, %v", len(keys), err)
	}
}

// TestDeletedAdminKeyIsReplaced once the endpoint says that it is unknown.
func TestDeletedAdminKeyIsReplaced(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	p := c.provider(t)
	mustCreate(t, p, "bucket-1")
	id := c.admins()[0].ID
	keys, err := p.listKeys(t.Context(), testRegion, id)
	if err != nil || len(keys) != 1 {
		t.Fatal(keys, err)
	}
	if err := p.deleteKey(t.Context(), testRegion, id, keys[0].id); err != nil {
		t.Fatal(err)
	}
	if _, err := p.GetBucket(t.Context(), refOf("bucket-1")); err != nil {
		t.Error(err)
	}
}

func TestKeptAdminKey(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	maker := c.provider(t)
	mustCreate(t, maker, "bucket-0")
	kept, err := maker.mintKey(t.Context(), testRegion, c.admins()[0].ID, 0)
	if err != nil {
		t.Fatal(err)
	}
	before := c.admins()[0].Keys
	var credentials provider.Credentials
	p := c.provider(t, func(config *Config) {
		config.Regions = []string{testRegion}
		config.AdminKey = func() (provider.Credentials, error) { return credentials, nil }
	})
	if _, err := p.CreateBucket(t.Context(), spec("bucket-1")); !errors.Is(err, provider.ErrUnauthenticated) {
		t.Errorf("an empty key: %v", err)
	}
	credentials = kept.credentials
	mustCreate(t, p, "bucket-1")
	if after := c.admins()[0].Keys; after != before {
		t.Errorf("%d keys, before %d", after, before)
	}
}

func TestCheck(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	p := c.provider(t)
	if err := p.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(c.Groups()) != 0 {
		t.Error("the check has made a group")
	}
	mustCreate(t, p, "bucket-1")
	next := c.provider(t)
	if err := next.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	if k := c.admins()[0].Keys; k != 2 {
		t.Errorf("%d keys: the start has minted none", k)
	}
	foreign := c.provider(t, func(config *Config) { config.ProjectID = c.ForeignProjectID })
	if err := foreign.Check(t.Context()); !errors.Is(err, provider.ErrPermissionDenied) || !strings.Contains(err.Error(), "object-storage.admin") {
		t.Errorf("another project: %v", err)
	}
	c.emu.Inject(emulator.StackitFirewall())
	if err := p.Check(t.Context()); !errors.Is(err, provider.ErrUnavailable) {
		t.Errorf("a firewall: %v", err)
	}
}

// TestAdminKeyLate: a new admin key takes its time to reach the endpoint.
func TestAdminKeyLate(t *testing.T) {
	now := clock{now: time.Now()}
	c := newCloud(t, emulator.Options{Now: now.Now, Stackit: emulator.StackitOptions{KeyDelay: emulator.Delay{Min: 50 * time.Millisecond, Max: 80 * time.Millisecond}}})
	told := 0
	p := c.provider(t, func(config *Config) {
		config.PropagationWait = time.Hour
		config.OnKeyWait = func(string, time.Duration) {
			told++
			now.move(20 * time.Millisecond)
		}
	})
	mustCreate(t, p, "bucket-1")
	if told < 3 || told > 4 {
		t.Errorf("told %d times of the wait, want 3 or 4 times", told)
	}
	impatient := c.provider(t, func(config *Config) { config.PropagationWait = time.Millisecond })
	_, err := impatient.GetBucket(t.Context(), refOf("bucket-1"))
	if !errors.Is(err, provider.ErrUnavailable) || !strings.Contains(err.Error(), "admin's key does not work") {
		t.Error(err)
	}
	c.admin(t, p, func(client *s3.Client) error { _, err := client.Tags(t.Context(), "bucket-1"); return err })
}
