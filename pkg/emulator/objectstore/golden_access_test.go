package objectstore

import (
	"slices"
	"strings"
	"testing"
)

const (
	objectActionsRW = "GetObject GetObjectVersion PutObject PutObjectAcl DeleteObject DeleteObjectVersion AbortMultipartUpload " +
		"ListMultipartUploadParts GetObjectTagging PutObjectTagging"
	bucketActionsRW = "ListBucket ListBucketVersions ListBucketMultipartUploads GetBucketLocation GetBucketVersioning"
)

// modePolicy is the policy that gives user B a mode on a bucket, as in the measurements.
func modePolicy(mode, bucket string) string {
	keys := bucket + "/*"
	switch mode {
	case "RO":
		return policyOf(
			statement("Allow", "uid-b", "ListBucket ListBucketVersions GetBucketLocation GetBucketVersioning", bucket, ""),
			statement("Allow", "uid-b", "GetObject GetObjectVersion", keys, ""))
	case "WO":
		return policyOf(
			statement("Allow", "uid-b", "GetBucketLocation ListBucketMultipartUploads", bucket, ""),
			statement("Allow", "uid-b", "PutObject AbortMultipartUpload ListMultipartUploadParts", keys, ""))
	default:
		return policyOf(
			statement("Allow", "uid-b", bucketActionsRW, bucket, ""),
			statement("Allow", "uid-b", objectActionsRW, keys, ""))
	}
}

