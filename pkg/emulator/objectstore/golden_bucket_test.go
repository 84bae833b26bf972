package objectstore

import (
	"strings"
	"testing"
)

func constraint(region string) string {
	return `<CreateBucketConfiguration xmlns="` + xmlns + `"><LocationConstraint>` + region +
		`</LocationConstraint></CreateBucketConfiguration>`
}

// Rows of t_a2 and t_c: who may create what where.
func TestGoldenCreateBucket(t *testing.T) { onReleases(t, goldenCreateBucket) }

func goldenCreateBucket(t *testing.T, l *lab) {
	t.Helper()
	a, b := l.user("A"), l.user("B")
	lpgA, lpgB := a.inLPG(l), b.inLPG(l)
	const invalid = "400 InvalidLocationConstraint | The specified location-constraint is not valid"
	const taken = "409 BucketAlreadyExists | "
	const takenHere = taken + "Cannot modify existing access control policy"
	const takenElsewhere = taken + "Cannot modify existing bucket's zonegroup"
	unknown := func(region string) string {
		return "400 InvalidLocationConstraint | The " + region + " location constraint is not valid."
	}
	illegal := func(region string) string {
		return "400 IllegalLocationConstraintException | The " + region +
			" location constraint is incompatible for the region specific endpoint this request was sent to."
	}

	l.golden(t, []row{
		{log: "rma list_buckets A", by: a, call: "GET /", want: "200"},
		{log: "rma create a-plain (no LC)", by: a, call: "PUT /a-plain", want: "200"},
		{log: "rma create LC=rma", by: a, call: "PUT /a-rma-rma", body: constraint("rma"), want: "200"},
		{log: "rma create LC=lpg", by: a, call: "PUT /a-rma-lpg", body: constraint("lpg"), want: "200", tentacle: illegal("lpg")},
		{log: "  and it is in lpg", by: lpgA, call: "GET /a-rma-lpg?location", want: "200", then: location("lpg"),
			tentacle: "404 NoSuchBucket", thenTentacle: nothing},
		{log: "rma create LC=us-east-1", by: a, call: "PUT /a-us", body: constraint("us-east-1"), want: invalid, tentacle: unknown("us-east-1")},
		{log: "rma create LC=eu-west-1", by: a, call: "PUT /a-eu", body: constraint("eu-west-1"), want: invalid, tentacle: unknown("eu-west-1")},
		{log: "rma create LC=default", by: a, call: "PUT /a-default", body: constraint("default"), want: invalid, tentacle: unknown("default")},
		{log: "rma create LC=:default-placement", by: a, call: "PUT /a-dp", body: constraint(":default-placement"), want: "200"},
		{log: "rma create LC=rma:default-placement", by: a, call: "PUT /a-rma-dp", body: constraint("rma:default-placement"), want: "200"},

		{log: "lpg create a-lpg-plain (no LC)", by: lpgA, call: "PUT /a-lpg-plain", want: "200"},
		{log: "lpg create LC=rma", by: lpgA, call: "PUT /a-lpg-rma", body: constraint("rma"), want: invalid, tentacle: illegal("rma")},
		{log: "lpg create LC=lpg", by: lpgA, call: "PUT /a-lpg-lpg", body: constraint("lpg"), want: "503 ServiceUnavailable | ", tentacle: "200"},
		{log: "lpg create LC=us-east-1", by: lpgA, call: "PUT /a-lpg-us", body: constraint("us-east-1"), want: invalid, tentacle: unknown("us-east-1")},
		{log: "lpg LC=:default-placement", by: lpgA, call: "PUT /a-lpg-dp", body: constraint(":default-placement"),
			want: "503 ServiceUnavailable", tentacle: "200"},

		{log: "rma re-create same owner same params", by: a, call: "PUT /a-plain", want: "200"},
		{log: "rma re-create same owner LC=rma", by: a, call: "PUT /a-plain", body: constraint("rma"), want: "200"},
		{log: "rma re-create same owner ACL=public-read", by: a, call: "PUT /a-plain",
			header: []string{"X-Amz-Acl", "public-read"}, want: taken, tentacle: takenHere},
		{log: "   acl afterwards", by: a, call: "GET /a-plain?acl", want: "200", then: func(t *testing.T, got answer) {
			list := parse[accessControlPolicyXML](t, got)
			if len(list.ACL.Grants) != 1 || list.ACL.Grants[0].Permission != "FULL_CONTROL" || list.ACL.Grants[0].Grantee.ID != "uid-a" {
				t.Errorf("grants %+v", list.ACL.Grants)
			}
		}},
		{log: "rma re-create same owner w/ ObjectLock", by: a, call: "PUT /a-plain",
			header: []string{"X-Amz-Bucket-Object-Lock-Enabled", "true"}, want: "200"},
		{log: "  and it changed nothing", by: a, call: "GET /a-plain?object-lock", want: "404 ObjectLockConfigurationNotFoundError"},
		{log: "rma create by foreign user B", by: b, call: "PUT /a-plain", want: taken, tentacle: takenHere},
		{log: "lpg create by same owner of synced rma bucket", by: lpgA, call: "PUT /a-plain", want: taken, tentacle: takenElsewhere,
			notKept: "200", why: "within the sync window, in which Reef makes a second bucket of the name and Tentacle " +
				"does not; the emulator's namespace is always in sync"},
		{log: "lpg create by foreign user of rma bucket", by: lpgB, call: "PUT /a-plain", want: taken, tentacle: takenElsewhere},
		{log: "lpg re-create same owner", by: lpgA, call: "PUT /a-lpg-plain", want: "200"},
		{log: "lpg re-create existing LC=lpg (of another user)", by: lpgB, call: "PUT /a-lpg-plain", body: constraint("lpg"), want: taken, tentacle: takenHere},
		{log: "lpg re-create existing LC=lpg", by: lpgA, call: "PUT /a-lpg-plain", body: constraint("lpg"),
			want: "503 ServiceUnavailable", tentacle: "200", unconfirmed: "Reef was asked about the bucket of another user alone"},
		{log: "rma create c3 same owner", by: a, call: "PUT /a-lpg-plain", want: taken, tentacle: takenElsewhere},
		{log: "rma create c3 foreign", by: b, call: "PUT /a-lpg-plain", want: taken, tentacle: takenElsewhere},

		{log: "bucket name invalid", by: a, call: "PUT /Not_Valid", want: "400 InvalidBucketName"},
		{log: "bucket name 64 chars", by: a, call: "PUT /" + strings.Repeat("a", 64), want: "400 InvalidBucketName"},
		{log: "lpg list_buckets A", by: lpgA, call: "GET /", want: "200", then: func(t *testing.T, got answer) {
			list := parse[listBucketsXML](t, got)
			if list.Owner.ID != "uid-a" || list.Owner.DisplayName != "A" {
				t.Errorf("owner %+v", list.Owner)
			}
			var names []string
			for _, x := range list.Buckets.Bucket {
				names = append(names, x.Name)
			}
			want := "a-dp a-lpg-plain a-plain a-rma-dp a-rma-lpg a-rma-rma"
			if l.release == Tentacle {
				want = "a-dp a-lpg-dp a-lpg-lpg a-lpg-plain a-plain a-rma-dp a-rma-rma"
			}
			if got := strings.Join(names, " "); got != want {
				t.Errorf("buckets %q, want %q", got, want)
			}
		}},
	})
}

