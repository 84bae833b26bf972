package objectstore

import (
	"cmp"
	"crypto/md5"
	"encoding/hex"
	"net/http"
	"slices"
	"sort"
	"strconv"
	"strings"
)

const (
	maxPartNumber = 10000
	// minPartSize is the least size of every part but the last.
	minPartSize = 5 << 20
)

func (q *request) createMultipartUpload() (*reply, *apiError) {
	if err := q.authoriseWrite(false); err != nil {
		return nil, err
	}
	p, err := q.pendingObject()
	if err != nil {
		return nil, err
	}
	u := &upload{
		id: q.store.traits.uploadPrefix + randomID(31), key: q.target.key, initiated: q.now, owner: q.owner(),
		pending: p, parts: make(map[int]*part),
	}
	q.bucket.uploads[u.id] = u
	return document(initiateXML{NS: xmlns, Bucket: q.bucket.name, Key: u.key, UploadID: u.id})
}

// upload finds the upload that the request names.
func (q *request) upload() (*upload, *apiError) {
	u := q.bucket.uploads[q.query.Get("uploadId")]
	if u == nil || u.key != q.target.key {
		return nil, errNoSuchUpload()
	}
	return u, nil
}

func (q *request) partNumber() (int, *apiError) {
	n, err := strconv.Atoi(q.query.Get("partNumber"))
	if err != nil || n < 1 || n > maxPartNumber {
		return 0, errInvalidArgument("")
	}
	return n, nil
}

func (q *request) uploadPart() (*reply, *apiError) {
	if err := q.authoriseWrite(true); err != nil {
		return nil, err
	}
	if q.bodyErr != nil {
		return nil, q.bodyErr
	}
	p, err := q.storePart(q.body)
	if err != nil {
		return nil, err
	}
	res := empty(http.StatusOK)
	res.header = http.Header{"Etag": {`"` + p.etag + `"`}}
	return res, nil
}

func (q *request) storePart(data []byte) (*part, *apiError) {
	n, err := q.partNumber()
	if err != nil {
		return nil, err
	}
	u, err := q.upload()
	if err != nil {
		return nil, err
	}
	p := &part{data: data, etag: md5Hex(data), modified: q.now}
	u.parts[n] = p
	return p, nil
}

// uploadPartCopy copies from an object of the caller. The gateway refuses the objects of others here,
// whatever policy or ACL say, although it copies them whole.
func (q *request) uploadPartCopy() (*reply, *apiError) {
	from, v, err := q.source()
	if err != nil {
		return nil, err
	}
	if !q.store.traits.grid && (q.caller.anonymous || v.owner.UID != q.caller.UID) {
		return nil, errAccessDenied()
	}
	if err := q.authoriseWrite(true); err != nil {
		return nil, err
	}
	if err := checkReadConditions(q.http.Header, "X-Amz-Copy-Source-", v); err != nil {
		return nil, errPrecondition()
	}
	data := v.data
	if header := q.http.Header.Get("X-Amz-Copy-Source-Range"); header != "" {
		start, length, ranged, err := parseRange(header, len(data))
		if err != nil {
			return nil, err
		}
		if !ranged {
			return nil, errInvalidArgument("")
		}
		data = data[start : start+length]
	}
	p, err := q.storePart(data)
	if err != nil {
		return nil, err
	}
	res, err := document(copyResultXML{
		XMLName: xmlName("CopyPartResult"), NS: xmlns, LastModified: isoTime(p.modified), ETag: `"` + p.etag + `"`,
	})
	if err == nil && from.versioning != "" {
		res.header.Set("X-Amz-Copy-Source-Version-Id", v.id)
	}
	return res, err
}

func (q *request) completeMultipartUpload() (*reply, *apiError) {
	if err := q.authoriseWrite(false); err != nil {
		return nil, err
	}
	if err := q.allowOverwrite(); err != nil {
		return nil, err
	}
	if q.bodyErr != nil {
		return nil, q.bodyErr
	}
	var in completeXML
	if err := parseDocument(q.body, &in); err != nil {
		return nil, err
	}
	if len(in.Parts) == 0 {
		return nil, errMalformedXML()
	}
	for i := range in.Parts {
		in.Parts[i].ETag = strings.Trim(in.Parts[i].ETag, `"`)
		if i > 0 && in.Parts[i].PartNumber <= in.Parts[i-1].PartNumber {
			return nil, failure(http.StatusBadRequest, "InvalidPartOrder", "")
		}
	}
	etag, err := multipartETag(in.Parts)
	if err != nil {
		return nil, err
	}
	u, err := q.upload()
	if err != nil {
		// The answer to an earlier attempt may have been lost on the way.
		if v := q.bucket.find(q.target.key, ""); v != nil && v.etag == etag {
			return q.completed(v)
		}
		return nil, err
	}
	data, err := u.assemble(in.Parts)
	if err != nil {
		return nil, err
	}
	if err := q.checkWriteConditions(); err != nil {
		return nil, err
	}
	v := u.version(u.owner, data, etag, q.now)
	q.bucket.add(u.key, v)
	delete(q.bucket.uploads, u.id)
	return q.completed(v)
}