// matrix is the list of calls that was played under each mode; want holds the answers that differ.
func (l *lab) matrix(t *testing.T, b *client, mode string, want map[string]string) {
	t.Helper()
	const (
		forbidden = "403 AccessDenied"
		bare      = "403"
	)
	var uploadID, etag string
	multiDelete := `<Delete><Object><Key>btag</Key></Object><Object><Key>nokey</Key></Object></Delete>`
	calls := []row{
		{log: "HeadBucket", call: "HEAD /e-bkt", want: bare},
		{log: "GetBucketLocation", call: "GET /e-bkt?location", want: "200", then: location("rma")},
		{log: "ListObjectsV2", call: "GET /e-bkt?list-type=2", want: forbidden},
		{log: "ListObjectVersions", call: "GET /e-bkt?versions", want: forbidden},
		{log: "ListMultipartUploads", call: "GET /e-bkt?uploads", want: forbidden},
		{log: "GetBucketVersioning", call: "GET /e-bkt?versioning", want: forbidden},
		{log: "GetBucketPolicy", call: "GET /e-bkt?policy", want: forbidden},
		{log: "GetBucketAcl", call: "GET /e-bkt?acl", want: forbidden},
		{log: "HeadObject owner's", call: "HEAD /e-bkt/own", want: bare},
		{log: "GetObject owner's", call: "GET /e-bkt/own", want: forbidden + " | ", tentacle: missingGet},
		{log: "GetObject missing key", call: "GET /e-bkt/nope", want: forbidden + " | "},
		{log: "HeadObject missing key", call: "HEAD /e-bkt/nope", want: bare},
		{log: "PutObject new", call: "PUT /e-bkt/bnew", body: "x", want: forbidden},
		{log: "GetObject own new", call: "GET /e-bkt/bnew", want: forbidden},
		{log: "PutObject overwrite owner's d/own2", call: "PUT /e-bkt/d/own2", body: "x", want: forbidden},
		{log: "PutObject w/ ACL bucket-owner-full-control", call: "PUT /e-bkt/bacl", body: "x",
			header: []string{"X-Amz-Acl", "bucket-owner-full-control"}, want: forbidden},
		{log: "PutObject w/ Tagging", call: "PUT /e-bkt/btag", body: "x", header: []string{"X-Amz-Tagging", "a=b"}, want: forbidden},
		{log: "PutObjectAcl on own new public-read", call: "PUT /e-bkt/bnew?acl", header: []string{"X-Amz-Acl", "public-read"}, want: forbidden},
		{log: "CreateMultipartUpload", call: "POST /e-bkt/mp?uploads", want: forbidden, then: func(t *testing.T, a answer) {
			if a.status == 200 {
				uploadID = parse[initiateXML](t, a).UploadID
			}
		}},
	}
	if mode != "RO" {
		calls = append(calls,
			row{log: "UploadPart", do: func() answer { return b.call(t, "PUT", "/e-bkt/mp?partNumber=1&uploadId="+uploadID, "part") },
				want: "200", then: func(_ *testing.T, a answer) { etag = a.header.Get("ETag") }},
			row{log: "ListParts", do: func() answer { return b.call(t, "GET", "/e-bkt/mp?uploadId="+uploadID, "") }, want: "200"},
			row{log: "CompleteMultipartUpload", do: func() answer {
				return b.call(t, "POST", "/e-bkt/mp?uploadId="+uploadID,
					"<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>"+etag+"</ETag></Part></CompleteMultipartUpload>")
			}, want: "200"},
			row{log: "CreateMPU 2", call: "POST /e-bkt/mp2?uploads", want: "200", then: func(t *testing.T, a answer) {
				uploadID = parse[initiateXML](t, a).UploadID
			}},
			row{log: "AbortMPU", do: func() answer { return b.call(t, "DELETE", "/e-bkt/mp2?uploadId="+uploadID, "") }, want: "204"},
		)
	}
	calls = append(calls, []row{
		{log: "CopyObject own->copy", call: "PUT /e-bkt/copy", header: []string{"X-Amz-Copy-Source", "e-bkt/own"}, want: forbidden},
		{log: "DeleteObject own new", call: "DELETE /e-bkt/bnew", want: forbidden},
		{log: "DeleteObject owner's d/own2", call: "DELETE /e-bkt/d/own2", want: forbidden},
		{log: "DeleteObjects [own?]", call: "POST /e-bkt?delete", body: multiDelete, want: forbidden,
			tentacle: "200", thenTentacle: deleted(mode == "RW", "btag", "nokey")},
		{log: "PutBucketPolicy", call: "PUT /e-bkt?policy", body: modePolicy(mode, "e-bkt"), want: forbidden},
		{log: "DeleteBucketPolicy", call: "DELETE /e-bkt?policy", want: forbidden},
		{log: "PutBucketAcl", call: "PUT /e-bkt?acl", header: []string{"X-Amz-Acl", "private"}, want: forbidden},
		{log: "PutBucketVersioning", call: "PUT /e-bkt?versioning",
			body: "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>", want: forbidden},
		{log: "PutBucketLifecycle", call: "PUT /e-bkt?lifecycle", body: "<LifecycleConfiguration/>", want: forbidden},
		{log: "CreateBucket same name", call: "PUT /e-bkt", want: "409 BucketAlreadyExists | ",
			tentacle: "409 BucketAlreadyExists | Cannot modify existing access control policy"},
		{log: "DeleteBucket", call: "DELETE /e-bkt", want: forbidden},
		{log: "ListBuckets", call: "GET /", want: "200"},
	}...)
	for i := range calls {
		calls[i].by = b
		if w, ok := want[calls[i].log]; ok {
			calls[i].want, calls[i].tentacle = w, ""
			delete(want, calls[i].log)
		}
		calls[i].log = mode + " " + calls[i].log
	}
	for log := range want {
		t.Errorf("%s: no such row %q", mode, log)
	}
	l.golden(t, calls)
}

// Section "matrix" of t_e: what an access user may do under a policy of each mode.
func TestGoldenModes(t *testing.T) { onReleases(t, goldenModes) }

