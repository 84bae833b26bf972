package objectstore

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"
)

// The rows of the tables below are what the vendor documents of release 11.9 and what was seen of the
// cloud that runs it. Rows that neither tells are marked.

// gridFull is a longest policy for a bucket: its size in bytes, filled up with a Sid.
func gridFull(t testing.TB, bucket string, size int) string {
	t.Helper()
	filled := func(n int) string {
		s := onlyFor("admin")
		s.Sid = strings.Repeat("x", n)
		return gridPolicy(t, bucket, s)
	}
	return filled(size - len(filled(1)) + 1)
}

func TestGoldenGridPolicies(t *testing.T) {
	g := newGrid(t)
	admin, rw, out, foreign, root, anonymous := g.as("admin"), g.as("rw"), g.as("out"), g.as("foreign"), g.as("root"), g.as("")
	admin.must(t, "PUT", "/g-bkt", "")
	admin.must(t, "PUT", "/g-bkt/key", "text")
	everybody := gridPolicy(t, "g-bkt", gridStatement{Effect: "Allow", Principal: principals("*"), Action: []string{"s3:*"}})
	nobody := gridPolicy(t, "g-bkt", gridStatement{Effect: "Deny", Principal: principals("*"), Action: []string{"s3:*"}})
	reads := gridPolicy(t, "g-bkt", gridStatement{Effect: "Allow", Principal: principals(urns("foreign")...), Action: []string{"s3:GetObject", "s3:GetBucketPolicy"}})
	byUser := gridPolicy(t, "g-bkt", gridStatement{
		Effect: "Deny", Principal: principals("urn:sgws:identity::" + gridAccount + ":user/rw"), Action: []string{"s3:GetObject"}})
	byAccount := gridPolicy(t, "g-bkt", gridStatement{Effect: "Deny", Principal: principals(gridAccount), Action: []string{"s3:GetObject"}})
	longest := gridFull(t, "g-bkt", 20480)
	g.golden(t, []row{
		{log: "no policy", by: admin, call: "GET /g-bkt?policy", want: "404 NoSuchBucketPolicy"},
		{log: "open to every group of the account", by: out, call: "GET /g-bkt/key", want: "200"},
		{log: "and to write", by: out, call: "PUT /g-bkt/other", body: "x", want: "200"},
		{log: "closed to another account", by: foreign, call: "GET /g-bkt/key", want: "403 AccessDenied | Access is denied."},
		{log: "closed to the anonymous", by: anonymous, call: "GET /g-bkt/key", want: "403 AccessDenied"},
		{log: "another account deletes a version", by: foreign, call: "DELETE /g-bkt/key?versionId=null", want: "403 AccessDenied"},
		{log: "delete a policy that is not there", by: admin, call: "DELETE /g-bkt?policy", want: "204"},

		{log: "all but admin denied", by: admin, call: "PUT /g-bkt?policy", body: gridPolicy(t, "g-bkt", onlyFor("admin")), want: "204"},
		{log: "read back", by: admin, call: "GET /g-bkt?policy", want: "200", then: func(t *testing.T, a answer) {
			if string(a.body) != gridPolicy(t, "g-bkt", onlyFor("admin")) || a.header.Get("Content-Type") != "application/json" {
				t.Errorf("%s: %s", a.header.Get("Content-Type"), a.body)
			}
		}},
		{log: "admin", by: admin, call: "GET /g-bkt/key", want: "200"},
		{log: "the others", by: out, call: "GET /g-bkt/key", want: "403 AccessDenied"},
		{log: "their policy", by: out, call: "GET /g-bkt?policy", want: "403 AccessDenied"},
		{log: "their head", by: out, call: "HEAD /g-bkt", want: "403"},
		{log: "their delete", by: out, call: "DELETE /g-bkt", want: "403 AccessDenied"},
		{log: "their list of deletions is answered key by key", by: out, call: "POST /g-bkt?delete", body: deleteKeys(false, "key"), want: "200",
			unconfirmed: "that the call itself is not refused", then: func(t *testing.T, a answer) {
				want := deleteErrorXML{Key: "key", Code: "AccessDenied", Message: "Access is denied."}
				if r := parse[deleteResultXML](t, a); len(r.Deleted) != 0 || len(r.Errors) != 1 || r.Errors[0] != want {
					t.Errorf("%s", a.body)
				}
			}},
		{log: "a missing key, where it may not be read", by: out, call: "GET /g-bkt/none", want: "403 AccessDenied", unconfirmed: "the order of the checks"},
		{log: "they list all buckets still", by: out, call: "GET /", want: "200"},
		{log: "and make some", by: out, call: "PUT /out-bkt", want: "200", unconfirmed: "that the groups may create buckets over S3"},
		{log: "the account's root", by: root, call: "GET /g-bkt?policy", want: "200"},

		{log: "Deny everyone", by: admin, call: "PUT /g-bkt?policy", body: nobody, want: "204"},
		{log: "admin has locked itself out", by: admin, call: "DELETE /g-bkt?policy", want: "403 AccessDenied"},
		{log: "root reads no data", by: root, call: "GET /g-bkt/key", want: "403 AccessDenied"},
		{log: "root keeps the policy", by: root, call: "PUT /g-bkt?policy", body: everybody, want: "204"},

		{log: "Allow everyone: anonymous", by: anonymous, call: "GET /g-bkt/key", want: "200"},
		{log: "Allow everyone: another account", by: foreign, call: "PUT /g-bkt/foreign", body: "x", want: "200"},
		{log: "what it wrote is the bucket's owner's", by: foreign, call: "GET /g-bkt?list-type=2&fetch-owner=true&prefix=foreign", want: "200",
			then: func(t *testing.T, a answer) {
				if c := parse[listObjectsXML](t, a).Contents; len(c) != 1 || c[0].Owner.ID != gridAccount || c[0].Owner.DisplayName != "project" || c[0].Type != "" {
					t.Errorf("%s", a.body)
				}
			}},
		{log: "Allow everyone: another account's policy calls", by: foreign, call: "GET /g-bkt?policy", want: "405 MethodNotAllowed"},
		{log: "", by: foreign, call: "PUT /g-bkt?policy", body: everybody, want: "405 MethodNotAllowed"},
		{log: "", by: foreign, call: "DELETE /g-bkt?policy", want: "405 MethodNotAllowed"},
		{log: "the anonymous one's", by: anonymous, call: "GET /g-bkt?policy", want: "405 MethodNotAllowed", unconfirmed: "the anonymous caller"},
		{log: "a policy that names a group of another account is valid", by: admin, call: "PUT /g-bkt?policy", body: reads, want: "204"},
		{log: "Allow to read", by: foreign, call: "GET /g-bkt/key", want: "200"},
		{log: "and no more", by: foreign, call: "PUT /g-bkt/key", body: "x", want: "403 AccessDenied"},
		{log: "the policy is not another account's business", by: foreign, call: "GET /g-bkt?policy", want: "405 MethodNotAllowed"},
		{log: "not even to be read where nothing is allowed", by: foreign, call: "PUT /g-bkt?policy", body: reads, want: "403 AccessDenied"},

		{log: "Deny a user", by: admin, call: "PUT /g-bkt?policy", body: byUser, want: "204"},
		{log: "", by: rw, call: "GET /g-bkt/key", want: "403 AccessDenied"},
		{log: "", by: out, call: "GET /g-bkt/key", want: "200"},
		{log: "Deny an account", by: admin, call: "PUT /g-bkt?policy", body: byAccount, want: "204"},
		{log: "", by: out, call: "GET /g-bkt/key", want: "403 AccessDenied"},

		{log: "the longest policy", by: admin, call: "PUT /g-bkt?policy", body: longest, want: "204"},
		{log: "one byte more", by: admin, call: "PUT /g-bkt?policy", body: longest + " ", want: "400 XMaxBucketPolicyLengthExceeded"},
		{log: "a policy of 2 MiB", by: admin, call: "PUT /g-bkt?policy", body: strings.Repeat(" ", 2<<20), want: "400 XMaxBucketPolicyLengthExceeded"},
		{log: "nothing", by: admin, call: "PUT /g-bkt?policy", want: "400 XBucketPolicyParseException", unconfirmed: "whether MissingRequestBodyError comes first"},
		{log: "no JSON", by: admin, call: "PUT /g-bkt?policy", body: "{", want: "400 XBucketPolicyParseException"},
		{log: "an unknown action", by: admin, call: "PUT /g-bkt?policy", body: strings.Replace(everybody, "s3:*", "s3:HeadBucket", 1), want: "400 XBucketPolicyParseException"},
		{log: "an action of group policies", by: admin, call: "PUT /g-bkt?policy", body: strings.Replace(everybody, "s3:*", "s3:CreateBucket", 1),
			want: "400 XBucketPolicyParseException", unconfirmed: "the code"},
		{log: "none of these took effect", by: out, call: "GET /g-bkt/key", want: "403 AccessDenied"},
		{log: "delete", by: admin, call: "DELETE /g-bkt?policy", want: "204"},
		{log: "open again", by: out, call: "GET /g-bkt/key", want: "200"},
	})
}

