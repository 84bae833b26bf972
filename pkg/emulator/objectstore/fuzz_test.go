package objectstore

import (
	"bytes"
	"encoding/xml"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
)

// The decoder never returns more or less than was announced, and never fails to return.
func FuzzDecodeChunked(f *testing.F) {
	f.Add([]byte("5\r\nhello\r\n0\r\n\r\n"), int64(5), false, false)
	f.Add([]byte("5;chunk-signature=00\r\nhello\r\n0;chunk-signature=00\r\n\r\n"), int64(5), true, false)
	f.Add([]byte("3\r\nabc\r\n0\r\nx-amz-checksum-crc32:AAAAAA==\r\n\r\n"), int64(3), false, true)
	f.Add([]byte("ffffffffffffffff\r\n"), int64(1)<<40, false, false)
	f.Add([]byte("0\r\nx-amz-trailer-signature:00\r\n"), int64(0), true, true)
	f.Fuzz(func(t *testing.T, body []byte, size int64, signed, trailer bool) {
		var signer *chunkSigner
		if signed {
			signer = &chunkSigner{key: []byte("key"), amzDate: "20260101T000000Z", scope: "20260101/r/s3/aws4_request"}
		}
		data, headers, err := decodeChunked(bytes.NewReader(body), size, signer, trailer)
		if err == nil && int64(len(data)) != size {
			t.Errorf("%d bytes, announced %d", len(data), size)
		}
		if err == nil && !trailer && len(headers) > 0 {
			t.Errorf("trailer %v that nobody announced", headers)
		}
		if len(data) > len(body) {
			t.Errorf("%d bytes out of %d", len(data), len(body))
		}
	})
}

// What was encoded decodes to the same.
func FuzzChunkedRoundTrip(f *testing.F) {
	f.Add([]byte("hello world"), uint8(3))
	f.Add([]byte{}, uint8(0))
	f.Fuzz(func(t *testing.T, data []byte, step uint8) {
		var body bytes.Buffer
		for rest := data; len(rest) > 0; {
			n := min(len(rest), int(step)+1)
			body.WriteString(strconv.FormatInt(int64(n), 16) + "\r\n" + string(rest[:n]) + "\r\n")
			rest = rest[n:]
		}
		body.WriteString("0\r\n\r\n")
		got, _, err := decodeChunked(&body, int64(len(data)), nil, false)
		if err != nil || !bytes.Equal(got, data) {
			t.Errorf("got %q, %v, want %q", got, err, data)
		}
	})
}

// A header that is accepted is complete, and reading it again gives the same.
func FuzzParseAuthorization(f *testing.F) {
	f.Add("AWS4-HMAC-SHA256 Credential=AK/20260101/r/s3/aws4_request, SignedHeaders=host;x-amz-date, Signature=00")
	f.Add("AWS4-HMAC-SHA256 Credential=A/K/20260101/r/s3/aws4_request,SignedHeaders=host,Signature=00")
	f.Add("AWS4-HMAC-SHA256")
	f.Add("AWS AK:signature")
	f.Fuzz(func(t *testing.T, header string) {
		c, err := parseAuthorization(header)
		if err != nil {
			if c2, err2 := parseAuthorizationV2(header); err2 == nil && (c2.accessKeyID == "" || c2.signature == "") {
				t.Errorf("%q: incomplete %+v", header, c2)
			}
			return
		}
		if c.accessKeyID == "" || c.signature == "" || len(c.signedHeaders) == 0 || strings.Count(c.scope, "/") != 3 {
			t.Fatalf("%q: incomplete %+v", header, c)
		}
		again := "AWS4-HMAC-SHA256 Credential=" + c.accessKeyID + "/" + c.scope + ",SignedHeaders=" +
			strings.Join(c.signedHeaders, ";") + ",Signature=" + c.signature
		d, err := parseAuthorization(again)
		if err != nil || d.accessKeyID != c.accessKeyID || d.scope != c.scope || d.signature != c.signature {
			t.Errorf("%q: %+v, again %+v (%v)", header, c, d, err)
		}
	})
}