func goldenModes(t *testing.T, l *lab) {
	t.Helper()
	a, b := l.user("A"), l.user("B")
	a.must(t, "PUT", "/e-bkt", "")
	a.must(t, "PUT", "/e-bkt/own", "own")
	a.must(t, "PUT", "/e-bkt/d/own2", "own2")

	a.must(t, "PUT", "/e-bkt?policy", modePolicy("RO", "e-bkt"))
	l.matrix(t, b, "RO", map[string]string{
		"HeadBucket": "200", "ListObjectsV2": "200", "ListObjectVersions": "200", "GetBucketVersioning": "200",
		"HeadObject owner's": "200", "GetObject owner's": "200",
		"GetObject missing key": "404 NoSuchKey", "HeadObject missing key": "404",
		"GetObject own new": "404 NoSuchKey", "PutObjectAcl on own new public-read": "404 NoSuchKey",
	})

	a.must(t, "PUT", "/e-bkt?policy", modePolicy("WO", "e-bkt"))
	l.matrix(t, b, "WO", map[string]string{
		"ListMultipartUploads": "200", "PutObject new": "200", "GetObject own new": "200",
		"PutObject overwrite owner's d/own2": "200", "PutObject w/ ACL bucket-owner-full-control": "200",
		"PutObject w/ Tagging": "200", "PutObjectAcl on own new public-read": "200", "CreateMultipartUpload": "200",
	})

	a.must(t, "PUT", "/e-bkt?policy", modePolicy("RW", "e-bkt"))
	l.matrix(t, b, "RW", map[string]string{
		"HeadBucket": "200", "ListObjectsV2": "200", "ListObjectVersions": "200", "ListMultipartUploads": "200",
		"GetBucketVersioning": "200", "HeadObject owner's": "200", "GetObject owner's": "200",
		"GetObject missing key": "404 NoSuchKey", "HeadObject missing key": "404",
		"PutObject new": "200", "GetObject own new": "200", "PutObject overwrite owner's d/own2": "200",
		"PutObject w/ ACL bucket-owner-full-control": "200", "PutObject w/ Tagging": "200",
		"PutObjectAcl on own new public-read": "200", "CreateMultipartUpload": "200",
		"CopyObject own->copy": "200", "DeleteObject own new": "204", "DeleteObject owner's d/own2": "204",
	})
}

// Sections "ownership", "second access user" and "user removed" of t_e, on objects that B wrote.
func TestGoldenOwnership(t *testing.T) { onReleases(t, goldenOwnership) }

func goldenOwnership(t *testing.T, l *lab) {
	t.Helper()
	a, b, c := l.user("A"), l.user("B"), l.user("C")
	a.must(t, "PUT", "/e-bkt", "")
	a.must(t, "PUT", "/e-bkt/own", "own")
	a.must(t, "PUT", "/e-bkt?policy", modePolicy("RW", "e-bkt"))
	b.must(t, "PUT", "/e-bkt/bobj", "x")
	b.must(t, "PUT", "/e-bkt/bobj2", "x")
	b.must(t, "PUT", "/e-bkt/bacl", "x", "X-Amz-Acl", "bucket-owner-full-control")
	chown := []string{"X-Amz-Copy-Source", "e-bkt/bobj", "X-Amz-Metadata-Directive", "REPLACE"}
	rwAndC := policyOf(
		statement("Allow", "uid-b", bucketActionsRW+" "+objectActionsRW, "e-bkt e-bkt/*", ""),
		statement("Allow", "uid-c", "GetObject", "e-bkt/*", ""))
	rwAndOwner := policyOf(
		statement("Allow", "uid-b", bucketActionsRW+" "+objectActionsRW, "e-bkt e-bkt/*", ""),
		statement("Allow", "uid-a", "GetObject", "e-bkt/*", ""))
	l.golden(t, []row{
		{log: "C (third user) GetObject under RW-for-B", by: c, call: "GET /e-bkt/own", want: "403 AccessDenied | ", tentacle: missingGet},
		{log: "A GetObject of B's object", by: a, call: "GET /e-bkt/bobj", want: "403 AccessDenied | ", tentacle: missingGet},
		{log: "A HeadObject of B's object", by: a, call: "HEAD /e-bkt/bobj", want: "403"},
		{log: "A GetObjectAcl of B's object", by: a, call: "GET /e-bkt/bobj?acl", want: "403 AccessDenied | "},
		{log: "A list shows owner", by: a, call: "GET /e-bkt?list-type=2&fetch-owner=true", want: "200", then: func(t *testing.T, got answer) {
			var owners []string
			for _, o := range parse[listObjectsXML](t, got).Contents {
				owners = append(owners, o.Key+":"+o.Owner.ID)
			}
			if s := strings.Join(owners, " "); s != "bacl:uid-b bobj:uid-b bobj2:uid-b own:uid-a" {
				t.Errorf("owners %s", s)
			}
		}},
		{log: "A copy B's object onto itself (chown)", by: a, call: "PUT /e-bkt/bobj", header: chown, want: "403 AccessDenied", tentacle: "200"},
		{log: "A GetObject of B's object w/ bucket-owner-full-control", by: a, call: "GET /e-bkt/bacl", want: "200"},
		{log: "A DeleteObject of B's object", by: a, call: "DELETE /e-bkt/bobj", want: "204"},

		{log: "PUT policy RW B + RO C", by: a, call: "PUT /e-bkt?policy", body: rwAndC, want: "204"},
		{log: "C GetObject of B's object", by: c, call: "GET /e-bkt/bobj2", want: "200"},
		{log: "C GetObject of A's object", by: c, call: "GET /e-bkt/own", want: "200"},
		{log: "PUT policy RW B + owner GetObject", by: a, call: "PUT /e-bkt?policy", body: rwAndOwner, want: "204"},
		{log: "A GetObject of B's object with owner statement", by: a, call: "GET /e-bkt/bobj2", want: "200"},
	})

	l.keys.remove("AKB")
	l.golden(t, []row{
		{log: "B HeadBucket after deletion", by: b, call: "HEAD /e-bkt", want: "403"},
		{log: "B list after deletion", by: b, call: "GET /e-bkt", want: "403 InvalidAccessKeyId"},
		{log: "A GetObject of B's orphan object", by: a, call: "GET /e-bkt/bobj2", want: "200"},
		{log: "list", by: a, call: "GET /e-bkt", want: "200"},
		{log: "A re-PUT policy naming deleted user", by: a, call: "PUT /e-bkt?policy", body: rwAndOwner, want: "204"},
		{log: "A Get policy", by: a, call: "GET /e-bkt?policy", want: "200", then: func(t *testing.T, got answer) {
			if string(got.body) != rwAndOwner {
				t.Errorf("policy %q", got.body)
			}
		}},
		{log: "A delete B's orphan", by: a, call: "DELETE /e-bkt/bobj2", want: "204"},
	})
}

