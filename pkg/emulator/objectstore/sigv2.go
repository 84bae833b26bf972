package objectstore

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
)

// claimV2 is a signature of version 2, which the gateway still takes and some backup tools still send.
type claimV2 struct {
	accessKeyID string
	signature   string
	expires     int64 // Unix seconds; 0 unless presigned
}

func parseAuthorizationV2(header string) (claimV2, *apiError) {
	rest, _ := strings.CutPrefix(header, "AWS ")
	id, signature, found := strings.Cut(strings.TrimSpace(rest), ":")
	if !found || id == "" || signature == "" {
		return claimV2{}, errInvalidArgument("")
	}
	return claimV2{accessKeyID: id, signature: signature}, nil
}

func parsePresignedV2(query url.Values) (claimV2, *apiError) {
	expires, err := strconv.ParseInt(query.Get("Expires"), 10, 64)
	if err != nil || expires <= 0 {
		return claimV2{}, errAccessDenied()
	}
	return claimV2{accessKeyID: query.Get("AWSAccessKeyId"), signature: query.Get("Signature"), expires: expires}, nil
}

func (c *claimV2) checkTime(r *http.Request, now time.Time) *apiError {
	if c.expires != 0 {
		if now.Unix() > c.expires {
			return errAccessDenied()
		}
		return nil
	}
	date := r.Header.Get("X-Amz-Date")
	if date == "" {
		date = r.Header.Get("Date")
	}
	signed, err := http.ParseTime(date)
	if err != nil {
		if signed, err = time.Parse(time.RFC1123Z, date); err != nil {
			return errAccessDenied()
		}
	}
	if now.Sub(signed).Abs() > maxClockSkew {
		return failure(http.StatusForbidden, "RequestTimeTooSkewed", "")
	}
	return nil
}

func (c *claimV2) verify(r *http.Request, t target, query url.Values, secret string) *apiError {
	mac := hmac.New(sha1.New, []byte(secret))
	mac.Write([]byte(c.stringToSign(r, t, query)))
	want := base64.StdEncoding.EncodeToString(mac.Sum(nil))
	if !hmac.Equal([]byte(want), []byte(c.signature)) {
		return errSignature()
	}
	return nil
}

func (c *claimV2) stringToSign(r *http.Request, t target, query url.Values) string {
	date := r.Header.Get("Date")
	if r.Header.Get("X-Amz-Date") != "" {
		date = ""
	}
	if c.expires != 0 {
		date = strconv.FormatInt(c.expires, 10)
	}
	var b strings.Builder
	b.WriteString(strings.Join([]string{r.Method, r.Header.Get("Content-MD5"), r.Header.Get("Content-Type"), date}, "\n") + "\n")

	var names []string
	for name := range r.Header {
		if lower := strings.ToLower(name); strings.HasPrefix(lower, "x-amz-") {
			names = append(names, lower)
		}
	}
	sort.Strings(names)
	for _, name := range names {
		b.WriteString(name + ":" + canonicalHeader(r, name) + "\n")
	}

	if t.virtualHosted {
		b.WriteString("/" + t.bucket)
	}
	b.WriteString(r.URL.EscapedPath())
	separator := "?"
	for _, name := range sortedKeys(query) {
		if !signedSubresource(name) {
			continue
		}
		b.WriteString(separator + name)
		if value := query.Get(name); value != "" {
			b.WriteString("=" + value)
		}
		separator = "&"
	}
	return b.String()
}

// signedSubresource tells whether a query parameter is part of the resource that version 2 signs.
func signedSubresource(name string) bool {
	return strings.HasPrefix(name, "response-") || slices.Contains([]string{
		"acl", "cors", "delete", "encryption", "legal-hold", "lifecycle", "location", "logging", "notification",
		"object-lock", "partNumber", "policy", "policyStatus", "publicAccessBlock", "requestPayment", "retention",
		"tagging", "torrent", "uploadId", "uploads", "versionId", "versioning", "versions", "website",
	}, name)
}

func sortedKeys(m map[string][]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
