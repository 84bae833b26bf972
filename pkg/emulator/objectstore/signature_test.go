package objectstore

import (
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash"
	"hash/crc32"
	"hash/crc64"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awscredentials "github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

const emptyHash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// putChunked sends data in the aws-chunked encoding, with signed chunks, and lets a test spoil the body.
func (c *client) putChunked(t *testing.T, path, data, trailer string, spoil func(string) string, header ...string) answer {
	t.Helper()
	payload := "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
	if trailer != "" {
		payload += "-TRAILER"
		header = append(header, "X-Amz-Trailer", strings.SplitN(trailer, ":", 2)[0])
	}
	header = append(header, "X-Amz-Content-Sha256", payload, "Content-Encoding", "deflate,aws-chunked",
		"X-Amz-Decoded-Content-Length", fmt.Sprint(len(data)))
	r := c.prepare(t, "PUT", path, nil, header...)
	previous := c.sign(r, nil)
	date := r.Header.Get("X-Amz-Date")
	scope := date[:8] + "/" + c.region + "/s3/aws4_request"
	link := func(kind, rest string) string {
		previous = hex.EncodeToString(testMAC(c.signingKey(date), strings.Join([]string{"AWS4-HMAC-SHA256-" + kind, date, scope, previous, rest}, "\n")))
		return previous
	}
	hashOf := func(s string) string {
		sum := sha256.Sum256([]byte(s))
		return hex.EncodeToString(sum[:])
	}
	var body strings.Builder
	for rest := data; ; {
		n := min(len(rest), 7)
		chunk := rest[:n]
		rest = rest[n:]
		fmt.Fprintf(&body, "%x;chunk-signature=%s\r\n%s", n, link("PAYLOAD", emptyHash+"\n"+hashOf(chunk)), chunk)
		if n == 0 {
			break
		}
		body.WriteString("\r\n")
	}
	if trailer != "" {
		fmt.Fprintf(&body, "%s\r\nx-amz-trailer-signature:%s\r\n", trailer, link("TRAILER", hashOf(trailer+"\n")))
	}
	body.WriteString("\r\n")
	text := body.String()
	if spoil != nil {
		text = spoil(text)
	}
	signed := r.Header
	r = c.prepare(t, "PUT", path, []byte(text))
	r.Header = signed
	return c.send(t, r)
}

func sum64(h hash.Hash, data string) string {
	h.Write([]byte(data))
	return base64.StdEncoding.EncodeToString(h.Sum(nil))
}

func TestChunkedBodies(t *testing.T) {
	l := newLab(t)
	a := l.user("A")
	a.must(t, "PUT", "/c-bkt", "")
	const data = "the quick brown fox jumps over the lazy dog"
	crc := "x-amz-checksum-crc32:" + sum64(crc32.NewIEEE(), data)
	nvme := "x-amz-checksum-crc64nvme:" + sum64(crc64.New(crc64.MakeTable(crc64NVME)), data)
	replace := func(from, to string) func(string) string {
		return func(s string) string { return strings.Replace(s, from, to, 1) }
	}
	short := func(s string) string { return s[:len(s)/2] }
	for _, test := range []struct {
		name, trailer string
		spoil         func(string) string
		want          string
	}{
		{name: "signed chunks", want: "200"},
		{name: "signed trailer", trailer: crc, want: "200"},
		{name: "signed CRC64NVME trailer", trailer: nvme, want: "200"},
		{name: "changed data", spoil: replace("the", "thy"), want: "403 SignatureDoesNotMatch"},
		{name: "changed trailer", trailer: crc, spoil: replace(crc, "x-amz-checksum-crc32:AAAAAA=="), want: "403 SignatureDoesNotMatch"},
		{name: "wrong checksum, well signed", trailer: "x-amz-checksum-crc32:AAAAAA==", want: "400 BadDigest"},
		{name: "malformed checksum", trailer: "x-amz-checksum-crc32:AAAA", want: "400 InvalidRequest"},
		{name: "cut short", spoil: short, want: "400 IncompleteBody"},
		{name: "chunk longer than announced", spoil: replace("7;", "7000;"), want: "400 IncompleteBody"},
		{name: "no chunk header", spoil: func(string) string { return "" }, want: "400 IncompleteBody"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := a.putChunked(t, "/c-bkt/k", data, test.trailer, test.spoil); got.String() != test.want {
				t.Fatalf("got %v, want %s", got, test.want)
			}
			if test.want != "200" {
				return
			}
			got := a.must(t, "GET", "/c-bkt/k", "")
			if string(got.body) != data || got.header.Get("Content-Encoding") != "deflate" {
				t.Errorf("body %q, encoding %q", got.body, got.header.Get("Content-Encoding"))
			}
		})
	}

	unsigned := func(body, trailer string) answer {
		return a.call(t, "PUT", "/c-bkt/u", body, "X-Amz-Content-Sha256", streamingUnsignedTrailer,
			"X-Amz-Decoded-Content-Length", "5", "X-Amz-Trailer", trailer)
	}
	good := "5\r\nhello\r\n0\r\nx-amz-checksum-crc32c:" + sum64(crc32.New(crc32.MakeTable(crc32.Castagnoli)), "hello") + "\r\n\r\n"
	l.golden(t, []row{
		{log: "unsigned with trailer", do: func() answer { return unsigned(good, "x-amz-checksum-crc32c") }, want: "200"},
		{log: "trailer announced but missing", do: func() answer { return unsigned("5\r\nhello\r\n0\r\n\r\n", "x-amz-checksum-crc32c") },
			want: "400 MalformedTrailerError"},
		{log: "wrong trailer", do: func() answer { return unsigned(strings.Replace(good, "hello", "hallo", 1), "x-amz-checksum-crc32c") },
			want: "400 BadDigest"},
		{log: "no decoded length", by: a, call: "PUT /c-bkt/u", body: good, header: []string{"X-Amz-Content-Sha256", streamingUnsignedTrailer},
			want: "411 MissingContentLength"},
		{log: "another streaming scheme", by: a, call: "PUT /c-bkt/u", body: good,
			header: []string{"X-Amz-Content-Sha256", "STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD"}, want: "501 NotImplemented"},
	})
}