// t_k: the policy of the driver, what it leaves open, and what revoking does.
func TestGoldenRevoke(t *testing.T) { onReleases(t, goldenRevoke) }

func goldenRevoke(t *testing.T, l *lab) {
	t.Helper()
	a, b, anonymous := l.user("A"), l.user("B"), l.anonymous()
	owner := statement("Allow", "uid-a", "*", "k-bkt k-bkt/*", "")
	full := policyOf(owner,
		statement("Allow", "uid-b", bucketActionsRW+" GetObject PutObject DeleteObject AbortMultipartUpload", "k-bkt k-bkt/*", ""),
		statement("Deny", "uid-b", "PutObjectAcl PutObjectVersionAcl", "k-bkt/*", ""),
		statement("Deny", "uid-b", "PutObject", "k-bkt/*", `,"Condition":{"StringLike":{"s3:x-amz-acl":"public-*"}}`))
	put := func(acl string) []string { return []string{"X-Amz-Acl", acl} }
	a.must(t, "PUT", "/k-bkt", "")
	var uploadID string
	l.golden(t, []row{
		{log: "PUT owner+RW+denies", by: a, call: "PUT /k-bkt?policy", body: full, want: "204"},
		{log: "B put", by: b, call: "PUT /k-bkt/1", body: "x", want: "200"},
		{log: "B put ACL=private", by: b, call: "PUT /k-bkt/2", body: "x", header: put("private"), want: "200"},
		{log: "B put ACL=bucket-owner-full-control", by: b, call: "PUT /k-bkt/3", body: "x", header: put("bucket-owner-full-control"), want: "200"},
		{log: "B put ACL=public-read", by: b, call: "PUT /k-bkt/4", body: "x", header: put("public-read"), want: "403 AccessDenied"},
		{log: "B put GrantRead=AllUsers", by: b, call: "PUT /k-bkt/5", body: "x",
			header: []string{"X-Amz-Grant-Read", `uri="` + groupAll + `"`}, want: "200"},
		{log: "  anon GET x5", by: anonymous, call: "GET /k-bkt/5", want: "200"},
		{log: "B mpu ACL=public-read", by: b, call: "POST /k-bkt/6?uploads", header: put("public-read"), want: "200",
			then: func(t *testing.T, got answer) { uploadID = parse[initiateXML](t, got).UploadID }},
		{log: "B put_object_acl", by: b, call: "PUT /k-bkt/1?acl", header: put("public-read"), want: "403 AccessDenied"},
		{log: "PUT PAB IgnorePublicAcls", by: a, call: "PUT /k-bkt?publicAccessBlock", body: pab("IgnorePublicAcls"), want: "200"},
		{log: "  anon GET x5 w/ IgnorePublicAcls", by: anonymous, call: "GET /k-bkt/5", want: "403 AccessDenied"},
		{log: "policy put still fine", by: a, call: "PUT /k-bkt?policy", body: full, want: "204"},

		{log: "PUT owner only", by: a, call: "PUT /k-bkt?policy", body: policyOf(owner), want: "204"},
		{log: "B list", by: b, call: "GET /k-bkt", want: "403 AccessDenied"},
		{log: "B get own object after revoke", by: b, call: "GET /k-bkt/1", want: "200"},
		{log: "B put after revoke", by: b, call: "PUT /k-bkt/7", body: "x", want: "403 AccessDenied"},
		{log: "B delete own after revoke", by: b, call: "DELETE /k-bkt/1", want: "403 AccessDenied"},
		{log: "B put_object_acl own after revoke", by: b, call: "PUT /k-bkt/1?acl", header: put("private"), want: "200"},

		{log: "B create own bucket", by: b, call: "PUT /k-bkt-of-b", want: "200"},
		{log: "B delete own bucket", by: b, call: "DELETE /k-bkt-of-b", want: "204"},

		{log: "owner lists B's pending MPU", by: a, call: "GET /k-bkt?uploads", want: "200", then: func(t *testing.T, got answer) {
			if ups := parse[listUploadsXML](t, got).Uploads; len(ups) != 1 || ups[0].UploadID != uploadID || ups[0].Initiator.ID != "uid-b" {
				t.Errorf("uploads %+v", ups)
			}
		}},
		{log: "owner DeleteObjects incl. B's", by: a, call: "POST /k-bkt?delete", body: deleteKeys(false, "1", "2", "3", "5"), want: "200"},
		{log: "DeleteBucket with policy attached", by: a, call: "DELETE /k-bkt", want: "204"},
		{log: "create", by: a, call: "PUT /k-bkt", want: "200"},
		{log: "get policy", by: a, call: "GET /k-bkt?policy", want: "404 NoSuchBucketPolicy"},
		{log: "B list", by: b, call: "GET /k-bkt", want: "403 AccessDenied"},
	})
}

