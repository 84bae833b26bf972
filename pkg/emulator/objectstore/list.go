package objectstore

import (
	"encoding/base64"
	"net/url"
	"sort"
	"strconv"
	"strings"
)

// maxPage is the most that one page of a listing holds, but for the longPage of a release.
const maxPage = 1000

// listing holds the parameters that all listings of keys share.
type listing struct {
	prefix    string
	delimiter string
	max       int
	encoding  string
	kind      string // type of the objects listed
}

// parseListing reads the shared parameters; maxParameter names the one that limits the page.
func (q *request) parseListing(maxParameter string) (listing, *apiError) {
	l := listing{
		prefix: q.query.Get("prefix"), delimiter: q.query.Get("delimiter"), encoding: q.query.Get("encoding-type"),
		kind: q.store.traits.objectType,
	}
	if l.encoding != "" && l.encoding != "url" {
		return l, errInvalidArgument("")
	}
	n, err := pageSize(q.query, maxParameter, q.longestPage())
	l.max = n
	return l, err
}

// longestPage is the most that one page of the listing may hold.
func (q *request) longestPage() int {
	if q.operation == "ListObjectsV2" {
		return max(maxPage, q.store.traits.longPage)
	}
	return maxPage
}

// pageSize reads how much one page may hold; limit is the most.
func pageSize(query url.Values, parameter string, limit int) (int, *apiError) {
	text := query.Get(parameter)
	if text == "" {
		return maxPage, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, errInvalidArgument("")
	}
	return min(n, limit), nil
}

// encode renders a key as the client asked for it.
func (l listing) encode(key string) string {
	if l.encoding == "url" {
		return uriEncode(key, true)
	}
	return key
}

// fold returns the common prefix that a key is listed under, or "" if it is listed itself.
func (l listing) fold(key string) string {
	if l.delimiter == "" {
		return ""
	}
	rest := key[len(l.prefix):]
	if i := strings.Index(rest, l.delimiter); i >= 0 {
		return key[:len(l.prefix)+i+len(l.delimiter)]
	}
	return ""
}

// walk goes through the sorted keys that start with the prefix, from the first one that is at or after
// start. For every run of keys with one common prefix it calls visit once, with that prefix. visit
// returns false to stop.
func (l listing) walk(keys []string, start string, visit func(key, common string) bool) {
	i := sort.SearchStrings(keys, max(start, l.prefix))
	for i < len(keys) && strings.HasPrefix(keys[i], l.prefix) {
		key := keys[i]
		common := l.fold(key)
		if !visit(key, common) {
			return
		}
		i++
		if common != "" {
			i += sort.Search(len(keys)-i, func(n int) bool { return !strings.HasPrefix(keys[i+n], common) })
		}
	}
}

// page is one page of current objects.
type page struct {
	contents []objectXML
	prefixes []commonPrefixXML
	next     string // marker for the next page; "" if this is the last
}

// listPage lists the current objects after a marker. A common prefix counts as one entry, and is not
// repeated when the marker is within it.
func (q *request) listPage(l listing, marker string, withOwner bool) page {
	var p page
	last := ""
	count := 0
	l.walk(q.bucket.keys, marker, func(key, common string) bool {
		if key <= marker && common == "" {
			return true
		}
		if common != "" && (common <= marker || !q.anyCurrent(common)) {
			return true
		}
		v := q.bucket.find(key, "")
		if common == "" && v == nil {
			return true
		}
		if count == l.max {
			p.next = last
			return false
		}
		count++
		if common != "" {
			last = common
			p.prefixes = append(p.prefixes, commonPrefixXML{Prefix: l.encode(common)})
			return true
		}
		last = key
		p.contents = append(p.contents, l.entry(key, v, withOwner))
		return true
	})
	return p
}

// anyCurrent tells whether some key with the prefix has a current object: keys that hold only old
// versions under a delete marker show no common prefix.
func (q *request) anyCurrent(prefix string) bool {
	for i := sort.SearchStrings(q.bucket.keys, prefix); i < len(q.bucket.keys); i++ {
		key := q.bucket.keys[i]
		if !strings.HasPrefix(key, prefix) {
			return false
		}
		if q.bucket.find(key, "") != nil {
			return true
		}
	}
	return false
}

func (l listing) entry(key string, v *version, withOwner bool) objectXML {
	o := objectXML{
		Key: l.encode(key), LastModified: isoTime(v.modified), ETag: `"` + v.etag + `"`,
		Size: len(v.data), StorageClass: storageClass, Type: l.kind,
	}
	if withOwner {
		owner := ownerOf(v.owner)
		o.Owner = &owner
	}
	return o
}

// allowListing authorises a listing, with the condition keys that listings have.
func (q *request) allowListing(action string, l listing) *apiError {
	if l.prefix != "" {
		q.context["s3:prefix"] = []string{l.prefix}
	}
	if l.delimiter != "" {
		q.context["s3:delimiter"] = []string{l.delimiter}
	}
	q.context["s3:max-keys"] = []string{strconv.Itoa(l.max)}
	return q.allowBucket(action)
}