func TestDigests(t *testing.T) {
	l := newLab(t)
	a := l.user("A")
	a.must(t, "PUT", "/d-bkt", "")
	put := func(log, want string, header ...string) row {
		return row{log: log, by: a, call: "PUT /d-bkt/k", body: "123456789", header: header, want: want}
	}
	l.golden(t, []row{
		put("crc32", "200", "X-Amz-Checksum-Crc32", "y/Q5Jg=="),
		put("crc32c", "200", "X-Amz-Checksum-Crc32c", "4waSgw=="),
		// 0xae8b14860a799888 is the published check value of CRC-64/NVME.
		put("crc64nvme", "200", "X-Amz-Checksum-Crc64nvme", base64.StdEncoding.EncodeToString([]byte{0xae, 0x8b, 0x14, 0x86, 0x0a, 0x79, 0x98, 0x88})),
		put("sha1", "200", "X-Amz-Checksum-Sha1", "98O8HYCOBHMq32eZZczDTKeuNEE="),
		put("sha256", "200", "X-Amz-Checksum-Sha256", "FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU="),
		put("wrong crc32", "400 BadDigest", "X-Amz-Checksum-Crc32", "y/Q5Jw=="),
		put("malformed sha256", "400 InvalidRequest", "X-Amz-Checksum-Sha256", "short"),
		put("md5", "200", "Content-MD5", "JfnnlDI7RTiF9RgfG2JNCw=="),
		put("wrong md5", "400 BadDigest", "Content-MD5", "AAAAAAAAAAAAAAAAAAAAAA=="),
		put("malformed md5", "400 InvalidDigest", "Content-MD5", "x"),
		put("unsigned payload", "200", "X-Amz-Content-Sha256", "UNSIGNED-PAYLOAD"),
		put("another payload than signed", "400 XAmzContentSHA256Mismatch", "X-Amz-Content-Sha256", emptyHash),
		put("the word that picks an algorithm is no checksum", "200", "X-Amz-Checksum-Algorithm", "CRC32"),
	})
}

