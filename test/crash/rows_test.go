package crash

import (
	"slices"

	"github.com/zuber-storage/zuber/pkg/emulator"
	"github.com/zuber-storage/zuber/pkg/provider"
)

// row is one RPC to be disturbed, in the state that it finds. What is no RPC but
// makes calls, such as a command, is a row too: its do gets the process, of which it
// takes the adapter, and the life, which knows the IDs that a cluster has.
type row struct {
	name   string
	on     []string // clouds; nil is all
	before []rpc
	run    rpc
	// cold: a process makes the RPC that has just started, instead of the one that
	// has made what is there. It makes more calls.
	cold bool
	// abandoned: nobody repeats the RPC; what it is about is revoked and deleted.
	abandoned bool
	// cluster is the ID of the driver's cluster; empty is none.
	cluster string
	// newcomer: no driver of its name has been here before.
	newcomer bool
}

func (r row) runsOn(cloud string) bool { return r.on == nil || slices.Contains(r.on, cloud) }

// brief reports whether a short run has the row.
func (r row) brief() bool {
	return slices.Contains([]string{"create", "create for a tenant with buckets", "grant ReadWrite", "rotate", "revoke", "delete"}, r.name)
}

// Which clouds have what.
var (
	// sharing is where a bucket has an owner whose key can be handed out, and that can
	// own others.
	sharing = []string{emulator.CloudCloudscale}
)