// A write of a policy is seen at once and takes effect later, and the latest write wins.
func TestGridPolicyDelay(t *testing.T) {
	g := newGrid(t)
	admin, out := g.as("admin"), g.as("out")
	admin.must(t, "PUT", "/p-bkt", "")
	closed, open := gridPolicy(t, "p-bkt", onlyFor("admin")), gridPolicy(t, "p-bkt", onlyFor("admin", "out"))
	write := func(delay time.Duration, policy string) {
		t.Helper()
		g.delay.Store(int64(delay))
		if policy == "" {
			admin.must(t, "DELETE", "/p-bkt?policy", "")
			if a := admin.call(t, "GET", "/p-bkt?policy", ""); a.code != "NoSuchBucketPolicy" {
				t.Errorf("read back: %v %s", a, a.body)
			}
			return
		}
		admin.must(t, "PUT", "/p-bkt?policy", policy)
		if a := admin.must(t, "GET", "/p-bkt?policy", ""); string(a.body) != policy {
			t.Errorf("read back: %s", a.body)
		}
	}
	check := func(when, want string) {
		t.Helper()
		if a := out.call(t, "GET", "/p-bkt", ""); a.String() != want {
			t.Errorf("%s: %v, want %s", when, a, want)
		}
	}
	const denied = "403 AccessDenied"
	write(8*time.Second, closed)
	check("at once", "200")
	g.clock.advance(7500 * time.Millisecond)
	check("just before", "200")
	g.clock.advance(500 * time.Millisecond)
	check("after the delay", denied)

	write(5*time.Second, open)
	g.clock.advance(time.Second)
	write(8*time.Second, closed)
	check("two writes under way", denied)
	g.clock.advance(4 * time.Second)
	check("the first of them", "200")
	g.clock.advance(4 * time.Second)
	check("the second", denied)

	write(8*time.Second, open)
	write(time.Second, closed)
	g.clock.advance(2 * time.Second)
	check("overtaken", denied)
	g.clock.advance(10 * time.Second)
	check("an overtaken write never comes", denied)

	write(3*time.Second, "")
	check("a deletion lags as well", denied)
	g.clock.advance(3 * time.Second)
	check("deleted", "200")
	write(0, closed)
	check("without a delay", denied)
}