func (q *request) completed(v *version) (*reply, *apiError) {
	res, err := document(completeResultXML{
		NS: xmlns, Location: "http://" + q.http.Host + q.http.URL.EscapedPath(),
		Bucket: q.bucket.name, Key: q.target.key, ETag: `"` + v.etag + `"`,
	})
	if err == nil {
		q.addVersionHeader(res.header, v)
	}
	return res, err
}

// multipartETag is the MD5 of the parts' MD5s, with the number of parts.
func multipartETag(parts []completePartXML) (string, *apiError) {
	var sums []byte
	for _, p := range parts {
		sum, err := hex.DecodeString(p.ETag)
		if err != nil || len(sum) != md5.Size {
			return "", failure(http.StatusBadRequest, "InvalidPart", "")
		}
		sums = append(sums, sum...)
	}
	return md5Hex(sums) + "-" + strconv.Itoa(len(parts)), nil
}

// assemble joins the listed parts, which must be there as listed. Parts that are not listed are dropped.
func (u *upload) assemble(parts []completePartXML) ([]byte, *apiError) {
	size := 0
	for i, listed := range parts {
		p := u.parts[listed.PartNumber]
		if p == nil || p.etag != listed.ETag {
			return nil, failure(http.StatusBadRequest, "InvalidPart", "")
		}
		if i < len(parts)-1 && len(p.data) < minPartSize {
			return nil, failure(http.StatusBadRequest, "EntityTooSmall", "")
		}
		size += len(p.data)
	}
	data := make([]byte, 0, size)
	for _, listed := range parts {
		data = append(data, u.parts[listed.PartNumber].data...)
	}
	return data, nil
}

func (q *request) abortMultipartUpload() (*reply, *apiError) {
	if err := q.allowKey("s3:AbortMultipartUpload"); err != nil {
		return nil, err
	}
	u, err := q.upload()
	if err != nil {
		return nil, err
	}
	delete(q.bucket.uploads, u.id)
	return empty(http.StatusNoContent), nil
}

func (q *request) listParts() (*reply, *apiError) {
	u, err := q.upload()
	if err != nil {
		return nil, err
	}
	if err := q.allowObject("s3:ListMultipartUploadParts", u.owner, u.acl); err != nil {
		return nil, err
	}
	limit, err := pageSize(q.query, "max-parts", maxPage)
	if err != nil {
		return nil, err
	}
	marker := 0
	if text := q.query.Get("part-number-marker"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return nil, errInvalidArgument("")
		}
		marker = n
	}
	out := listPartsXML{
		NS: xmlns, Bucket: q.bucket.name, Key: u.key, UploadID: u.id, StorageClass: storageClass,
		PartNumberMarker: marker, MaxParts: limit, Owner: ownerOf(u.owner),
	}
	numbers := make([]int, 0, len(u.parts))
	for n := range u.parts {
		if n > marker {
			numbers = append(numbers, n)
		}
	}
	sort.Ints(numbers)
	if len(numbers) > limit {
		numbers = numbers[:limit]
		out.IsTruncated = limit > 0
	}
	for _, n := range numbers {
		p := u.parts[n]
		out.NextPartNumberMarker = n
		out.Parts = append(out.Parts, partXML{
			PartNumber: n, LastModified: isoTime(p.modified), ETag: `"` + p.etag + `"`, Size: len(p.data),
		})
	}
	return document(out)
}

func (q *request) listMultipartUploads() (*reply, *apiError) {
	if err := q.allowBucket("s3:ListBucketMultipartUploads"); err != nil {
		return nil, err
	}
	l, err := q.parseListing("max-uploads")
	if err != nil {
		return nil, err
	}
	keyMarker, idMarker := q.query.Get("key-marker"), q.query.Get("upload-id-marker")
	out := listUploadsXML{
		NS: xmlns, Bucket: q.bucket.name, Prefix: l.encode(l.prefix), KeyMarker: l.encode(keyMarker), UploadIDMarker: idMarker,
		MaxUploads: l.max, Delimiter: l.encode(l.delimiter), EncodingType: l.encoding,
	}
	uploads := make([]*upload, 0, len(q.bucket.uploads))
	for _, u := range q.bucket.uploads {
		uploads = append(uploads, u)
	}
	slices.SortFunc(uploads, func(a, b *upload) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.id, b.id)) })

	count := 0
	var lastKey, lastID, lastCommon string
	for _, u := range uploads {
		if !strings.HasPrefix(u.key, l.prefix) || u.key < keyMarker || (u.key == keyMarker && u.id <= idMarker) ||
			(u.key == keyMarker && idMarker == "") {
			continue
		}
		common := l.fold(u.key)
		if common != "" && (common <= keyMarker || common == lastCommon) {
			continue
		}
		if count == l.max {
			if l.max > 0 {
				out.IsTruncated, out.NextKeyMarker, out.NextUploadIDMarker = true, l.encode(lastKey), lastID
			}
			break
		}
		count++
		if common != "" {
			lastKey, lastID, lastCommon = common, "", common
			out.CommonPrefixes = append(out.CommonPrefixes, commonPrefixXML{Prefix: l.encode(common)})
			continue
		}
		lastKey, lastID = u.key, u.id
		owner := ownerOf(u.owner)
		out.Uploads = append(out.Uploads, uploadXML{
			Key: l.encode(u.key), UploadID: u.id, Initiator: owner, Owner: owner,
			StorageClass: storageClass, Initiated: isoTime(u.initiated),
		})
	}
	return document(out)
}