func rows() []row {
	const rw, ro, wo = provider.ReadWrite, provider.ReadOnly, provider.WriteOnly
	one, two := create("one"), create("two")
	shared := grantWith(alice, rw, []string{"one"}, "credentials=shared")
	purging := grantWith(alice, rw, []string{"one"}, "ownBuckets=purge")
	other, foreign := create("one", "bucketDeletionPolicy=DeleteAll"), create("one")
	other.want, foreign.want = provider.ErrAlreadyExists, provider.ErrAlreadyExists
	full := remove("one", "bucketDeletionPolicy=DeleteIfEmpty")
	full.want = provider.ErrNotEmpty
	missing := retire(alice, "one")
	missing.want = provider.ErrNotFound
	prods := createFor("prod", "one")
	tests := createFor("test", "one")
	tests.want = provider.ErrAlreadyExists
	absent := existing("one")
	absent.want = provider.ErrNotFound
	return append(tenantRows(), []row{
		{name: "create", run: create("one", "bucketDeletionPolicy=DeleteAll", "sharedCredentials=forbidden")},
		{name: "create, by a new process", run: one, cold: true},
		{name: "create, by a new driver", run: one, newcomer: true},
		{name: "create again", before: []rpc{one}, run: one},
		{name: "create again, by a new process", before: []rpc{one}, run: one, cold: true},
		{name: "create with other parameters", before: []rpc{one}, run: other},
		{name: "create under a foreign name", before: []rpc{two, taken()}, run: foreign},
		{name: "create under a foreign name, by a new process", before: []rpc{two, taken()}, run: foreign, cold: true},
		{name: "create, abandoned", run: one, abandoned: true},

		{name: "create for a claim", cluster: "blue", run: prods},
		{name: "create for a claim, by a new driver", cluster: "blue", run: prods, newcomer: true},
		{name: "create for a claim again", cluster: "blue", before: []rpc{prods, grant(alice, rw, "one")}, run: prods, cold: true},
		{name: "create for another claim", cluster: "blue", before: []rpc{prods}, run: tests, cold: true},
		{name: "create for a claim, abandoned", cluster: "blue", run: prods, abandoned: true},
		{name: "create for a claim whose class is corrected", on: sharing, cluster: "blue", before: []rpc{unmade("prod", "one")}, run: prods, cold: true},
		{name: "delete, made for a claim", cluster: "blue", before: []rpc{prods, grant(alice, rw, "one")}, run: remove("one"), cold: true},

		{name: "existing", before: []rpc{one, grant(alice, ro, "one")}, run: existing("one"), cold: true},
		{name: "existing, absent", before: []rpc{two}, run: absent},

		{name: "grant ReadWrite", before: []rpc{one}, run: grant(alice, rw, "one")},
		{name: "grant ReadOnly", before: []rpc{one}, run: grant(alice, ro, "one")},
		{name: "grant WriteOnly", before: []rpc{one}, run: grant(alice, wo, "one")},
		{name: "grant, by a new process", before: []rpc{one}, run: grant(alice, ro, "one"), cold: true},
		{name: "grant beside others", before: []rpc{one, grant(alice, rw, "one"), grant(bob, wo, "one")}, run: grant(carol, ro, "one")},
		{name: "grant again", before: []rpc{one, grant(alice, rw, "one")}, run: grant(alice, rw, "one")},
		{name: "grant again, by a new process", before: []rpc{one, grant(alice, rw, "one")}, run: grant(alice, rw, "one"), cold: true},
		{name: "grant of another mode", before: []rpc{one, grant(alice, rw, "one")}, run: grant(alice, ro, "one")},
		{name: "grant, abandoned", before: []rpc{one}, run: grant(alice, rw, "one"), abandoned: true},
		{name: "grant of the shared key", on: sharing, before: []rpc{one}, run: shared},
		{name: "grant of several buckets", before: []rpc{one, two}, run: grant(alice, ro, "one", "two")},
		{name: "grant of several buckets again", before: []rpc{one, two, grant(alice, rw, "one", "two")}, run: grant(alice, rw, "two", "one"), cold: true},
		{name: "grant of one more bucket", before: []rpc{one, two, grant(alice, rw, "one")}, run: grant(alice, rw, "one", "two")},
		{name: "grant of several buckets, abandoned", before: []rpc{one, two}, run: grant(alice, wo, "one", "two"), abandoned: true},

		{name: "rotate", before: []rpc{one, grant(alice, rw, "one")}, run: rotate(alice, false, "one")},
		{name: "rotate and keep", before: []rpc{one, grant(alice, ro, "one")}, run: rotate(alice, true, "one"), cold: true},
		{name: "rotate for several buckets", before: []rpc{one, two, grant(alice, rw, "one", "two")}, run: rotate(alice, true, "one", "two")},
		{name: "rotate again", before: []rpc{one, grant(alice, wo, "one"), rotate(alice, true, "one")}, run: rotate(alice, true, "one"), cold: true},
		{name: "rotate, abandoned", before: []rpc{one, grant(alice, rw, "one")}, run: rotate(alice, false, "one"), abandoned: true},
		{name: "retire", before: []rpc{one, grant(alice, rw, "one"), rotate(alice, true, "one")}, run: retire(alice, "one")},
		{name: "retire for several buckets", before: []rpc{one, two, grant(alice, ro, "one", "two"), rotate(alice, true, "one", "two")}, run: retire(alice, "one", "two"), cold: true},
		{name: "retire, abandoned", before: []rpc{one, grant(alice, rw, "one"), rotate(alice, true, "one")}, run: retire(alice, "one"), abandoned: true},
		{name: "retire of nothing", before: []rpc{one}, run: missing},
		{name: "grant after a rotation", before: []rpc{one, grant(alice, rw, "one"), rotate(alice, false, "one")}, run: grant(alice, rw, "one"), cold: true},
		{name: "grant of one more bucket after a rotation", before: []rpc{one, two, grant(alice, ro, "one"), rotate(alice, false, "one")}, run: grant(alice, ro, "one", "two")},

		{name: "revoke", before: []rpc{one, grant(alice, rw, "one")}, run: revoke(alice, "one")},
		{name: "revoke, by a new process", before: []rpc{one, grant(alice, wo, "one")}, run: revoke(alice, "one"), cold: true},
		{name: "revoke one of two", before: []rpc{one, grant(alice, rw, "one"), grant(bob, ro, "one")}, run: revoke(alice, "one")},
		{name: "revoke of nothing", before: []rpc{one}, run: revoke(alice, "one")},
		{name: "revoke again", before: []rpc{one, grant(alice, rw, "one"), revoke(alice, "one")}, run: revoke(alice, "one"), cold: true},
		{name: "revoke, abandoned", before: []rpc{one, grant(alice, rw, "one")}, run: revoke(alice, "one"), abandoned: true},
		{name: "revoke of the shared key", on: sharing, before: []rpc{one, shared}, run: revoke(alice, "one")},
		{name: "revoke with buckets of its own", on: sharing, before: []rpc{one, purging, ownBucket(alice, "own")}, run: revoke(alice, "one")},
		{name: "revoke of several buckets", before: []rpc{one, two, grant(alice, rw, "one", "two")}, run: revoke(alice, "one", "two")},
		{name: "revoke after a rotation", before: []rpc{one, grant(alice, rw, "one"), rotate(alice, false, "one")}, run: revoke(alice, "one")},
		{name: "revoke with a key kept", before: []rpc{one, two, grant(alice, rw, "one", "two"), rotate(alice, true, "one", "two")}, run: revoke(alice, "one", "two"), cold: true},

		{name: "delete", before: []rpc{one}, run: remove("one")},
		{name: "delete, by a new process", before: []rpc{one}, run: remove("one"), cold: true},
		{name: "delete with accesses", before: []rpc{one, grant(alice, rw, "one"), grant(bob, ro, "one")}, run: remove("one")},
		{name: "delete with content", before: []rpc{one, content("one")}, run: remove("one", "bucketDeletionPolicy=DeleteAll")},
		{
			name: "delete with content and accesses", before: []rpc{create("one", "bucketDeletionPolicy=DeleteAll"), grant(alice, wo, "one"), content("one")},
			run: remove("one"), cold: true,
		},
		{name: "delete what may not be emptied", before: []rpc{one, grant(alice, rw, "one"), content("one")}, run: full},
		{name: "delete of nothing", before: []rpc{two}, run: remove("one")},
		{name: "delete again", before: []rpc{one, grant(alice, rw, "one"), remove("one")}, run: remove("one"), cold: true},
		{name: "delete, abandoned", before: []rpc{one, grant(alice, rw, "one")}, run: remove("one"), abandoned: true},
		{name: "delete one of several buckets", before: []rpc{one, two, grant(alice, rw, "one", "two")}, run: remove("one")},
		{name: "delete with a key kept", before: []rpc{one, grant(alice, rw, "one"), rotate(alice, true, "one")}, run: remove("one")},

		{name: "gc", before: []rpc{one, two, grant(alice, rw, "one"), rotate(alice, true, "one"), grant(bob, ro, "two")}, run: collect("two", bob)},
		{name: "gc of an access", before: []rpc{one, grant(alice, rw, "one"), grant(bob, wo, "one"), rotate(bob, true, "one")}, run: collect(bob), cold: true},
		{name: "gc of a span", before: []rpc{one, two, grant(alice, ro, "one"), grant(bob, rw, "one", "two"), content("two")}, run: collect("two", bob)},
	}...)
}

