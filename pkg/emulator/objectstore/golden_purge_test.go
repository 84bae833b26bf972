package objectstore

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// Sections "plain emptying" and "large empty" of t_g.
func TestGoldenPlainEmptying(t *testing.T) { onReleases(t, goldenPlainEmptying) }

func goldenPlainEmptying(t *testing.T, l *lab) {
	t.Helper()
	a := l.user("A")
	a.must(t, "PUT", "/g-bkt", "")
	var keys []string
	for i := range 1001 {
		keys = append(keys, fmt.Sprintf("k%04d", i))
		a.must(t, "PUT", "/g-bkt/"+keys[i], "x")
	}
	count := func(deleted, failed int) func(*testing.T, answer) {
		return func(t *testing.T, got answer) {
			t.Helper()
			if r := parse[deleteResultXML](t, got); len(r.Deleted) != deleted || len(r.Errors) != failed {
				t.Errorf("%d deleted, %d failed", len(r.Deleted), len(r.Errors))
			}
		}
	}
	page := func(n, limit int, truncated bool) func(*testing.T, answer) {
		return func(t *testing.T, got answer) {
			t.Helper()
			r := parse[listObjectsXML](t, got)
			if len(r.Contents) != n || r.MaxKeys != limit || r.IsTruncated != truncated || r.IsTruncated != (r.NextContinuationToken != "") {
				t.Errorf("%d keys, MaxKeys %d, truncated %t, token %q", len(r.Contents), r.MaxKeys, r.IsTruncated, r.NextContinuationToken)
			}
		}
	}
	l.golden(t, []row{
		{log: "list page size", by: a, call: "GET /g-bkt?list-type=2", want: "200", then: page(1000, 1000, true)},
		{log: "list MaxKeys=5000", by: a, call: "GET /g-bkt?list-type=2&max-keys=5000", want: "200",
			then: page(1000, 1000, true), thenTentacle: page(1001, 5000, false)},
		{log: "list v1", by: a, call: "GET /g-bkt?max-keys=5000", want: "200", unconfirmed: "only ListObjectsV2 was asked for more than 1000",
			then: func(t *testing.T, got answer) {
				if r := parse[listObjectsXML](t, got); len(r.Contents) != 1000 || !r.IsTruncated {
					t.Errorf("%d keys, truncated %t", len(r.Contents), r.IsTruncated)
				}
			}},
		{log: "DeleteBucket non-empty", by: a, call: "DELETE /g-bkt", want: "409 BucketNotEmpty"},
		{log: "DeleteObjects 1001 keys", by: a, call: "POST /g-bkt?delete", body: deleteKeys(false, keys...), want: "400",
			then: func(t *testing.T, got answer) {
				if len(got.body) != 0 {
					t.Errorf("body %q", got.body)
				}
			}},
		{log: "DeleteObjects 1000 keys", by: a, call: "POST /g-bkt?delete", body: deleteKeys(false, keys[:1000]...), want: "200", then: count(1000, 0)},
		{log: "DeleteObjects empty list raw", by: a, call: "POST /g-bkt?delete", body: "<Delete></Delete>", want: "200",
			tentacle: "400"},
		{log: "DeleteObjects Quiet", by: a, call: "POST /g-bkt?delete", body: deleteKeys(true, keys[1000]), want: "200", then: count(0, 0)},
		{log: "missing keys count as deleted", by: a, call: "POST /g-bkt?delete", body: deleteKeys(false, "nokey"), want: "200", then: count(1, 0)},
		{log: "DeleteObject missing key", by: a, call: "DELETE /g-bkt/nokey", want: "204"},
		{log: "DeleteBucket", by: a, call: "DELETE /g-bkt", want: "204"},
		{log: "DeleteBucket again", by: a, call: "DELETE /g-bkt", want: "404 NoSuchBucket"},
	})
}

// Section "pending multipart" of t_g: uploads are invisible to DeleteBucket and go with the bucket.
func TestGoldenPendingMultipart(t *testing.T) { onReleases(t, goldenPendingMultipart) }