// nothing is the check of an answer with nothing in it.
func nothing(*testing.T, answer) {}

func location(want string) func(*testing.T, answer) {
	return func(t *testing.T, got answer) {
		t.Helper()
		if region := parse[locationXML](t, got).Region; region != want {
			t.Errorf("location %q, want %q", region, want)
		}
	}
}

// Rows of t_c and t_d: a bucket seen from the other region.
func TestGoldenCrossRegion(t *testing.T) { onReleases(t, goldenCrossRegion) }

func goldenCrossRegion(t *testing.T, l *lab) {
	t.Helper()
	a, b := l.user("A"), l.user("B")
	lpgA, lpgB := a.inLPG(l), b.inLPG(l)
	a.must(t, "PUT", "/d1-bkt", "")
	redirect := func(path string) func(*testing.T, answer) {
		return func(t *testing.T, got answer) {
			t.Helper()
			if loc := got.header.Get("Location"); loc != l.urls["rma"]+path || len(got.body) != 0 {
				t.Errorf("Location %q, body %q", loc, got.body)
			}
		}
	}
	l.golden(t, []row{
		{log: "HEAD /d1-bkt", by: lpgA, call: "HEAD /d1-bkt", want: "301", then: redirect("/d1-bkt"),
			notKept: "404", why: "before the bucket is synced; the emulator's namespace is always in sync"},
		{log: "GET /d1-bkt", by: lpgA, call: "GET /d1-bkt", want: "301", then: redirect("/d1-bkt")},
		{log: "PUT /d1-bkt/x", by: lpgA, call: "PUT /d1-bkt/x", body: "x", want: "301", then: redirect("/d1-bkt/x")},
		{log: "DELETE /d1-bkt", by: lpgA, call: "DELETE /d1-bkt", want: "301", then: redirect("/d1-bkt")},
		{log: "lpg list_objects_v2 of rma bucket, owner", by: lpgA, call: "GET /d1-bkt?list-type=2", want: "301", then: redirect("/d1-bkt?list-type=2")},
		{log: "lpg get_bucket_policy of rma bucket, owner", by: lpgA, call: "GET /d1-bkt?policy", want: "301"},
		{log: "lpg get_bucket_versioning of rma bucket, owner", by: lpgA, call: "GET /d1-bkt?versioning", want: "301"},
		{log: "lpg get_bucket_acl of rma bucket, owner", by: lpgA, call: "GET /d1-bkt?acl", want: "301"},
		{log: "anon GET lpg", by: l.anonymous().inLPG(l), call: "GET /d1-bkt/x", want: "301"},
		{log: "lpg head, foreign", by: lpgB, call: "HEAD /d1-bkt", want: "301"},
		{log: "GET /d1-bkt?location", by: lpgA, call: "GET /d1-bkt?location", want: "200", then: location("rma")},
		{log: "lpg loc, foreign", by: lpgB, call: "GET /d1-bkt?location", want: "403 AccessDenied"},
		{log: "rma loc", by: a, call: "GET /d1-bkt?location", want: "200", then: location("rma")},
	})
}