func TestGoldenGridBuckets(t *testing.T) {
	g := newGrid(t)
	admin, out, foreign, anonymous := g.as("admin"), g.as("out"), g.as("foreign"), g.as("")
	located := "<CreateBucketConfiguration><LocationConstraint>eu01</LocationConstraint></CreateBucketConfiguration>"
	var id, trace string
	headers := func(t *testing.T, a answer) {
		t.Helper()
		bucket, unique := a.header.Get("X-Ntap-Sg-Bucket-Id"), a.header.Get("X-Ntap-Sg-Trace-Id")
		if len(bucket) != 36 || len(unique) != 16 || unique == trace || (id != "" && bucket != id) {
			t.Errorf("bucket ID %q, trace ID %q, before %q %q", bucket, unique, id, trace)
		}
		id, trace = bucket, unique
	}
	owned := func(names string) func(*testing.T, answer) {
		return func(t *testing.T, a answer) {
			t.Helper()
			l := parse[listBucketsXML](t, a)
			var got []string
			for _, b := range l.Buckets.Bucket {
				got = append(got, b.Name)
			}
			if s := strings.Join(got, " "); s != names || l.Owner.ID != gridAccount {
				t.Errorf("%s of %s", s, l.Owner.ID)
			}
		}
	}
	g.golden(t, []row{
		{log: "create", by: admin, call: "PUT /b-bkt", want: "200"},
		{log: "create again", by: admin, call: "PUT /b-bkt", want: "409 BucketAlreadyExists"},
		{log: "by another group", by: out, call: "PUT /b-bkt", want: "409 BucketAlreadyExists"},
		{log: "by another account", by: foreign, call: "PUT /b-bkt", want: "409 BucketAlreadyExists"},
		{log: "by nobody", by: anonymous, call: "PUT /c-bkt", want: "403 AccessDenied"},
		{log: "a bad name", by: admin, call: "PUT /B-bkt", want: "400 InvalidBucketName"},
		{log: "with its region", by: out, call: "PUT /c-bkt", body: located, want: "200"},
		{log: "with another region", by: admin, call: "PUT /d-bkt", body: strings.Replace(located, "eu01", "eu02", 1),
			want: "400 InvalidLocationConstraint", unconfirmed: "the code: the list of errors has none for it"},
		{log: "the region", by: out, call: "GET /c-bkt?location", want: "200", then: location("eu01")},
		{log: "the region, not given", by: out, call: "GET /b-bkt?location", want: "200", then: location("eu01")},
		{log: "the account's buckets", by: out, call: "GET /", want: "200", then: owned("b-bkt c-bkt")},
		{log: "nobody's buckets", by: anonymous, call: "GET /", want: "403 AccessDenied"},
		{log: "head", by: out, call: "HEAD /b-bkt", want: "200", then: headers},
		{log: "head again", by: admin, call: "HEAD /b-bkt", want: "200", then: headers},
		{log: "head by another account", by: foreign, call: "HEAD /b-bkt", want: "403"},
		{log: "head of nothing", by: admin, call: "HEAD /none-bkt", want: "404"},
		{log: "", by: admin, call: "GET /none-bkt", want: "404 NoSuchBucket | The bucket does not exist."},
		{log: "the ACL", by: out, call: "GET /b-bkt?acl", want: "200", then: ownerAlone},
		{log: "a new ACL", by: admin, call: "PUT /b-bkt?acl", header: []string{"X-Amz-Acl", "public-read"}, want: "501 NotImplemented", unconfirmed: "the code"},
		{log: "a canned ACL at creation is ignored", by: admin, call: "PUT /e-bkt", header: []string{"X-Amz-Acl", "public-read"}, want: "200"},
		{log: "", by: admin, call: "GET /e-bkt?acl", want: "200", then: ownerAlone},
		{log: "", by: anonymous, call: "GET /e-bkt", want: "403 AccessDenied"},

		{log: "no tags", by: admin, call: "GET /b-bkt?tagging", want: "404 NoSuchTagSet", unconfirmed: "the code is not in the list of errors"},
		{log: "50 tags", by: admin, call: "PUT /b-bkt?tagging", body: tagSet(50), want: "200"},
		{log: "51 tags", by: admin, call: "PUT /b-bkt?tagging", body: tagSet(51), want: "400 InvalidTag"},
		{log: "tags are replaced", by: out, call: "PUT /b-bkt?tagging", body: tagSet(1), want: "200"},
		{log: "", by: admin, call: "GET /b-bkt?tagging", want: "200", then: func(t *testing.T, a answer) {
			if n := len(parse[taggingXML](t, a).TagSet.Tags); n != 1 {
				t.Errorf("%d tags", n)
			}
		}},

		{log: "expiry", by: admin, call: "PUT /b-bkt?lifecycle", body: rule("<Expiration><Days>1</Days></Expiration>"), want: "200"},
		{log: "no abort of uploads", by: admin, call: "PUT /b-bkt?lifecycle", want: "501 NotImplemented", unconfirmed: "the code",
			body: rule("<AbortIncompleteMultipartUpload><DaysAfterInitiation>1</DaysAfterInitiation></AbortIncompleteMultipartUpload>")},
		{log: "no transition", by: admin, call: "PUT /b-bkt?lifecycle", want: "501 NotImplemented", unconfirmed: "the code",
			body: rule("<Transition><Days>1</Days><StorageClass>GLACIER</StorageClass></Transition>")},
		{log: "1000 rules", by: admin, call: "PUT /b-bkt?lifecycle", body: lifecycleOf(1000, "<Expiration><Days>1</Days></Expiration>"), want: "200"},
		{log: "1001 rules", by: admin, call: "PUT /b-bkt?lifecycle", body: lifecycleOf(1001, "<Expiration><Days>1</Days></Expiration>"),
			want: "400 MalformedXML", unconfirmed: "the code"},
		{log: "kept", by: admin, call: "GET /b-bkt?lifecycle", want: "200", then: func(t *testing.T, a answer) {
			if strings.Contains(string(a.body), "Transition") || strings.Contains(string(a.body), "Abort") {
				t.Errorf("%.200s", a.body)
			}
		}},
		{log: "no replication", by: admin, call: "GET /b-bkt?replication", want: "404 ReplicationConfigurationNotFoundError", unconfirmed: "the code"},
		{log: "what 11.9 lacks", by: admin, call: "GET /b-bkt?publicAccessBlock", want: "501 NotImplemented", unconfirmed: "the code"},
		{log: "what 11.9 lacks, deleted", by: admin, call: "DELETE /b-bkt?ownershipControls", want: "501 NotImplemented", unconfirmed: "the code"},
		{log: "what 11.9 lacks, set", by: admin, call: "PUT /b-bkt?website", body: "<WebsiteConfiguration/>", want: "501 NotImplemented", unconfirmed: "the code"},
		{log: "what no one knows deletes no bucket", by: admin, call: "DELETE /b-bkt?analytics&id=x", want: "501 NotImplemented", unconfirmed: "the code"},
		{log: "a grid's own calls are not emulated", by: admin, call: "PUT /b-bkt?x-ntap-sg-consistency=all", want: "501 NotImplemented", unconfirmed: "the real one has them"},

		{log: "no object lock", by: admin, call: "GET /b-bkt?object-lock", want: "404 ObjectLockConfigurationNotFoundError"},
		{log: "none later", by: admin, call: "PUT /b-bkt?object-lock", want: "409 InvalidBucketState", unconfirmed: "the code",
			body: "<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled></ObjectLockConfiguration>"},
		{log: "object lock at creation", by: admin, call: "PUT /l-bkt", header: []string{"X-Amz-Bucket-Object-Lock-Enabled", "true"}, want: "200",
			unconfirmed: "over S3, in a project without compliance lock"},
		{log: "forces versioning", by: admin, call: "PUT /l-bkt?versioning", body: "<VersioningConfiguration><Status>Suspended</Status></VersioningConfiguration>",
			want: "409 InvalidBucketState", unconfirmed: "the code"},

		{log: "an upload does not keep the bucket", by: admin, call: "POST /c-bkt/key?uploads", want: "200"},
		{log: "a bucket with an upload goes", by: admin, call: "DELETE /c-bkt", want: "204", unconfirmed: "uploads are not named among what blocks"},
		{log: "an object does", by: admin, call: "PUT /b-bkt/key", body: "x", want: "200"},
		{log: "", by: admin, call: "DELETE /b-bkt", want: "409 BucketNotEmpty"},
		{log: "versions", by: admin, call: "PUT /b-bkt?versioning", body: "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>", want: "200"},
		{log: "a marker", by: admin, call: "DELETE /b-bkt/key", want: "204"},
		{log: "the key is hidden", by: admin, call: "GET /b-bkt/key", want: "404 NoSuchKey", then: markerHeader},
		{log: "an old version keeps the bucket", by: admin, call: "DELETE /b-bkt", want: "409 BucketNotEmpty"},
		{log: "", by: admin, call: "DELETE /b-bkt/key?versionId=null", want: "204"},
		{log: "a delete marker keeps the bucket", by: admin, call: "DELETE /b-bkt", want: "409 BucketNotEmpty"},
	})
}