func goldenPendingMultipart(t *testing.T, l *lab) {
	t.Helper()
	a, b := l.user("A"), l.user("B")
	a.must(t, "PUT", "/g-bkt", "")
	a.must(t, "POST", "/g-bkt/mp?uploads", "")
	a.must(t, "PUT", "/h-bkt", "")
	a.must(t, "PUT", "/h-bkt?policy", modePolicy("RW", "h-bkt"))
	ofB := parse[initiateXML](t, b.must(t, "POST", "/h-bkt/mpB?uploads", "")).UploadID
	second := parse[initiateXML](t, b.must(t, "POST", "/h-bkt/mpC?uploads", "")).UploadID
	uploads := func(want ...string) func(*testing.T, answer) {
		return func(t *testing.T, got answer) {
			t.Helper()
			var keys []string
			for _, u := range parse[listUploadsXML](t, got).Uploads {
				keys = append(keys, u.Key)
			}
			if strings.Join(keys, " ") != strings.Join(want, " ") {
				t.Errorf("uploads %v, want %v", keys, want)
			}
		}
	}
	l.golden(t, []row{
		{log: "list objects (pending MPU only)", by: a, call: "GET /g-bkt?list-type=2", want: "200", then: func(t *testing.T, got answer) {
			if r := parse[listObjectsXML](t, got); len(r.Contents) != 0 || *r.KeyCount != 0 {
				t.Errorf("list %+v", r)
			}
		}},
		{log: "list_multipart_uploads", by: a, call: "GET /g-bkt?uploads", want: "200", then: uploads("mp")},
		{log: "DeleteBucket with pending MPU", by: a, call: "DELETE /g-bkt", want: "204"},
		{log: "head", by: a, call: "HEAD /g-bkt", want: "404"},
		{log: "owner lists B's pending MPU", by: a, call: "GET /h-bkt?uploads", want: "200", then: uploads("mpB", "mpC")},
		{log: "owner aborts B's MPU", by: a, call: "DELETE /h-bkt/mpB?uploadId=" + ofB, want: "204"},
		{log: "abort again", by: a, call: "DELETE /h-bkt/mpB?uploadId=" + ofB, want: "404 NoSuchUpload"},
		{log: "DeleteBucket with B's pending MPU", by: a, call: "DELETE /h-bkt", want: "204"},
		{log: "B upload part after bucket deletion", by: b, call: "PUT /h-bkt/mpC?partNumber=1&uploadId=" + second, body: "x", want: "404 NoSuchBucket"},
	})
}

const enableVersioning = `<VersioningConfiguration xmlns="` + xmlns + `"><Status>Enabled</Status></VersioningConfiguration>`

// allVersions lists a bucket's versions as key@version, and the delete markers apart.
func allVersions(t *testing.T, c *client, bucket string) (versions, markers []string) {
	t.Helper()
	type entry struct {
		Key string
		ID  string `xml:"VersionId"`
	}
	list := parse[struct {
		Version, DeleteMarker []entry
	}](t, c.must(t, "GET", "/"+bucket+"?versions", ""))
	for _, v := range list.Version {
		versions = append(versions, v.Key+"@"+v.ID)
	}
	for _, v := range list.DeleteMarker {
		markers = append(markers, v.Key+"@"+v.ID)
	}
	return versions, markers
}

// Sections "versioned" and "object written before versioning" of t_g.
func TestGoldenVersionedEmptying(t *testing.T) { onReleases(t, goldenVersionedEmptying) }

