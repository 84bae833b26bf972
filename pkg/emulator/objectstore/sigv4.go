package objectstore

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"sort"
	"strconv"
	"strings"
	"time"
)

const (
	algorithmV4     = "AWS4-HMAC-SHA256"
	amzDateLayout   = "20060102T150405Z"
	unsignedPayload = "UNSIGNED-PAYLOAD"

	// maxClockSkew is how far the date of a signature may be from the store's clock.
	maxClockSkew = 15 * time.Minute
	// maxPresignLife is the longest validity of a presigned URL.
	maxPresignLife = 7 * 24 * time.Hour
)

// claim is what a request says about its own signature.
type claim struct {
	accessKeyID   string
	scope         string // date/region/service/aws4_request
	signedHeaders []string
	signature     string
	amzDate       string
	presigned     bool
	expires       time.Duration
}

// parseAuthorization reads an Authorization header of signature version 4. The region in the scope may
// be any string.
func parseAuthorization(header string) (claim, *apiError) {
	var c claim
	rest, ok := strings.CutPrefix(header, algorithmV4)
	if !ok || rest == "" || (rest[0] != ' ' && rest[0] != '\t') {
		return c, errInvalidArgument("")
	}
	for field := range strings.SplitSeq(rest, ",") {
		name, value, found := strings.Cut(strings.TrimSpace(field), "=")
		if !found {
			return c, errInvalidArgument("")
		}
		switch name {
		case "Credential":
			if err := c.setCredential(value); err != nil {
				return c, err
			}
		case "SignedHeaders":
			c.setSignedHeaders(value)
		case "Signature":
			c.signature = value
		}
	}
	if c.accessKeyID == "" || len(c.signedHeaders) == 0 || c.signature == "" {
		return c, errInvalidArgument("")
	}
	return c, nil
}

// parsePresigned reads the query parameters of a presigned URL.
func parsePresigned(query url.Values) (claim, *apiError) {
	c := claim{presigned: true, amzDate: query.Get("X-Amz-Date"), signature: query.Get("X-Amz-Signature")}
	if query.Get("X-Amz-Algorithm") != algorithmV4 {
		return c, errInvalidArgument("")
	}
	if err := c.setCredential(query.Get("X-Amz-Credential")); err != nil {
		return c, err
	}
	c.setSignedHeaders(query.Get("X-Amz-SignedHeaders"))
	if len(c.signedHeaders) == 0 || c.signature == "" {
		return c, errInvalidArgument("")
	}
	seconds, err := strconv.ParseInt(query.Get("X-Amz-Expires"), 10, 64)
	if err != nil || seconds <= 0 || seconds > int64(maxPresignLife/time.Second) {
		return c, errAccessDenied()
	}
	c.expires = time.Duration(seconds) * time.Second
	return c, nil
}

// setCredential splits <access key>/<date>/<region>/<service>/aws4_request. An access key may hold slashes.
func (c *claim) setCredential(value string) *apiError {
	parts := strings.Split(value, "/")
	n := len(parts)
	if n < 5 || parts[n-1] != "aws4_request" {
		return errInvalidArgument("")
	}
	c.accessKeyID = strings.Join(parts[:n-4], "/")
	c.scope = strings.Join(parts[n-4:], "/")
	if c.accessKeyID == "" {
		return errInvalidArgument("")
	}
	return nil
}

func (c *claim) setSignedHeaders(value string) {
	for name := range strings.SplitSeq(value, ";") {
		if name != "" {
			c.signedHeaders = append(c.signedHeaders, strings.ToLower(name))
		}
	}
}

// checkTime refuses signatures of another time.
func (c *claim) checkTime(now time.Time) *apiError {
	signed, err := time.Parse(amzDateLayout, c.amzDate)
	if err != nil {
		return errAccessDenied()
	}
	tooOld := now.Sub(signed) > maxClockSkew
	if c.presigned {
		tooOld = false
		if now.After(signed.Add(c.expires)) {
			return errAccessDenied()
		}
	}
	if tooOld || signed.Sub(now) > maxClockSkew {
		return failure(http.StatusForbidden, "RequestTimeTooSkewed", "")
	}
	return nil
}

// signingKey derives the key for the claim's scope.
func (c *claim) signingKey(secret string) []byte {
	key := []byte("AWS4" + secret)
	for part := range strings.SplitSeq(c.scope, "/") {
		key = hmacSHA256(key, part)
	}
	return key
}

// verify compares the signature with the one that the secret gives for this request.
func (c *claim) verify(r *http.Request, query url.Values, payloadHash, secret string) *apiError {
	canonical := canonicalRequest(r, query, c.signedHeaders, payloadHash)
	digest := sha256.Sum256([]byte(canonical))
	toSign := strings.Join([]string{algorithmV4, c.amzDate, c.scope, hex.EncodeToString(digest[:])}, "\n")
	want := hex.EncodeToString(hmacSHA256(c.signingKey(secret), toSign))
	if !hmac.Equal([]byte(want), []byte(c.signature)) {
		return errSignature()
	}
	return nil
}

func canonicalRequest(r *http.Request, query url.Values, signedHeaders []string, payloadHash string) string {
	var b strings.Builder
	b.WriteString(r.Method + "\n")
	// Clients differ in what they leave unescaped on the wire, not in what they sign.
	path := uriEncode(r.URL.Path, true)
	if path == "" {
		path = "/"
	}
	b.WriteString(path + "\n" + canonicalQuery(query) + "\n")
	for _, name := range signedHeaders {
		b.WriteString(name + ":" + canonicalHeader(r, name) + "\n")
	}
	b.WriteString("\n" + strings.Join(signedHeaders, ";") + "\n" + payloadHash)
	return b.String()
}

func canonicalQuery(query url.Values) string {
	pairs := make([]string, 0, len(query))
	for name, values := range query {
		if name == "X-Amz-Signature" {
			continue
		}
		for _, value := range values {
			pairs = append(pairs, uriEncode(name, false)+"="+uriEncode(value, false))
		}
	}
	sort.Strings(pairs)
	return strings.Join(pairs, "&")
}

// canonicalHeader returns a header's value as it is signed. net/http keeps some headers outside the map.
func canonicalHeader(r *http.Request, name string) string {
	switch name {
	case "host":
		return r.Host
	case "content-length":
		return strconv.FormatInt(max(r.ContentLength, 0), 10)
	case "transfer-encoding":
		return strings.Join(r.TransferEncoding, ",")
	}
	values := r.Header.Values(name)
	folded := make([]string, len(values))
	for i, v := range values {
		folded[i] = strings.Join(strings.Fields(v), " ")
	}
	return strings.Join(folded, ",")
}

// uriEncode escapes everything but the unreserved characters, and slashes if they are to be kept.
func uriEncode(s string, keepSlash bool) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	b.Grow(len(s))
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9',
			c == '-', c == '_', c == '.', c == '~', c == '/' && keepSlash:
			b.WriteByte(c)
		default:
			b.WriteByte('%')
			b.WriteByte(digits[c>>4])
			b.WriteByte(digits[c&15])
		}
	}
	return b.String()
}

func hmacSHA256(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}
