package objectstore

import (
	"encoding/xml"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// endpoint serves one region.
type endpoint struct {
	store  *Store
	region *Region
}

// request is one S3 request on its way through the store.
type request struct {
	store     *Store
	region    *Region
	http      *http.Request
	operation string
	target    target
	query     url.Values
	caller    caller
	now       time.Time
	body      []byte
	bodyErr   *apiError
	bucket    *bucket
	// users are the known users among those that the request names; nil if users are not known at all.
	users map[string]Identity
	// context holds the condition keys for the bucket policy.
	context map[string][]string
}

// reply is a successful answer.
type reply struct {
	status int
	header http.Header
	body   []byte
	// length is announced to HEAD requests, whose answers carry no body.
	length int
}

// ServeHTTP answers one request. The order of the checks is the gateway's: signature, bucket, region,
// permission, then the arguments.
func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	continueEmpty(w, r)
	id := e.store.traits.label(e, w.Header())
	t := e.store.target(r)
	res, err := e.serve(r, t)
	if err != nil {
		drain(r)
		e.writeError(w, r, t, id, err)
		return
	}
	for name, values := range res.header {
		w.Header()[name] = values
	}
	if r.Method == http.MethodHead && res.length > 0 {
		w.Header().Set("Content-Length", strconv.Itoa(res.length))
	}
	w.WriteHeader(res.status)
	if r.Method != http.MethodHead {
		// A client that hung up has no use for the error.
		_, _ = w.Write(res.body)
	}
}

// continueEmpty sends the 100 Continue of a request with an empty body, which net/http leaves out and
// the gateway does not. Without it botocore takes the next answer on the connection for a broken one and
// waits for the end of its body.
func continueEmpty(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength == 0 && strings.EqualFold(r.Header.Get("Expect"), "100-continue") {
		w.WriteHeader(http.StatusContinue)
	}
}

func (e *endpoint) serve(r *http.Request, t target) (*reply, *apiError) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, errInvalidArgument("")
	}
	operation := operationName(r.Method, t, query, r.Header.Get("X-Amz-Copy-Source") != "")
	if operation == "" {
		return nil, errMethodNotAllowed()
	}
	if refused := e.store.traits.refuse(r, query, operation); refused != nil {
		return nil, refused
	}
	a, failed := e.store.authenticate(r, e.region.Name, t, query)
	if failed != nil {
		return nil, failed
	}
	q := &request{
		store: e.store, region: e.region, http: r, operation: operation, target: t, query: query,
		caller: a.caller, now: e.store.now().UTC(), context: baseContext(r, a.caller, e.store.now()),
	}
	// Reading comes before the lock, so that a slow client holds up nobody; a bad body is
	// reported only to those who may send one.
	q.body, q.bodyErr = readBody(r, a, operation, e.store.traits)
	q.resolveUsers()

	e.store.mu.Lock()
	defer e.store.mu.Unlock()
	if failed := q.findBucket(); failed != nil {
		return nil, failed
	}
	return q.dispatch()
}

// findBucket resolves the bucket of every request but CreateBucket and ListBuckets.
func (q *request) findBucket() *apiError {
	if q.target.bucket == "" || q.operation == "CreateBucket" {
		return nil
	}
	if n := len(q.target.bucket); n < 3 || n > 255 {
		return errInvalidBucketName()
	}
	b := q.store.buckets[q.target.bucket]
	if b == nil {
		return errNoSuchBucket()
	}
	if b.region != q.region.Name && q.operation != "GetBucketLocation" {
		return errRedirect(q.store.regionNamed(b.region), q.http)
	}
	if life := q.store.traits.uploadLife; life > 0 {
		maps.DeleteFunc(b.uploads, func(_ string, u *upload) bool { return q.now.Sub(u.initiated) > life })
	}
	q.bucket = b
	return nil
}

func (e *endpoint) writeError(w http.ResponseWriter, r *http.Request, t target, id string, err *apiError) {
	for name, values := range err.header {
		w.Header()[name] = values
	}
	if err.status != http.StatusMovedPermanently || !e.store.traits.bareRedirects {
		w.Header().Set("Accept-Ranges", "bytes")
	}
	if err.bare || err.status == http.StatusNotModified {
		w.WriteHeader(err.status)
		return
	}
	w.Header().Set("Content-Type", "application/xml")
	shown := *err
	if shown.message == "" {
		shown.message = e.store.traits.message(err.code)
	}
	body := shown.body(e.store.traits.details(e, r, t, id))
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(err.status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body)
	}
}

func empty(status int) *reply {
	return &reply{status: status}
}

// document answers with an XML document.
func document(v any) (*reply, *apiError) {
	text, err := xml.Marshal(v)
	if err != nil {
		return nil, failure(http.StatusInternalServerError, "InternalError", "")
	}
	return xmlText(append([]byte(xml.Header), text...)), nil
}

func xmlText(text []byte) *reply {
	return &reply{
		status: http.StatusOK,
		header: http.Header{"Content-Type": {"application/xml"}, "Content-Length": {strconv.Itoa(len(text))}},
		body:   text,
	}
}

// parseDocument reads an XML document into v, whose XMLName says what the root must be.
func parseDocument(text []byte, v any) *apiError {
	if err := xml.Unmarshal(text, v); err != nil {
		return errMalformedXML()
	}
	return nil
}

// arn is the policy resource of the request's bucket, or of a key in it.
func (b *bucket) arn(key string) string {
	if key == "" {
		return "arn:aws:s3:::" + b.name
	}
	return "arn:aws:s3:::" + b.name + "/" + key
}

// baseContext holds the condition keys that every request has.
func baseContext(r *http.Request, who caller, now time.Time) map[string][]string {
	c := map[string][]string{
		"aws:CurrentTime": {now.UTC().Format(time.RFC3339)},
		"aws:EpochTime":   {strconv.FormatInt(now.Unix(), 10)},
	}
	if host, _, ok := cutLast(r.RemoteAddr, ":"); ok {
		c["aws:SourceIp"] = []string{strings.Trim(host, "[]")}
	}
	if ua := r.UserAgent(); ua != "" {
		c["aws:UserAgent"] = []string{ua}
	}
	if referer := r.Referer(); referer != "" {
		c["aws:Referer"] = []string{referer}
	}
	if r.TLS != nil {
		// The gateway sets this key only when it is true.
		c["aws:SecureTransport"] = []string{"true"}
	}
	if !who.anonymous {
		c["aws:username"] = []string{who.username()}
	}
	return c
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}