func TestSignatures(t *testing.T) {
	l := newLab(t)
	a := l.user("A")
	a.must(t, "PUT", "/sig-bkt", "")
	a.must(t, "PUT", "/sig-bkt/k", "data")
	dated := func(offset time.Duration) []string {
		return []string{"X-Amz-Date", l.clock.now().Add(offset).UTC().Format(amzDateLayout)}
	}
	authorization := func(value string) []string { return []string{"Authorization", value} }
	l.golden(t, []row{
		{log: "10 minutes late", by: a, call: "GET /sig-bkt/k", header: dated(-10 * time.Minute), want: "200"},
		{log: "20 minutes late", by: a, call: "GET /sig-bkt/k", header: dated(-20 * time.Minute), want: "403 RequestTimeTooSkewed"},
		{log: "20 minutes early", by: a, call: "GET /sig-bkt/k", header: dated(20 * time.Minute), want: "403 RequestTimeTooSkewed"},
		{log: "folded header", by: a, call: "GET /sig-bkt/k", header: []string{"X-Amz-Meta-A", "b"}, want: "200"},
		{log: "query", by: a, call: "GET /sig-bkt?list-type=2&prefix=a%20b%2Bc&delimiter=%2F", want: "200"},
		{log: "anonymous", by: l.anonymous(), call: "GET /sig-bkt/k", want: "403 AccessDenied"},
		{log: "anonymous listing of buckets", by: l.anonymous(), call: "GET /", want: "200"},
		{log: "anonymous create", by: l.anonymous(), call: "PUT /anon-bkt", want: "403 AccessDenied"},
		{log: "bearer", by: l.anonymous(), call: "GET /", header: authorization("Bearer x"), want: "400 InvalidArgument"},
		{log: "no fields", by: l.anonymous(), call: "GET /", header: authorization("AWS4-HMAC-SHA256 "), want: "400 InvalidArgument"},
		{log: "no scope", by: l.anonymous(), call: "GET /", header: authorization("AWS4-HMAC-SHA256 Credential=x, SignedHeaders=host, Signature=00"), want: "400 InvalidArgument"},
		{log: "no method", by: a, call: "PATCH /sig-bkt/k", want: "405 MethodNotAllowed"},
	})

	// A signature over one request must not serve for another.
	r := a.prepare(t, "GET", "/sig-bkt/k", nil)
	a.sign(r, nil)
	r.URL.Path = "/sig-bkt"
	if got := a.send(t, r); got.String() != "403 SignatureDoesNotMatch" {
		t.Errorf("other path: %v", got)
	}
	r = a.prepare(t, "GET", "/sig-bkt/k", nil)
	a.sign(r, nil)
	r.Method = "DELETE"
	if got := a.send(t, r); got.String() != "403 SignatureDoesNotMatch" {
		t.Errorf("other method: %v", got)
	}
}

func TestPresigned(t *testing.T) {
	l := newLab(t)
	a := l.user("A")
	a.must(t, "PUT", "/p-bkt", "")
	a.must(t, "PUT", "/p-bkt/k", "data")
	presign := func(seconds, extra string) string {
		date := l.clock.now().UTC().Format(amzDateLayout)
		scope := date[:8] + "/any/s3/aws4_request"
		query := "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=" + url.QueryEscape("AKA/"+scope) + "&X-Amz-Date=" + date +
			"&X-Amz-Expires=" + seconds + "&X-Amz-SignedHeaders=host" + extra
		host := strings.TrimPrefix(l.urls["rma"], "http://")
		sum := sha256.Sum256([]byte("GET\n/p-bkt/k\n" + query + "\nhost:" + host + "\n\nhost\nUNSIGNED-PAYLOAD"))
		b := client{secret: "secret-of-A", region: "any"}
		signature := testMAC(b.signingKey(date), "AWS4-HMAC-SHA256\n"+date+"\n"+scope+"\n"+hex.EncodeToString(sum[:]))
		return "/p-bkt/k?" + query + "&X-Amz-Signature=" + hex.EncodeToString(signature)
	}
	anonymous := l.anonymous()
	link := presign("60", "")
	l.golden(t, []row{
		{log: "valid", by: anonymous, call: "GET " + link, want: "200"},
		{log: "with an override", by: anonymous, call: "GET " + presign("60", "&response-content-type=text%2Fx"), want: "200",
			then: func(t *testing.T, got answer) {
				if got.header.Get("Content-Type") != "text/x" {
					t.Errorf("header %v", got.header)
				}
			}},
		{log: "changed", by: anonymous, call: "GET " + strings.Replace(link, "Expires=60", "Expires=61", 1), want: "403 SignatureDoesNotMatch"},
		{log: "a week", by: anonymous, call: "GET " + presign("604800", ""), want: "200"},
		{log: "over a week", by: anonymous, call: "GET " + presign("604801", ""), want: "403 AccessDenied"},
		{log: "no time at all", by: anonymous, call: "GET " + presign("0", ""), want: "403 AccessDenied"},
	})
	l.clock.advance(61 * time.Second)
	l.golden(t, []row{{log: "expired", by: anonymous, call: "GET " + link, want: "403 AccessDenied"}})
}