func goldenVersionedEmptying(t *testing.T, l *lab) {
	t.Helper()
	a := l.user("A")
	a.must(t, "PUT", "/v-bkt", "")
	l.golden(t, []row{
		{log: "PutBucketVersioning Enabled", by: a, call: "PUT /v-bkt?versioning", body: enableVersioning, want: "200"},
		{log: "put 1", by: a, call: "PUT /v-bkt/k", body: "1", want: "200"},
		{log: "put 2", by: a, call: "PUT /v-bkt/k", body: "2", want: "200"},
		{log: "put 3", by: a, call: "PUT /v-bkt/k", body: "3", want: "200", then: func(t *testing.T, got answer) {
			if len(got.header.Get("X-Amz-Version-Id")) != 31 {
				t.Errorf("version %q", got.header.Get("X-Amz-Version-Id"))
			}
		}},
		{log: "DeleteObject (marker)", by: a, call: "DELETE /v-bkt/k", want: "204", then: func(t *testing.T, got answer) {
			if got.header.Get("X-Amz-Delete-Marker") != "true" || len(got.header.Get("X-Amz-Version-Id")) != 31 {
				t.Errorf("header %v", got.header)
			}
		}},
		{log: "get", by: a, call: "GET /v-bkt/k", want: "404 NoSuchKey"},
		{log: "list v2", by: a, call: "GET /v-bkt?list-type=2", want: "200", then: func(t *testing.T, got answer) {
			if n := len(parse[listObjectsXML](t, got).Contents); n != 0 {
				t.Errorf("%d keys", n)
			}
		}},
		{log: "DeleteBucket with only versions", by: a, call: "DELETE /v-bkt", want: "409 BucketNotEmpty"},
	})
	versions, markers := allVersions(t, a, "v-bkt")
	if len(versions) != 3 || len(markers) != 1 {
		t.Fatalf("versions %v markers %v", versions, markers)
	}
	l.golden(t, []row{
		{log: "DeleteObjects with VersionIds", by: a, call: "POST /v-bkt?delete", body: deleteKeys(false, append(versions, markers...)...), want: "200",
			then: func(t *testing.T, got answer) {
				r := parse[deleteResultXML](t, got)
				if len(r.Deleted) != 4 || len(r.Errors) != 0 || "k@"+r.Deleted[0].VersionID != versions[0] || !r.Deleted[3].DeleteMarker {
					t.Errorf("result %+v", r)
				}
			}},
		{log: "DeleteBucket", by: a, call: "DELETE /v-bkt", want: "204"},
	})

	a.must(t, "PUT", "/n-bkt", "")
	a.must(t, "PUT", "/n-bkt/n", "before")
	a.must(t, "PUT", "/n-bkt?versioning", enableVersioning)
	a.must(t, "PUT", "/n-bkt/n", "enabled")
	a.must(t, "PUT", "/n-bkt?versioning", strings.Replace(enableVersioning, "Enabled", "Suspended", 1))
	a.must(t, "PUT", "/n-bkt/n", "suspended")
	if versions, _ = allVersions(t, a, "n-bkt"); len(versions) != 2 || versions[0] != "n@null" || versions[1] == "n@null" {
		t.Errorf("versions %v, want the null version first", versions)
	}
	l.golden(t, []row{
		{log: "DeleteObject no versionid on suspended", by: a, call: "DELETE /n-bkt/n", want: "204", then: func(t *testing.T, got answer) {
			if got.header.Get("X-Amz-Delete-Marker") != "true" || got.header.Get("X-Amz-Version-Id") != "null" {
				t.Errorf("header %v", got.header)
			}
		}},
	})
	versions, markers = allVersions(t, a, "n-bkt")
	if len(versions) != 1 || versions[0] == "n@null" || len(markers) != 1 || markers[0] != "n@null" {
		t.Errorf("versions %v markers %v", versions, markers)
	}
	l.golden(t, []row{
		{log: "DeleteObjects", by: a, call: "POST /n-bkt?delete", body: deleteKeys(false, append(versions, markers...)...), want: "200"},
		{log: "DeleteBucket", by: a, call: "DELETE /n-bkt", want: "204"},
	})
}

// Section "object lock" of t_g.
func TestGoldenObjectLock(t *testing.T) { onReleases(t, goldenObjectLock) }