// Rows of t_a2: foreign and missing buckets, absent configuration, bad credentials.
func TestGoldenForeignMissingCredentials(t *testing.T) {
	onReleases(t, goldenForeignMissingCredentials)
}

func goldenForeignMissingCredentials(t *testing.T, l *lab) {
	t.Helper()
	a, b := l.user("A"), l.user("B")
	a.must(t, "PUT", "/a-bkt", "")
	unknown := l.user("A")
	unknown.accessKey = "UNKNOWN"
	wrong := l.user("A")
	wrong.secret = "not the secret"
	l.golden(t, []row{
		{log: "B head foreign", by: b, call: "HEAD /a-bkt", want: "403"},
		{log: "B list foreign", by: b, call: "GET /a-bkt", want: "403 AccessDenied | "},
		{log: "B get policy foreign", by: b, call: "GET /a-bkt?policy", want: "403 AccessDenied"},
		{log: "B put policy foreign", by: b, call: "PUT /a-bkt?policy", body: "{}", want: "403 AccessDenied"},
		{log: "B delete foreign bucket", by: b, call: "DELETE /a-bkt", want: "403 AccessDenied"},
		{log: "B head missing", by: b, call: "HEAD /none-bkt", want: "404"},
		{log: "B list missing", by: b, call: "GET /none-bkt", want: "404 NoSuchBucket | "},
		{log: "B get policy missing bucket", by: b, call: "GET /none-bkt?policy", want: "404 NoSuchBucket"},
		{log: "B delete missing bucket", by: b, call: "DELETE /none-bkt", want: "404 NoSuchBucket"},
		{log: "A get policy none", by: a, call: "GET /a-bkt?policy", want: "404 NoSuchBucketPolicy | The bucket policy does not exist"},
		{log: "A delete policy none", by: a, call: "DELETE /a-bkt?policy", want: "204"},
		{log: "A get policy status none", by: a, call: "GET /a-bkt?policyStatus", want: "200"},
		{log: "A get tagging none", by: a, call: "GET /a-bkt?tagging", want: "404 NoSuchTagSet"},
		{log: "A get lifecycle none", by: a, call: "GET /a-bkt?lifecycle", want: "404 NoSuchLifecycleConfiguration"},
		{log: "A get cors none", by: a, call: "GET /a-bkt?cors", want: "404 NoSuchCORSConfiguration"},
		{log: "A get object lock none", by: a, call: "GET /a-bkt?object-lock", want: "404 ObjectLockConfigurationNotFoundError"},
		{log: "A get public access block none", by: a, call: "GET /a-bkt?publicAccessBlock",
			want: "404 NoSuchPublicAccessBlockConfiguration | The public access block configuration was not found"},
		{log: "A get encryption none", by: a, call: "GET /a-bkt?encryption",
			want: "404 ServerSideEncryptionConfigurationNotFoundError | The server side encryption configuration was not found"},
		{log: "A get website none", by: a, call: "GET /a-bkt?website", want: "405 MethodNotAllowed"},
		{log: "A get website none, foreign", by: b, call: "GET /a-bkt?website", want: "405 MethodNotAllowed"},
		{log: "A get ownership controls", by: a, call: "GET /a-bkt?ownershipControls", want: "200"},
		{log: "unknown access key", by: unknown, call: "GET /", want: "403 InvalidAccessKeyId"},
		{log: "unknown access key, bucket op", by: unknown, call: "HEAD /a-bkt", want: "403"},
		{log: "unknown access key, create bucket", by: unknown, call: "PUT /u-bkt", want: "403 InvalidAccessKeyId"},
		{log: "wrong secret", by: wrong, call: "GET /", want: "403 SignatureDoesNotMatch"},
		{log: "bad region string in scope", by: a, call: "GET /", want: "200"},
	})
}