func FuzzParsePresigned(f *testing.F) {
	f.Add("X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AK/20260101/r/s3/aws4_request&X-Amz-Expires=60&X-Amz-SignedHeaders=host&X-Amz-Signature=00")
	f.Add("AWSAccessKeyId=AK&Expires=1&Signature=x")
	f.Fuzz(func(t *testing.T, raw string) {
		query, err := url.ParseQuery(raw)
		if err != nil {
			return
		}
		c, failed := parsePresigned(query)
		if failed == nil && (c.accessKeyID == "" || c.signature == "" || c.expires <= 0 || c.expires > maxPresignLife) {
			t.Errorf("%q: %+v", raw, c)
		}
		if c2, failed := parsePresignedV2(query); failed == nil && c2.expires <= 0 {
			t.Errorf("%q: %+v", raw, c2)
		}
	})
}

// Every parser of a request document returns without a panic, and tags and ACLs that it accepts are valid.
func FuzzRequestDocuments(f *testing.F) {
	for _, seed := range []string{
		deleteKeys(true, "a@1", "b"), constraint("rma"), enableVersioning, pab("IgnorePublicAcls"),
		"<Tagging><TagSet><Tag><Key>k</Key><Value>v</Value></Tag></TagSet></Tagging>",
		"<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>\"00\"</ETag></Part></CompleteMultipartUpload>",
		"<AccessControlPolicy><AccessControlList><Grant><Grantee><ID>x</ID></Grantee><Permission>READ</Permission></Grant></AccessControlList></AccessControlPolicy>",
		"<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled><Rule><DefaultRetention><Mode>GOVERNANCE</Mode><Days>1</Days></DefaultRetention></Rule></ObjectLockConfiguration>",
		"<Retention><Mode>GOVERNANCE</Mode><RetainUntilDate>2030-01-01T00:00:00Z</RetainUntilDate></Retention>",
		"<!DOCTYPE x [<!ENTITY a \"b\">]><Delete>&a;</Delete>",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, v := range []any{
			&deleteXML{}, &createBucketXML{}, &versioningXML{}, &publicAccessBlock{}, &completeXML{}, &objectLockXML{},
			&retentionXML{}, &legalHoldXML{}, &anyXML{},
		} {
			if err := parseDocument(text, v); err != nil && err.status != 400 {
				t.Errorf("%T: %v", v, err)
			}
		}
		if tags, err := parseTagging(text, maxObjectTags); err == nil && checkTags(tags, maxObjectTags) != nil {
			t.Errorf("invalid tags %v", tags)
		}
		q := &request{store: New(Options{}), body: text}
		if list, err := q.parseACL(Identity{UID: "u"}); err == nil {
			for _, g := range list.grants {
				if g.perm == 0 || (g.uid != "" && g.group != "") {
					t.Errorf("grant %+v", g)
				}
			}
		}
	})
}

// FuzzTagsFromHeader: tags of a write are refused, or they are such that a document
// of tags would have been accepted.
func FuzzTagsFromHeader(f *testing.F) {
	for _, seed := range []string{"", "a=b", "a=b&a=c", "a=%zz", "a", "=b", "%00=%0a", "aws:x=1", strings.Repeat("k", 129) + "=v", "k=" + strings.Repeat("v", 257), "ä=日&b=+%2B"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		tags, failed := tagsFromHeader(header)
		if failed != nil {
			if failed.status != 400 {
				t.Errorf("%q: %v", header, failed)
			}
			return
		}
		if checkTags(tags, maxObjectTags) != nil || header != "" && len(tags) == 0 && strings.Trim(header, "&") != "" {
			t.Errorf("%q: %v", header, tags)
		}
	})
}