// Row "SigV2 by an access user": old backup tools sign with version 2.
func TestSignatureV2(t *testing.T) {
	l := newLab(t)
	a := l.user("A")
	a.must(t, "PUT", "/v2-bkt", "")
	sign := func(secret, text string) string {
		mac := hmac.New(sha1.New, []byte(secret))
		mac.Write([]byte(text))
		return base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	date := l.clock.now().UTC().Format(http.TimeFormat)
	header := func(secret, text string) []string {
		return []string{"Date", date, "Authorization", "AWS AKA:" + sign(secret, text)}
	}
	raw := l.anonymous()
	put := "PUT\n\ntext/plain\n" + date + "\nx-amz-acl:private\n/v2-bkt/k"
	expires := fmt.Sprint(l.clock.now().Add(time.Minute).Unix())
	link := "/v2-bkt/k?AWSAccessKeyId=AKA&Expires=" + expires + "&Signature=" +
		url.QueryEscape(sign("secret-of-A", "GET\n\n\n"+expires+"\n/v2-bkt/k"))
	l.golden(t, []row{
		{log: "put", by: raw, call: "PUT /v2-bkt/k", body: "x",
			header: append(header("secret-of-A", put), "Content-Type", "text/plain", "X-Amz-Acl", "private"), want: "200"},
		{log: "list uploads", by: raw, call: "GET /v2-bkt?uploads&max-uploads=5",
			header: header("secret-of-A", "GET\n\n\n"+date+"\n/v2-bkt?uploads"), want: "200"},
		{log: "wrong secret", by: raw, call: "GET /v2-bkt", header: header("other", "GET\n\n\n"+date+"\n/v2-bkt"), want: "403 SignatureDoesNotMatch"},
		{log: "malformed", by: raw, call: "GET /v2-bkt", header: []string{"Authorization", "AWS AKA"}, want: "400 InvalidArgument"},
		{log: "presigned", by: raw, call: "GET " + link, want: "200"},
	})
	l.clock.advance(time.Hour)
	l.golden(t, []row{
		{log: "presigned, expired", by: raw, call: "GET " + link, want: "403 AccessDenied"},
		{log: "an hour late", by: raw, call: "GET /v2-bkt", header: header("secret-of-A", "GET\n\n\n"+date+"\n/v2-bkt"), want: "403 RequestTimeTooSkewed"},
	})
}

// Over TLS the clients send unsigned chunks with a trailing checksum, which they never do in the clear.
func TestTrailersOverTLS(t *testing.T) {
	l := newLab(t)
	var mu sync.Mutex
	payloads := make(map[string]bool)
	handler := l.store.Handler("rma")
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		payloads[r.Header.Get("X-Amz-Content-Sha256")] = true
		mu.Unlock()
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	l.urls["rma"] = server.URL
	ctx := t.Context()
	c := s3.New(s3.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(server.URL), UsePathStyle: true, HTTPClient: server.Client(),
		Credentials: awscredentials.NewStaticCredentialsProvider("AKA", "secret-of-A", ""),
	})
	_, err := c.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: aws.String("tls-bkt")})
	noError(t, err)
	_, err = c.PutObject(ctx, &s3.PutObjectInput{Bucket: aws.String("tls-bkt"), Key: aws.String("k"), Body: strings.NewReader("hello")})
	noError(t, err)
	if got := awsRead(t, c, &s3.GetObjectInput{Bucket: aws.String("tls-bkt"), Key: aws.String("k")}); got != "hello" {
		t.Errorf("read %q", got)
	}
	mc, err := minio.New(strings.TrimPrefix(server.URL, "https://"), &minio.Options{
		Creds: credentials.NewStaticV4("AKA", "secret-of-A", ""), Secure: true, Transport: server.Client().Transport, TrailingHeaders: true,
	})
	noError(t, err)
	_, err = mc.PutObject(ctx, "tls-bkt", "m", strings.NewReader("hello"), 5, minio.PutObjectOptions{Checksum: minio.ChecksumCRC32C})
	noError(t, err)
	if got := minioRead(t, mc, "tls-bkt", "m", minio.GetObjectOptions{}); got != "hello" {
		t.Errorf("read %q", got)
	}
	mu.Lock()
	defer mu.Unlock()
	if !payloads[streamingUnsignedTrailer] {
		t.Errorf("payloads seen: %v", payloads)
	}
}