func goldenObjectLock(t *testing.T, l *lab) {
	t.Helper()
	a := l.user("A")
	a.must(t, "PUT", "/l-bkt", "", "X-Amz-Bucket-Object-Lock-Enabled", "true")
	locked := func(mode string) []string {
		return []string{"X-Amz-Object-Lock-Mode", mode, "X-Amz-Object-Lock-Retain-Until-Date", l.clock.now().Add(time.Hour).UTC().Format(time.RFC3339)}
	}
	bypass := []string{"X-Amz-Bypass-Governance-Retention", "true"}
	var ids []string
	keep := func(_ *testing.T, got answer) { ids = append(ids, got.header.Get("X-Amz-Version-Id")) }
	l.golden(t, []row{
		{log: "versioning state", by: a, call: "GET /l-bkt?versioning", want: "200", then: func(t *testing.T, got answer) {
			if s := parse[versioningXML](t, got).Status; s != "Enabled" {
				t.Errorf("versioning %q", s)
			}
		}},
		{log: "suspend", by: a, call: "PUT /l-bkt?versioning",
			body: strings.Replace(enableVersioning, "Enabled", "Suspended", 1), want: "409 InvalidBucketState"},
		{log: "put w/ GOVERNANCE retention", by: a, call: "PUT /l-bkt/l", body: "x", header: locked("GOVERNANCE"), want: "200", then: keep},
		{log: "again", by: a, call: "PUT /l-bkt/l", body: "x", header: locked("GOVERNANCE"), want: "200", then: keep},
		{log: "put w/ COMPLIANCE", by: a, call: "PUT /l-bkt/l", body: "x", header: locked("COMPLIANCE"), want: "200", then: keep},
	})
	version := func(i int) string { return "/l-bkt/l?versionId=" + ids[i] }
	l.golden(t, []row{
		{log: "delete version no bypass", by: a, call: "DELETE " + version(0), want: "403 AccessDenied | forbidden by object lock"},
		{log: "delete_objects no bypass", by: a, call: "POST /l-bkt?delete", body: deleteKeys(false, "l@"+ids[0]), want: "200",
			then: func(t *testing.T, got answer) {
				r := parse[deleteResultXML](t, got)
				if len(r.Errors) != 1 || r.Errors[0] != (deleteErrorXML{Key: "l", VersionID: ids[0], Code: "AccessDenied", Message: "AccessDenied"}) {
					t.Errorf("result %+v", r)
				}
			}},
		{log: "delete_objects bypass", by: a, call: "POST /l-bkt?delete", body: deleteKeys(false, "l@"+ids[0]), header: bypass, want: "200",
			then: func(t *testing.T, got answer) {
				if r := parse[deleteResultXML](t, got); len(r.Deleted) != 1 || r.Deleted[0].VersionID != ids[0] {
					t.Errorf("result %+v", r)
				}
			}},
		{log: "delete version bypass", by: a, call: "DELETE " + version(1), header: bypass, want: "204"},
		{log: "delete COMPLIANCE w/ bypass", by: a, call: "DELETE " + version(2), header: bypass, want: "403 AccessDenied | forbidden by object lock"},
		{log: "shorten COMPLIANCE", by: a, call: "PUT /l-bkt/l?retention", header: bypass, want: "403 AccessDenied",
			body: "<Retention><Mode>COMPLIANCE</Mode><RetainUntilDate>" + l.clock.now().Add(time.Minute).UTC().Format(time.RFC3339) + "</RetainUntilDate></Retention>"},
	})
	l.clock.advance(2 * time.Hour)
	l.golden(t, []row{
		{log: "delete COMPLIANCE after expiry", by: a, call: "DELETE " + version(2), want: "204"},
		{log: "hold", by: a, call: "PUT /l-bkt/h", body: "x", header: []string{"X-Amz-Object-Lock-Legal-Hold", "ON"}, want: "200", then: keep},
	})
	l.golden(t, []row{
		{log: "delete held version", by: a, call: "DELETE /l-bkt/h?versionId=" + ids[3], header: bypass, want: "403 AccessDenied | forbidden by object lock"},
		{log: "lift the hold", by: a, call: "PUT /l-bkt/h?legal-hold", body: "<LegalHold><Status>OFF</Status></LegalHold>", want: "200"},
		{log: "delete it", by: a, call: "DELETE /l-bkt/h?versionId=" + ids[3], want: "204"},
		{log: "DeleteBucket", by: a, call: "DELETE /l-bkt", want: "204"},
	})
}

