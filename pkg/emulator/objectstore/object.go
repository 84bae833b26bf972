package objectstore

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	maxKeyLength       = 1024
	defaultContentType = "binary/octet-stream"
	metaPrefix         = "X-Amz-Meta-"
)

// entityHeaders are the headers that are stored with an object and given back with it.
func entityHeaders() []string {
	return []string{"Content-Type", "Cache-Control", "Content-Disposition", "Content-Encoding", "Content-Language", "Expires"}
}

// storedHeader collects what a request says about the object it writes. The encoding of the transfer
// (aws-chunked) is none of the object's.
func storedHeader(in http.Header) http.Header {
	out := make(http.Header)
	for _, name := range entityHeaders() {
		value := in.Get(name)
		if name == "Content-Encoding" {
			value = withoutChunked(strings.Join(in.Values(name), ","))
		}
		if value != "" {
			out.Set(name, value)
		}
	}
	for name, values := range in {
		if strings.HasPrefix(name, metaPrefix) {
			out[name] = []string{strings.Join(values, ",")}
		}
	}
	if out.Get("Content-Type") == "" {
		out.Set("Content-Type", defaultContentType)
	}
	return out
}

func withoutChunked(encoding string) string {
	var kept []string
	for word := range strings.SplitSeq(encoding, ",") {
		if word = strings.TrimSpace(word); word != "" && !strings.EqualFold(word, "aws-chunked") {
			kept = append(kept, word)
		}
	}
	return strings.Join(kept, ",")
}

// authoriseWrite authorises writing data to the request's key. withACL tells that conditions on the
// requested ACL apply, as they do to PutObject and to no other way of writing.
func (q *request) authoriseWrite(withACL bool) *apiError {
	if withACL {
		if q.blocksACL() {
			return errAccessDenied()
		}
		q.addACLContext()
	}
	if header := q.http.Header.Get("X-Amz-Tagging"); header != "" {
		if tags, err := url.ParseQuery(header); err == nil {
			for key := range tags {
				q.context["s3:RequestObjectTag/"+key] = []string{tags.Get(key)}
			}
		}
	}
	return q.allowKey("s3:PutObject")
}

// pending is what is known of an object before its data: from the headers of PutObject, CopyObject
// and CreateMultipartUpload.
type pending struct {
	acl       acl
	header    http.Header
	tags      []tag
	retention retention
	legalHold bool
}

func (q *request) pendingObject() (pending, *apiError) {
	t := q.store.traits
	if len(q.target.key) > maxKeyLength || !utf8.ValidString(q.target.key) {
		return pending{}, failure(http.StatusBadRequest, t.keyTooLong, "")
	}
	if class := q.http.Header.Get("X-Amz-Storage-Class"); class != "" && !slices.Contains(t.storageClasses, class) {
		return pending{}, failure(http.StatusBadRequest, "InvalidStorageClass", "")
	}
	p := pending{header: storedHeader(q.http.Header)}
	err := t.checkObject(q.http.Header, p.header)
	if err != nil {
		return p, err
	}
	if p.acl, err = q.aclFromHeaders(q.owner(), q.bucket.owner); err != nil {
		return p, err
	}
	if p.tags, err = tagsFromHeader(q.http.Header.Get("X-Amz-Tagging")); err != nil {
		return p, err
	}
	p.retention, p.legalHold, err = q.lockFromHeaders()
	return p, err
}

func (p pending) version(owner Identity, data []byte, etag string, now time.Time) *version {
	return &version{
		modified: now, owner: owner, acl: p.acl, data: data, etag: etag,
		header: p.header, tags: p.tags, retention: p.retention, legalHold: p.legalHold,
	}
}

func (q *request) putObject() (*reply, *apiError) {
	if err := q.authoriseWrite(true); err != nil {
		return nil, err
	}
	if err := q.allowOverwrite(); err != nil {
		return nil, err
	}
	if q.bodyErr != nil {
		return nil, q.bodyErr
	}
	p, err := q.pendingObject()
	if err != nil {
		return nil, err
	}
	if err := q.checkWriteConditions(); err != nil {
		return nil, err
	}
	v := p.version(q.owner(), q.body, md5Hex(q.body), q.now)
	q.bucket.add(q.target.key, v)
	res := empty(http.StatusOK)
	res.header = http.Header{"Etag": {`"` + v.etag + `"`}}
	q.addVersionHeader(res.header, v)
	return res, nil
}