func ownerAlone(t *testing.T, a answer) {
	t.Helper()
	// The attributes have a prefix that parsing would lose.
	for _, want := range []string{"<ID>" + gridAccount + "</ID>", "<Permission>FULL_CONTROL</Permission>"} {
		if !strings.Contains(string(a.body), want) || strings.Contains(string(a.body), "AllUsers") {
			t.Errorf("%s", a.body)
		}
	}
}

func markerHeader(t *testing.T, a answer) {
	t.Helper()
	if a.header.Get("X-Amz-Delete-Marker") != "true" {
		t.Errorf("header %v", a.header)
	}
}

func tagSet(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("<Tag><Key>" + strings.Repeat("k", i+1) + "</Key><Value>v</Value></Tag>")
	}
	return "<Tagging><TagSet>" + b.String() + "</TagSet></Tagging>"
}

func rule(action string) string { return lifecycleOf(1, action) }

func lifecycleOf(n int, action string) string {
	return "<LifecycleConfiguration>" + strings.Repeat("<Rule><Filter><Prefix></Prefix></Filter><Status>Enabled</Status>"+action+"</Rule>", n) +
		"</LifecycleConfiguration>"
}

func TestGoldenGridObjects(t *testing.T) {
	g := newGrid(t)
	admin, out := g.as("admin"), g.as("out")
	admin.must(t, "PUT", "/o-bkt", "")
	admin.must(t, "PUT", "/o-bkt/key", "text")
	etag := admin.must(t, "HEAD", "/o-bkt/key", "").header.Get("ETag")
	sum := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	metadata := func(size int) []string { return []string{"X-Amz-Meta-Name", strings.Repeat("x", size-len("Name"))} }
	const trailer = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
	g.golden(t, []row{
		{log: "get, and what a gateway adds is not there", by: out, call: "GET /o-bkt/key", want: "200", then: func(t *testing.T, a answer) {
			if a.header.Get("X-Rgw-Object-Type") != "" || !strings.HasPrefix(a.header.Get("Server"), "StorageGRID/11.9") || a.header.Get("X-Amz-Request-Id") == "" {
				t.Errorf("header %v", a.header)
			}
		}},
		{log: "a missing key", by: out, call: "GET /o-bkt/none", want: "404 NoSuchKey | The key does not exist."},
		{log: "If-None-Match changes nothing", by: out, call: "PUT /o-bkt/key", body: "text", header: []string{"If-None-Match", "*"}, want: "200"},
		{log: "nor does If-Match", by: out, call: "PUT /o-bkt/key", body: "text", header: []string{"If-Match", `"nothing"`}, want: "200"},
		{log: "", by: out, call: "PUT /o-bkt/none-yet", body: "x", header: []string{"If-Match", etag}, want: "200"},
		{log: "reads honour them", by: out, call: "GET /o-bkt/key", header: []string{"If-Match", `"nothing"`}, want: "412 PreconditionFailed"},
		{log: "", by: out, call: "GET /o-bkt/key", header: []string{"If-None-Match", etag}, want: "304"},

		{log: "a session token", by: admin, call: "GET /o-bkt/key", header: []string{"X-Amz-Security-Token", "x"}, want: "501 XNotImplemented"},
		{log: "a redirect", by: admin, call: "PUT /o-bkt/key", body: "x", header: []string{"X-Amz-Website-Redirect-Location", "/"}, want: "501 XNotImplemented"},
		{log: "an SDK's checksum", by: admin, call: "PUT /o-bkt/key", body: "x", header: []string{"X-Amz-Sdk-Checksum-Algorithm", "CRC32"},
			want: "501 XNotImplemented", unconfirmed: "the header is not supported, whether it is refused is not said"},
		{log: "a trailer", by: admin, call: "PUT /o-bkt/key", body: "x", header: []string{"X-Amz-Trailer", "x-amz-checksum-crc32"},
			want: "501 XNotImplemented", unconfirmed: "as above"},
		{log: "a body with a trailer", by: admin, call: "PUT /o-bkt/key", body: "x", header: []string{"X-Amz-Content-Sha256", trailer},
			want: "501 XNotImplemented", unconfirmed: "as above"},
		{log: "an upload with another checksum", by: admin, call: "POST /o-bkt/up?uploads", header: []string{"X-Amz-Checksum-Algorithm", "CRC32C"},
			want: "501 XNotImplemented", unconfirmed: "only SHA256 is supported, the code is not said"},
		{log: "an upload with SHA256", by: admin, call: "POST /o-bkt/up?uploads", header: []string{"X-Amz-Checksum-Algorithm", "SHA256"}, want: "200"},
		{log: "SHA256 is verified", by: admin, call: "PUT /o-bkt/sum", body: "x", header: []string{"X-Amz-Checksum-Sha256", sum(strings.Repeat("0", 32))}, want: "400 BadDigest"},
		{log: "others are not looked at", by: admin, call: "PUT /o-bkt/sum", body: "x", header: []string{"X-Amz-Checksum-Crc32", sum("1234")},
			want: "200", unconfirmed: "that they are ignored"},
		{log: "the body's hash is not verified", by: admin, call: "PUT /o-bkt/sum", body: "x", want: "200",
			header: []string{"X-Amz-Content-Sha256", emptySHA256}},
		{log: "its MD5 is", by: admin, call: "PUT /o-bkt/sum", body: "x", header: []string{"Content-MD5", sum("0123456789abcdef")}, want: "400 BadDigest"},

		{log: "24 KiB of metadata", by: admin, call: "PUT /o-bkt/meta", header: metadata(24 << 10), want: "200"},
		{log: "and a byte", by: admin, call: "PUT /o-bkt/meta", header: metadata(24<<10 + 1), want: "400 MetadataTooLarge",
			unconfirmed: "that the prefix of the names does not count"},
		{log: "the longest key", by: admin, call: "PUT /o-bkt/" + strings.Repeat("k", 1024), want: "200"},
		{log: "one longer", by: admin, call: "PUT /o-bkt/" + strings.Repeat("k", 1025), want: "400 KeyTooLong"},
		{log: "reduced redundancy", by: admin, call: "PUT /o-bkt/rr", header: []string{"X-Amz-Storage-Class", "REDUCED_REDUNDANCY"}, want: "200"},
		{log: "another class", by: admin, call: "PUT /o-bkt/rr", header: []string{"X-Amz-Storage-Class", "GLACIER"}, want: "400 InvalidStorageClass"},
		{log: "encrypted", by: admin, call: "PUT /o-bkt/sse", header: []string{"X-Amz-Server-Side-Encryption", "AES256"}, want: "200"},
		{log: "", by: admin, call: "HEAD /o-bkt/sse", want: "200", then: func(t *testing.T, a answer) {
			if a.header.Get("X-Amz-Server-Side-Encryption") != "AES256" {
				t.Errorf("header %v", a.header)
			}
		}},
		{log: "with a key of a key manager", by: admin, call: "PUT /o-bkt/sse", header: []string{"X-Amz-Server-Side-Encryption", "aws:kms"},
			want: "400 InvalidEncryptionAlgorithmError"},
		{log: "an ACL is ignored", by: out, call: "PUT /o-bkt/acl", header: []string{"X-Amz-Acl", "no-such-acl"}, want: "200", unconfirmed: "that it is no error"},
		{log: "", by: admin, call: "GET /o-bkt/acl?acl", want: "200", then: ownerAlone},
		{log: "a new ACL", by: admin, call: "PUT /o-bkt/acl?acl", header: []string{"X-Amz-Acl", "private"}, want: "501 NotImplemented", unconfirmed: "the code"},
		{log: "ten tags", by: admin, call: "PUT /o-bkt/key?tagging", body: tagSet(10), want: "200"},
		{log: "eleven", by: admin, call: "PUT /o-bkt/key?tagging", body: tagSet(11), want: "400 InvalidTag"},

		{log: "versions", by: admin, call: "PUT /o-bkt?versioning", body: "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>", want: "200"},
		{log: "a marker", by: admin, call: "DELETE /o-bkt/key", want: "204", then: markerHeader},
		{log: "head of a deleted key", by: admin, call: "HEAD /o-bkt/key", want: "404", then: markerHeader},
		{log: "tags of a deleted key", by: admin, call: "GET /o-bkt/key?tagging", want: "405 MethodNotAllowed", then: markerHeader},
		{log: "", by: admin, call: "PUT /o-bkt/key?tagging", body: tagSet(1), want: "405 MethodNotAllowed", then: markerHeader},
		{log: "", by: admin, call: "DELETE /o-bkt/key?tagging", want: "405 MethodNotAllowed", then: markerHeader},
		{log: "a list of keys that is none", by: admin, call: "POST /o-bkt?delete", body: "<Delete", want: "400 MalformedXML"},
		{log: "an unknown key", by: &client{url: g.url, region: gridRegion, clock: g.clock, accessKey: "AKnobody", secret: "x"}, call: "GET /", want: "403 InvalidAccessKeyId"},
		{log: "a wrong secret", by: &client{url: g.url, region: gridRegion, clock: g.clock, accessKey: "AKadmin", secret: "x"}, call: "GET /", want: "403 SignatureDoesNotMatch"},
	})
}