// The lock configuration of a bucket, and retention and legal hold of a version, set and read back.
func TestObjectLockConfiguration(t *testing.T) {
	l := newLab(t)
	a, b := l.user("A"), l.user("B")
	a.must(t, "PUT", "/l-bkt", "", "X-Amz-Bucket-Object-Lock-Enabled", "true")
	a.must(t, "PUT", "/plain-bkt", "")
	a.must(t, "PUT", "/plain-bkt/k", "x")
	rule := func(inner string) string {
		return "<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled><Rule><DefaultRetention>" + inner +
			"</DefaultRetention></Rule></ObjectLockConfiguration>"
	}
	retain := func(mode string, d time.Duration) string {
		return "<Retention><Mode>" + mode + "</Mode><RetainUntilDate>" + l.clock.now().Add(d).UTC().Format(time.RFC3339) + "</RetainUntilDate></Retention>"
	}
	const day = 24 * time.Hour
	l.golden(t, []row{
		{log: "no rule yet", by: a, call: "GET /l-bkt?object-lock", want: "200", then: func(t *testing.T, got answer) {
			if c := parse[objectLockXML](t, got); c.Enabled != "Enabled" || c.Default != nil {
				t.Errorf("configuration %+v", c)
			}
		}},
		{log: "before a rule", by: a, call: "PUT /l-bkt/free", body: "x", want: "200"},
		{log: "no retention", by: a, call: "GET /l-bkt/free?retention", want: "404 NoSuchObjectLockConfiguration"},
		{log: "rule", by: a, call: "PUT /l-bkt?object-lock", body: rule("<Mode>GOVERNANCE</Mode><Days>2</Days>"), want: "200"},
		{log: "days and years", by: a, call: "PUT /l-bkt?object-lock", body: rule("<Mode>GOVERNANCE</Mode><Days>2</Days><Years>1</Years>"), want: "400 MalformedXML"},
		{log: "unknown mode", by: a, call: "PUT /l-bkt?object-lock", body: rule("<Mode>X</Mode><Days>2</Days>"), want: "400 MalformedXML"},
		{log: "foreign", by: b, call: "PUT /l-bkt?object-lock", body: rule("<Mode>GOVERNANCE</Mode><Days>2</Days>"), want: "403 AccessDenied"},
		{log: "bucket without lock", by: a, call: "PUT /plain-bkt?object-lock", body: rule("<Mode>GOVERNANCE</Mode><Days>2</Days>"), want: "409 InvalidBucketState"},
		{log: "object without lock", by: a, call: "PUT /plain-bkt/k?retention", body: retain("GOVERNANCE", day), want: "400 InvalidRequest"},
		{log: "read back", by: a, call: "GET /l-bkt?object-lock", want: "200", then: func(t *testing.T, got answer) {
			if c := parse[objectLockXML](t, got); c.Default == nil || c.Default.Mode != "GOVERNANCE" || c.Default.Days != 2 {
				t.Errorf("configuration %+v", c)
			}
		}},
		{log: "under the rule", by: a, call: "PUT /l-bkt/k", body: "x", want: "200"},
		{log: "its retention", by: a, call: "GET /l-bkt/k?retention", want: "200", then: func(t *testing.T, got answer) {
			r := parse[retentionXML](t, got)
			until, err := time.Parse(time.RFC3339Nano, r.Until)
			if r.Mode != "GOVERNANCE" || err != nil || until.Sub(l.clock.now()).Round(time.Hour) != 2*day {
				t.Errorf("retention %+v", r)
			}
		}},
		{log: "its headers", by: a, call: "HEAD /l-bkt/k", want: "200", then: func(t *testing.T, got answer) {
			if got.header.Get("X-Amz-Object-Lock-Mode") != "GOVERNANCE" || got.header.Get("X-Amz-Object-Lock-Retain-Until-Date") == "" {
				t.Errorf("header %v", got.header)
			}
		}},
		{log: "shorten", by: a, call: "PUT /l-bkt/k?retention", body: retain("GOVERNANCE", day), want: "403 AccessDenied"},
		{log: "shorten with bypass", by: a, call: "PUT /l-bkt/k?retention", body: retain("GOVERNANCE", day), want: "200",
			header: []string{"X-Amz-Bypass-Governance-Retention", "true"}},
		{log: "lengthen", by: a, call: "PUT /l-bkt/k?retention", body: retain("GOVERNANCE", 3*day), want: "200"},
		{log: "in the past", by: a, call: "PUT /l-bkt/k?retention", body: retain("GOVERNANCE", -day), want: "400 InvalidArgument"},
		{log: "no hold", by: a, call: "GET /l-bkt/k?legal-hold", want: "200", then: holds("OFF")},
		{log: "bad hold", by: a, call: "PUT /l-bkt/k?legal-hold", body: "<LegalHold><Status>MAYBE</Status></LegalHold>", want: "400 MalformedXML"},
		{log: "hold", by: a, call: "PUT /l-bkt/k?legal-hold", body: "<LegalHold><Status>ON</Status></LegalHold>", want: "200"},
		{log: "held", by: a, call: "GET /l-bkt/k?legal-hold", want: "200", then: holds("ON")},
		{log: "a marker needs no permission of the lock", by: a, call: "DELETE /l-bkt/k", want: "204"},
	})
}

func holds(want string) func(*testing.T, answer) {
	return func(t *testing.T, got answer) {
		t.Helper()
		if s := parse[legalHoldXML](t, got).Status; s != want {
			t.Errorf("legal hold %q, want %q", s, want)
		}
	}
}

// A purge that removes each page before it asks for the next one loses nothing.
func TestPurgePageByPage(t *testing.T) {
	l := newLab(t)
	a := l.user("A")
	a.must(t, "PUT", "/pp-bkt", "")
	a.must(t, "PUT", "/pp-bkt?versioning", enableVersioning)
	for i := range 7 {
		a.must(t, "PUT", fmt.Sprintf("/pp-bkt/k%d", i%2), "x")
	}
	query := ""
	for range 10 {
		page := parse[listVersionsXML](t, a.must(t, "GET", "/pp-bkt?versions&max-keys=2"+query, ""))
		for _, v := range page.Versions {
			a.must(t, "DELETE", "/pp-bkt/"+v.Key+"?versionId="+v.VersionID, "")
		}
		if !page.IsTruncated {
			break
		}
		query = "&key-marker=" + page.NextKeyMarker + "&version-id-marker=" + page.NextVersionIDMarker
	}
	l.golden(t, []row{{log: "DeleteBucket", by: a, call: "DELETE /pp-bkt", want: "204"}})
}