// addVersionHeader names the version that a write made. Only enabled versioning makes one worth naming.
func (q *request) addVersionHeader(h http.Header, v *version) {
	if q.bucket.versioning == versioningEnabled {
		h.Set("X-Amz-Version-Id", v.id)
	}
}

// checkWriteConditions honours If-Match and If-None-Match on a write.
func (q *request) checkWriteConditions() *apiError {
	if !q.store.traits.conditionalWrites {
		return nil
	}
	current := q.bucket.find(q.target.key, "")
	if want := q.http.Header.Get("If-Match"); want != "" && (current == nil || !etagMatches(want, current.etag)) {
		return errPrecondition()
	}
	if want := q.http.Header.Get("If-None-Match"); want != "" && current != nil && etagMatches(want, current.etag) {
		return errPrecondition()
	}
	return nil
}

// etagMatches tells whether a condition header, a list of ETags or "*", covers an ETag.
func etagMatches(header, etag string) bool {
	for want := range strings.SplitSeq(header, ",") {
		want = strings.Trim(strings.TrimPrefix(strings.TrimSpace(want), "W/"), `"`)
		if want == "*" || want == etag {
			return true
		}
	}
	return false
}

// checkReadConditions evaluates the four condition headers, whose names carry a prefix in copies.
func checkReadConditions(h http.Header, prefix string, v *version) *apiError {
	match, noneMatch := h.Get(prefix+"If-Match"), h.Get(prefix+"If-None-Match")
	modified := v.modified.Truncate(time.Second)
	if match != "" && !etagMatches(match, v.etag) {
		return errPrecondition()
	}
	if since, err := http.ParseTime(h.Get(prefix + "If-Unmodified-Since")); err == nil && match == "" && modified.After(since) {
		return errPrecondition()
	}
	since, err := http.ParseTime(h.Get(prefix + "If-Modified-Since"))
	unchanged := err == nil && noneMatch == "" && !modified.After(since)
	if (noneMatch != "" && etagMatches(noneMatch, v.etag)) || unchanged {
		return &apiError{status: http.StatusNotModified, code: "NotModified", header: http.Header{"Etag": {`"` + v.etag + `"`}}}
	}
	return nil
}

func (q *request) getObject(head bool) (*reply, *apiError) {
	action := q.versioned("s3:GetObject", "s3:GetObjectVersion")
	v, err := q.object(action)
	if err != nil {
		if v != nil && action == "s3:GetObject" {
			err = q.explain(err, "missing s3:GetObject permission")
		}
		return nil, err
	}
	if err := checkReadConditions(q.http.Header, "", v); err != nil {
		return nil, err
	}
	h := q.objectHeader(v)
	res := &reply{status: http.StatusOK, header: h, body: v.data}
	start, length, ranged, err := parseRange(q.http.Header.Get("Range"), len(v.data))
	if err != nil {
		return nil, err
	}
	if ranged {
		res.status = http.StatusPartialContent
		res.body = v.data[start : start+length]
		h.Set("Content-Range", "bytes "+strconv.Itoa(start)+"-"+strconv.Itoa(start+length-1)+"/"+strconv.Itoa(len(v.data)))
	}
	h.Set("Content-Length", strconv.Itoa(len(res.body)))
	if head {
		res.length, res.body = len(res.body), nil
	}
	return res, nil
}

func (q *request) objectHeader(v *version) http.Header {
	h := v.header.Clone()
	h.Set("ETag", `"`+v.etag+`"`)
	h.Set("Last-Modified", v.modified.UTC().Format(http.TimeFormat))
	h.Set("Accept-Ranges", "bytes")
	if kind := q.store.traits.objectType; kind != "" {
		h.Set("X-Rgw-Object-Type", kind)
	}
	if q.bucket.versioning != "" {
		h.Set("X-Amz-Version-Id", v.id)
	}
	if n := len(v.tags); n > 0 {
		h.Set("X-Amz-Tagging-Count", strconv.Itoa(n))
	}
	v.addLockHeaders(h)
	if !q.caller.anonymous {
		for _, name := range entityHeaders() {
			if value := q.query.Get("response-" + strings.ToLower(name)); value != "" {
				h.Set(name, value)
			}
		}
	}
	return h
}