func (q *request) listObjects() (*reply, *apiError) {
	l, err := q.parseListing("max-keys")
	if err != nil {
		return nil, err
	}
	if err := q.allowListing("s3:ListBucket", l); err != nil {
		return nil, err
	}
	marker := q.query.Get("marker")
	p := q.listPage(l, marker, true)
	encoded := l.encode(marker)
	out := q.listResult(l, p)
	out.Marker = &encoded
	out.NextMarker = l.encode(p.next)
	return document(out)
}

func (q *request) listObjectsV2() (*reply, *apiError) {
	l, err := q.parseListing("max-keys")
	if err != nil {
		return nil, err
	}
	if err := q.allowListing("s3:ListBucket", l); err != nil {
		return nil, err
	}
	startAfter, token := q.query.Get("start-after"), q.query.Get("continuation-token")
	marker := startAfter
	if token != "" {
		decoded, err := base64.RawURLEncoding.DecodeString(token)
		if err != nil {
			return nil, errInvalidArgument("")
		}
		marker = string(decoded)
	}
	p := q.listPage(l, marker, q.query.Get("fetch-owner") == "true")
	out := q.listResult(l, p)
	count := len(p.contents) + len(p.prefixes)
	out.KeyCount = &count
	out.StartAfter = l.encode(startAfter)
	out.ContinuationToken = token
	if p.next != "" {
		// A key may hold what XML cannot, so the token is not the bare key.
		out.NextContinuationToken = base64.RawURLEncoding.EncodeToString([]byte(p.next))
	}
	return document(out)
}

func (q *request) listResult(l listing, p page) listObjectsXML {
	return listObjectsXML{
		NS: xmlns, Name: q.bucket.name, Prefix: l.encode(l.prefix), MaxKeys: l.max, Delimiter: l.encode(l.delimiter),
		IsTruncated: p.next != "", EncodingType: l.encoding, Contents: p.contents, CommonPrefixes: p.prefixes,
	}
}

// listObjectVersions lists versions and delete markers, newest first within a key.
func (q *request) listObjectVersions() (*reply, *apiError) {
	l, err := q.parseListing("max-keys")
	if err != nil {
		return nil, err
	}
	if err := q.allowListing("s3:ListBucketVersions", l); err != nil {
		return nil, err
	}
	keyMarker, idMarker := q.query.Get("key-marker"), q.query.Get("version-id-marker")
	if idMarker != "" && keyMarker == "" {
		return nil, errInvalidArgument("")
	}
	out := listVersionsXML{
		NS: xmlns, Name: q.bucket.name, Prefix: l.encode(l.prefix), KeyMarker: l.encode(keyMarker), VersionIDMarker: idMarker,
		MaxKeys: l.max, Delimiter: l.encode(l.delimiter), EncodingType: l.encoding,
	}
	count := 0
	var lastKey, lastID string
	// full notes where the page ends, once it holds all it may.
	full := func() bool {
		if count < l.max {
			return false
		}
		if l.max > 0 {
			out.IsTruncated, out.NextKeyMarker, out.NextVersionIDMarker = true, l.encode(lastKey), lastID
		}
		return true
	}
	l.walk(q.bucket.keys, keyMarker, func(key, common string) bool {
		if common != "" {
			if common <= keyMarker {
				return true
			}
			if full() {
				return false
			}
			count++
			lastKey, lastID = common, ""
			out.CommonPrefixes = append(out.CommonPrefixes, commonPrefixXML{Prefix: l.encode(common)})
			return true
		}
		rest := q.bucket.objects[key]
		if key == keyMarker {
			rest = after(rest, idMarker)
		}
		for _, v := range rest {
			if full() {
				return false
			}
			count++
			lastKey, lastID = key, v.id
			out.Versions = append(out.Versions, l.versionEntry(key, v, v == q.bucket.latest(key)))
		}
		return true
	})
	return document(out)
}

// after returns the versions that follow the marker. No marker means that the whole key was listed. If the
// marker's version has been removed since, what is left of the key is listed again rather than lost.
func after(versions []*version, id string) []*version {
	if id == "" {
		return nil
	}
	for i, v := range versions {
		if v.id == id {
			return versions[i+1:]
		}
	}
	return versions
}

func (l listing) versionEntry(key string, v *version, latest bool) versionXML {
	e := versionXML{
		XMLName: xmlName("DeleteMarker"), Key: l.encode(key), VersionID: v.id, IsLatest: latest,
		LastModified: isoTime(v.modified), Owner: ownerOf(v.owner),
	}
	if !v.deleteMarker {
		size := len(v.data)
		e.XMLName = xmlName("Version")
		e.ETag, e.Size, e.StorageClass, e.Type = `"`+v.etag+`"`, &size, storageClass, l.kind
	}
	return e
}
