package objectstore

import (
	"bytes"
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