// parseRange reads a Range header for a body of the given size. Several ranges, other units and bad
// syntax are ignored, as the gateway does; a range outside the body is an error.
func parseRange(header string, size int) (start, length int, ranged bool, _ *apiError) {
	spec, ok := strings.CutPrefix(header, "bytes=")
	from, to, dash := strings.Cut(strings.TrimSpace(spec), "-")
	first, fromOK := position(from)
	last, toOK := position(to)
	switch {
	case !ok || !dash || !fromOK || !toOK || (from == "" && to == ""):
		return 0, 0, false, nil
	case from == "":
		first, last = max(size-last, 0), size-1
	case to == "":
		last = size - 1
	case last < first:
		return 0, 0, false, nil
	}
	if first >= size {
		return 0, 0, false, errInvalidRange()
	}
	return first, min(last, size-1) - first + 1, true, nil
}

// position reads one end of a range, which may be empty.
func position(text string) (int, bool) {
	if text == "" {
		return 0, true
	}
	n, err := strconv.Atoi(text)
	return n, err == nil && n >= 0 && text[0] != '+'
}

// source finds the object that X-Amz-Copy-Source names, and checks that the caller may read it.
func (q *request) source() (*bucket, *version, *apiError) {
	path, rawQuery, _ := strings.Cut(q.http.Header.Get("X-Amz-Copy-Source"), "?")
	path, err := url.PathUnescape(strings.TrimPrefix(path, "/"))
	if err != nil {
		return nil, nil, errInvalidArgument("")
	}
	query, err := url.ParseQuery(rawQuery)
	if err != nil {
		return nil, nil, errInvalidArgument("")
	}
	name, key, found := strings.Cut(path, "/")
	if !found || name == "" || key == "" {
		return nil, nil, errInvalidArgument("")
	}
	b := q.store.buckets[name]
	if b == nil {
		return nil, nil, errNoSuchBucket()
	}
	id := query.Get("versionId")
	action := "s3:GetObject"
	if id != "" {
		action = "s3:GetObjectVersion"
	}
	v, failed := q.find(b, key, id, action)
	if failed != nil {
		return nil, nil, failed
	}
	mayRead := func() bool {
		return q.store.traits.ownerCopies && q.owns(b) || v.acl.allows(v.owner, q.caller, permRead, b.ignorePublicACLs())
	}
	return b, v, q.allow(b, action, b.arn(key), mayRead)
}

func (q *request) copyObject() (*reply, *apiError) {
	from, v, err := q.source()
	if err != nil {
		return nil, err
	}
	directive := q.http.Header.Get("X-Amz-Metadata-Directive")
	q.context["s3:x-amz-copy-source"] = []string{q.http.Header.Get("X-Amz-Copy-Source")}
	if directive != "" {
		q.context["s3:x-amz-metadata-directive"] = []string{directive}
	}
	if err := q.authoriseWrite(false); err != nil {
		return nil, err
	}
	if err := q.allowOverwrite(); err != nil {
		return nil, err
	}
	p, err := q.pendingObject()
	if err != nil {
		return nil, err
	}
	replace := directive == "REPLACE"
	if !replace {
		p.header = v.header.Clone()
		if from == q.bucket && v == q.bucket.find(q.target.key, "") {
			return nil, errInvalidRequest("This copy request is illegal because it is trying to copy an object to itself " +
				"without changing the object's metadata, storage class, website redirect location or encryption attributes.")
		}
	}
	if q.http.Header.Get("X-Amz-Tagging-Directive") != "REPLACE" {
		p.tags = v.tags
	}
	if err := checkReadConditions(q.http.Header, "X-Amz-Copy-Source-", v); err != nil {
		return nil, errPrecondition()
	}
	if err := q.checkWriteConditions(); err != nil {
		return nil, err
	}
	fresh := p.version(q.owner(), v.data, v.etag, q.now)
	sourceID := v.id
	q.bucket.add(q.target.key, fresh)
	res, err := document(copyResultXML{
		XMLName: xmlName("CopyObjectResult"), NS: xmlns, LastModified: isoTime(q.now), ETag: `"` + fresh.etag + `"`,
	})
	if err != nil {
		return nil, err
	}
	q.addVersionHeader(res.header, fresh)
	if from.versioning != "" {
		res.header.Set("X-Amz-Copy-Source-Version-Id", sourceID)
	}
	return res, nil
}