// Rows of t_g: configuration, quota, ACLs as an alternative to policies.
func TestGoldenFeatures(t *testing.T) { onReleases(t, goldenFeatures) }

func goldenFeatures(t *testing.T, l *lab) {
	t.Helper()
	a, b := l.user("A"), l.user("B")
	a.must(t, "PUT", "/g-bkt", "")
	tags := `<Tagging><TagSet><Tag><Key>k8s.io/x</Key><Value>v</Value></Tag><Tag><Key>owner</Key><Value>ns/name</Value></Tag></TagSet></Tagging>`
	cors := `<CORSConfiguration><CORSRule><AllowedMethod>GET</AllowedMethod><AllowedOrigin>*</AllowedOrigin></CORSRule></CORSConfiguration>`
	l.golden(t, []row{
		{log: "PutBucketTagging", by: a, call: "PUT /g-bkt?tagging", body: tags, want: "200"},
		{log: "GetBucketTagging", by: a, call: "GET /g-bkt?tagging", want: "200", then: func(t *testing.T, got answer) {
			set := parse[taggingXML](t, got).TagSet.Tags
			if len(set) != 2 || set[0] != (tag{"k8s.io/x", "v"}) || set[1] != (tag{"owner", "ns/name"}) {
				t.Errorf("tags %v", set)
			}
		}},
		{log: "PutBucketCors", by: a, call: "PUT /g-bkt?cors", body: cors, want: "200"},
		{log: "  and back", by: a, call: "GET /g-bkt?cors", want: "200", then: func(t *testing.T, got answer) {
			if string(got.body) != cors {
				t.Errorf("cors %q", got.body)
			}
		}},
		{log: "PutBucketLifecycle", by: a, call: "PUT /g-bkt?lifecycle", body: `<LifecycleConfiguration><Rule/></LifecycleConfiguration>`, want: "200"},
		{log: "PutBucketEncryption AES256", by: a, call: "PUT /g-bkt?encryption", body: `<ServerSideEncryptionConfiguration/>`, want: "200"},
		{log: "PutBucketNotification", by: a, call: "PUT /g-bkt?notification", body: `<NotificationConfiguration/>`, want: "200"},
		{log: "GetBucketLogging", by: a, call: "GET /g-bkt?logging", want: "200"},
		{log: "GetBucketReplication", by: a, call: "GET /g-bkt?replication", want: "200"},
		{log: "GetBucketRequestPayment", by: a, call: "GET /g-bkt?requestPayment", want: "200"},
		{log: "GetBucketAccelerate", by: a, call: "GET /g-bkt?accelerate", want: "200"},
		{log: "tags over the limits", by: a, call: "PUT /g-bkt?tagging",
			body: "<Tagging><TagSet><Tag><Key>" + strings.Repeat("k", 129) + "</Key><Value/></Tag></TagSet></Tagging>", want: "400 InvalidTag"},
		{log: "another document than announced", by: a, call: "PUT /g-bkt?cors", body: "<Tagging/>", want: "400 MalformedXML"},
		{log: "delete cors", by: a, call: "DELETE /g-bkt?cors", want: "204"},
		{log: "  gone", by: a, call: "GET /g-bkt?cors", want: "404 NoSuchCORSConfiguration"},
	})

	a.must(t, "PUT", "/g-bkt/k", "data of A")
	grant := func(kind string) []string { return []string{"X-Amz-Grant-" + kind, `id="uid-b"`} }
	l.golden(t, []row{
		{log: "PutBucketAcl grant READ to B", by: a, call: "PUT /g-bkt?acl", header: grant("Read"), want: "200"},
		{log: "B list", by: b, call: "GET /g-bkt", want: "200"},
		{log: "B get A's object", by: b, call: "GET /g-bkt/k", want: "403 AccessDenied | ", tentacle: missingGet},
		{log: "B put", by: b, call: "PUT /g-bkt/n", body: "x", want: "403 AccessDenied"},
		{log: "PutBucketAcl grant WRITE to B", by: a, call: "PUT /g-bkt?acl", header: grant("Write"), want: "200"},
		{log: "B list", by: b, call: "GET /g-bkt", want: "403 AccessDenied"},
		{log: "B put", by: b, call: "PUT /g-bkt/n", body: "x", want: "200"},
		{log: "B delete A's", by: b, call: "DELETE /g-bkt/k", want: "204"},
		{log: "A get B's", by: a, call: "GET /g-bkt/n", want: "403 AccessDenied | ", tentacle: missingGet},
		{log: "Put ACL to unknown user id", by: a, call: "PUT /g-bkt?acl", header: []string{"X-Amz-Grant-Read", `id="nobody"`},
			want: "400 InvalidArgument | Invalid id", tentacle: "400 InvalidArgument | Invalid CanonicalUser id"},
	})
}