// FuzzServe: no signed request is answered with a fault of the store's own, or with a
// document that is none, and none changes somebody else's bucket.
func FuzzServe(f *testing.F) {
	const upload = "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>\"00\"</ETag></Part></CompleteMultipartUpload>"
	for _, v := range []string{
		"abc", "ab", strings.Repeat("a", 63), strings.Repeat("a", 64), strings.Repeat("k", 1025), "b%C3%BCcket", "a%2Fb", "..", "%2e%2e", "a%00b", "a%0Ab", "%ff", "192.168.1.1", "theirs",
	} {
		f.Add("PUT", "/"+v, "X-Amz-Acl", "private", "")
		f.Add("PUT", "/theirs/"+v, "X-Amz-Tagging", v, "data")
		f.Add("PUT", "/ours/"+v, "X-Amz-Copy-Source", "/theirs/"+v, "")
		f.Add("GET", "/ours?list-type=2&prefix="+v+"&continuation-token="+v+"&max-keys="+v, "Range", "bytes="+v, "")
		f.Add("GET", "/ours?versions&key-marker="+v+"&version-id-marker="+v+"&encoding-type=url", "If-Match", v, "")
		f.Add("POST", "/ours/"+v+"?uploadId="+v, "X-Amz-Checksum-Crc32", v, upload)
		f.Add("PUT", "/ours/"+v+"?partNumber="+v+"&uploadId="+v, "X-Amz-Decoded-Content-Length", v, "5\r\nhello\r\n0\r\n\r\n")
	}
	f.Add("PUT", "/ours?tagging", "Content-Md5", "x", "<Tagging><TagSet><Tag><Key>k</Key><Value>v</Value></Tag></TagSet></Tagging>")
	f.Add("POST", "/theirs?delete", "", "", "<Delete><Object><Key>key</Key></Object></Delete>")
	f.Add("DELETE", "/theirs/key?versionId=null", "X-Amz-Bypass-Governance-Retention", "true", "")
	for _, sub := range []string{"policy", "acl", "versioning", "lifecycle", "cors", "object-lock", "publicAccessBlock", "website", "notification", "encryption", "uploads", "location"} {
		f.Add("PUT", "/ours?"+sub, "X-Amz-Acl", "public-read", "<a/>")
		f.Add("GET", "/theirs?"+sub, "", "", "")
	}
	l := newLab(f)
	us, them := l.user("A"), l.user("B")
	handler := l.store.Handler("rma")
	serve := func(t testing.TB, c *client, method, path, name, value, body string) *httptest.ResponseRecorder {
		r, err := http.NewRequestWithContext(t.Context(), method, c.url+path, strings.NewReader(body))
		if err != nil || r.URL.Host != strings.TrimPrefix(c.url, "http://") {
			return nil // nothing that a client can send here
		}
		r.RequestURI = r.URL.RequestURI()
		if name != "" && !strings.ContainsAny(name+value, "\r\n\x00") {
			r.Header.Set(name, value)
		}
		if len(r.Header.Get("X-Amz-Date")) < 8 {
			r.Header.Del("X-Amz-Date")
		}
		c.sign(r, []byte(body))
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w
	}
	for _, made := range []*httptest.ResponseRecorder{
		serve(f, us, "PUT", "/ours", "", "", ""), serve(f, them, "PUT", "/theirs", "", "", ""), serve(f, them, "PUT", "/theirs/key", "", "", "data"),
	} {
		if made.Code != http.StatusOK {
			f.Fatalf("%d %s", made.Code, made.Body)
		}
	}
	f.Fuzz(func(t *testing.T, method, path, name, value, body string) {
		w := serve(t, us, method, path, name, value, body)
		if w == nil {
			return
		}
		if w.Code >= http.StatusInternalServerError && w.Code != http.StatusNotImplemented {
			t.Errorf("%s %q: %d %s", method, path, w.Code, w.Body)
		}
		if text := w.Body.Bytes(); len(text) > 0 && w.Header().Get("Content-Type") == "application/xml" && method != http.MethodGet {
			if err := xml.Unmarshal(text, new(anyXML)); err != nil {
				t.Errorf("%s %q: %v in %q", method, path, err, text)
			}
		}
		if data := serve(t, them, "GET", "/theirs/key", "", "", ""); data.Code != http.StatusOK || data.Body.String() != "data" {
			t.Errorf("%s %q left of somebody else's object %d %q", method, path, data.Code, data.Body)
		}
		for _, b := range l.store.Buckets() {
			if b.Name == "theirs" && b.Objects != 1 {
				t.Errorf("%s %q: somebody else's bucket holds %d objects", method, path, b.Objects)
			}
		}
		// What a bucket of ours holds does not grow with the length of the run.
		serve(t, us, "DELETE", strings.SplitN(path, "?", 2)[0], "", "", "")
	})
}