// missingGet is how Tentacle refuses a GetObject.
const missingGet = "403 AccessDenied | missing s3:GetObject permission"

// deleted checks that DeleteObjects has deleted all the keys, or was refused them all.
func deleted(done bool, keys ...string) func(*testing.T, answer) {
	return func(t *testing.T, got answer) {
		t.Helper()
		var want deleteResultXML
		for _, key := range keys {
			if done {
				want.Deleted = append(want.Deleted, deletedXML{Key: key})
			} else {
				want.Errors = append(want.Errors, deleteErrorXML{Key: key, Code: "AccessDenied", Message: "AccessDenied"})
			}
		}
		if r := parse[deleteResultXML](t, got); !slices.Equal(r.Deleted, want.Deleted) || !slices.Equal(r.Errors, want.Errors) {
			t.Errorf("result %+v, want %+v", r, want)
		}
	}
}

// pab is a PublicAccessBlock with one switch on.
func pab(word string) string {
	return "<PublicAccessBlockConfiguration><" + word + ">true</" + word + "></PublicAccessBlockConfiguration>"
}

// deleteKeys is a DeleteObjects document; a key may carry a version after "@".
func deleteKeys(quiet bool, keys ...string) string {
	var b strings.Builder
	b.WriteString("<Delete>")
	if quiet {
		b.WriteString("<Quiet>true</Quiet>")
	}
	for _, k := range keys {
		key, version, found := strings.Cut(k, "@")
		b.WriteString("<Object><Key>" + key + "</Key>")
		if found {
			b.WriteString("<VersionId>" + version + "</VersionId>")
		}
		b.WriteString("</Object>")
	}
	b.WriteString("</Delete>")
	return b.String()
}