// Rows of t_g on max_buckets, and t_n: the quota is per user, and ListBuckets tells the user's ID.
func TestGoldenQuota(t *testing.T) { onReleases(t, goldenQuota) }

func goldenQuota(t *testing.T, l *lab) {
	t.Helper()
	l.store.maxBuckets = 2
	a := l.user("A")
	l.golden(t, []row{
		{log: "create 0", by: a, call: "PUT /quota-0", want: "200"},
		{log: "create 1", by: a, call: "PUT /quota-1", want: "200"},
		{log: "create 2", by: a, call: "PUT /quota-2", want: "400 TooManyBuckets"},
		{log: "re-create at the limit", by: a, call: "PUT /quota-1", want: "200"},
		{log: "ListBuckets Owner.ID == uid", by: a, call: "GET /", want: "200", then: func(t *testing.T, got answer) {
			if id := parse[listBucketsXML](t, got).Owner.ID; id != "uid-a" {
				t.Errorf("owner %q", id)
			}
		}},
	})
}

// Row "vhost anon" of t_g, and the virtual-hosted form of the rest.
func TestVirtualHosted(t *testing.T) {
	l := newLab(t)
	a := l.user("A")
	a.must(t, "PUT", "/vhost.bkt", "")
	a.must(t, "PUT", "/vhost.bkt/dir/key", "data")
	a.host = "vhost.bkt.objects.rma.localhost:4711"
	anonymous := l.anonymous()
	anonymous.host = a.host
	l.golden(t, []row{
		{log: "vhost anon", by: anonymous, call: "GET /", want: "403 AccessDenied", then: func(t *testing.T, got answer) {
			if !strings.HasPrefix(string(got.body), `<?xml version="1.0" encoding="UTF-8"?><Error><Code>AccessDenied</Code><Message></Message><BucketName>vhost.bkt</BucketName><RequestId>tx`) {
				t.Errorf("error document %q", got.body)
			}
			if got.header.Get("X-Amz-Request-Id") == "" || got.header.Get("Content-Type") != "application/xml" {
				t.Errorf("header %v", got.header)
			}
		}},
		{log: "head bucket", by: a, call: "HEAD /", want: "200"},
		{log: "get", by: a, call: "GET /dir/key", want: "200", then: func(t *testing.T, got answer) {
			if string(got.body) != "data" {
				t.Errorf("body %q", got.body)
			}
		}},
	})
}