// An overwrite that the policy denies is refused, whatever writes, and a new key is not.
func TestGridOverwriteNeedsAnObject(t *testing.T) {
	g := newGrid(t)
	admin, wo := g.as("admin"), g.as("wo")
	admin.must(t, "PUT", "/w-bkt", "")
	admin.must(t, "PUT", "/w-bkt?versioning", "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>")
	admin.must(t, "PUT", "/w-bkt?policy", gridPolicy(t, "w-bkt",
		gridStatement{Effect: "Deny", Principal: principals(urns("wo")...), Action: []string{"s3:PutOverwriteObject"}}))
	self := []string{"X-Amz-Copy-Source", "w-bkt/key", "X-Amz-Metadata-Directive", "REPLACE"}
	g.golden(t, []row{
		{log: "a new key", by: wo, call: "PUT /w-bkt/key", body: "x", want: "200"},
		{log: "its data", by: wo, call: "PUT /w-bkt/key", body: "x", want: "403 AccessDenied", unconfirmed: "in a versioned bucket, where nothing is lost"},
		{log: "its metadata", by: wo, call: "PUT /w-bkt/key", header: self, want: "403 AccessDenied"},
		{log: "its tags", by: wo, call: "PUT /w-bkt/key?tagging", body: tagSet(1), want: "403 AccessDenied"},
		{log: "", by: wo, call: "DELETE /w-bkt/key?tagging", want: "403 AccessDenied"},
		{log: "the tags of a version", by: wo, call: "GET /w-bkt?versions", want: "200", then: func(t *testing.T, a answer) {
			id := parse[listVersionsXML](t, a).Versions[0].VersionID
			if a := wo.call(t, "PUT", "/w-bkt/key?tagging&versionId="+id, tagSet(1)); a.status != http.StatusForbidden {
				t.Errorf("%v", a)
			}
		}},
		{log: "a copy to a new key", by: wo, call: "PUT /w-bkt/copy", header: []string{"X-Amz-Copy-Source", "w-bkt/key"}, want: "200"},
		{log: "to delete is another permission", by: wo, call: "DELETE /w-bkt/key", want: "204"},
		{log: "a deleted key is new", by: wo, call: "PUT /w-bkt/key", body: "x", want: "200", unconfirmed: "under a delete marker"},
	})
}