// ofTenant makes a bucket of a tenant.
func ofTenant(bucket string, class ...string) rpc {
	return create(bucket, append(team(), class...)...)
}

func team() []string { return []string{"objectsUser=tenant", "tenant=team"} }

func tenantRows() []row {
	const rw, ro = provider.ReadWrite, provider.ReadOnly
	one, two := ofTenant("one"), ofTenant("two")
	foreign, others, nobodys := ofTenant("one"), create("one", "objectsUser=tenant", "tenant=other"), create("one")
	for _, r := range []*rpc{&foreign, &others, &nobodys} {
		r.want = provider.ErrAlreadyExists
	}
	rows := []row{
		{name: "create for a tenant", run: ofTenant("one", "bucketDeletionPolicy=DeleteAll")},
		{name: "create for a tenant, by a new driver", run: one, newcomer: true},
		{name: "create for a tenant with buckets", before: []rpc{two}, run: one, cold: true},
		{name: "create for a tenant again", before: []rpc{one, two}, run: one, cold: true},
		{name: "create for a tenant, abandoned", run: one, abandoned: true},
		{name: "create for a tenant with buckets, abandoned", before: []rpc{two}, run: one, abandoned: true},
		{
			name: "create for a tenant's claim whose class is corrected", cluster: "blue",
			before: []rpc{unmade("prod", "one", team()...), two}, run: createFor("prod", "one", team()...), cold: true,
		},
		{name: "create for another tenant", before: []rpc{one, two}, run: others},
		{name: "create of a tenant's for nobody", before: []rpc{one, two}, run: nobodys},
		{name: "create for a tenant under a foreign name", before: []rpc{two, taken()}, run: foreign},
		{name: "create for a new tenant under a foreign name", before: []rpc{create("two"), taken()}, run: foreign, cold: true},
		{name: "grant of a tenant's buckets", before: []rpc{one, two}, run: grant(alice, rw, "one", "two")},
		{name: "rotate for a tenant's bucket", before: []rpc{one, two, grant(alice, rw, "one")}, run: rotate(alice, true, "one"), cold: true},
		{name: "revoke for one of a tenant's", before: []rpc{one, two, grant(alice, rw, "one"), grant(bob, ro, "two")}, run: revoke(alice, "one")},
		{name: "delete one of a tenant's", before: []rpc{one, two, grant(alice, rw, "one", "two")}, run: remove("one")},
		{name: "delete the last of a tenant's", before: []rpc{one, grant(alice, rw, "one"), content("one")}, run: remove("one", "bucketDeletionPolicy=DeleteAll"), cold: true},
		{name: "delete the last of a tenant's, abandoned", before: []rpc{one}, run: remove("one"), abandoned: true},
		{name: "gc of one of a tenant's", before: []rpc{one, two, grant(alice, rw, "one"), grant(bob, ro, "two")}, run: collect("two", bob)},
		{name: "gc of a tenant", before: []rpc{one, two, create("three")}, run: collect("one", "two"), cold: true},
	}
	for i := range rows {
		rows[i].on = sharing
	}
	return rows
}