// An upload that is not completed in 15 days is gone.
func TestGridUploadsExpire(t *testing.T) {
	g := newGrid(t)
	admin := g.as("admin")
	admin.must(t, "PUT", "/u-bkt", "")
	id := parse[initiateXML](t, admin.must(t, "POST", "/u-bkt/key?uploads", "")).UploadID
	uploads := func() int {
		t.Helper()
		return len(parse[listUploadsXML](t, admin.must(t, "GET", "/u-bkt?uploads", "")).Uploads)
	}
	g.clock.advance(15*24*time.Hour - time.Minute)
	if n := uploads(); n != 1 {
		t.Errorf("%d uploads before their time", n)
	}
	g.clock.advance(2 * time.Minute)
	if n := uploads(); n != 0 {
		t.Errorf("%d uploads after their time", n)
	}
	if a := admin.call(t, "PUT", "/u-bkt/key?partNumber=1&uploadId="+id, "x"); a.code != "NoSuchUpload" {
		t.Errorf("a part of it: %v", a)
	}
}

// Every error says something to the person who reads it.
func TestGridErrorsHaveTexts(t *testing.T) {
	for _, code := range []string{"AccessDenied", "NoSuchKey", "XNotImplemented", "SomethingElse"} {
		if text := gridMessage(code); text == "" || text == code {
			t.Errorf("%s: %q", code, text)
		}
	}
}

func TestUnknownProfile(t *testing.T) {
	s := New(Options{Profile: "swift", Regions: []Region{{Name: "r"}}})
	if a := (&client{url: serve(t, s.Handler("r")), clock: &clock{}}).call(t, "HEAD", "/", ""); a.status != http.StatusInternalServerError {
		t.Errorf("%v", a)
	}
}
