package objectstore

import "net/http"

// maxDeleteKeys is how many keys one DeleteObjects may name.
const maxDeleteKeys = 1000

// deletion tells what deleting a key did.
type deletion struct {
	versionID string // the version that was removed, or the delete marker that was made
	marker    bool   // a delete marker was made or removed
}

// deleteKey deletes a key or a version of it. Deleting what is not there succeeds. Without a version
// ID a versioned bucket gets a delete marker, which no lock forbids.
func (q *request) deleteKey(key, versionID string, bypass bool) (deletion, *apiError) {
	b := q.bucket
	if versionID == "" && b.versioning != "" {
		marker := &version{deleteMarker: true, modified: q.now, owner: q.owner()}
		b.add(key, marker)
		return deletion{versionID: marker.id, marker: true}, nil
	}
	id := versionID
	if id == "" {
		id = nullVersion
	}
	for _, v := range b.objects[key] {
		if v.id != id {
			continue
		}
		if err := v.checkLock(q.now, bypass); err != nil {
			return deletion{}, err
		}
		b.remove(key, id)
		return deletion{versionID: versionID, marker: v.deleteMarker}, nil
	}
	return deletion{versionID: versionID}, nil
}

func (q *request) deleteObject() (*reply, *apiError) {
	if err := q.allowKey(q.versioned("s3:DeleteObject", "s3:DeleteObjectVersion")); err != nil {
		return nil, err
	}
	d, err := q.deleteKey(q.target.key, q.query.Get("versionId"), q.bypass(q.bucket.arn(q.target.key)))
	if err != nil {
		return nil, err
	}
	res := empty(http.StatusNoContent)
	res.header = make(http.Header)
	if d.versionID != "" {
		res.header.Set("X-Amz-Version-Id", d.versionID)
	}
	if d.marker {
		res.header.Set("X-Amz-Delete-Marker", "true")
	}
	return res, nil
}

// deleteObjects deletes up to 1000 keys. The caller is authorised for each key; where that is not enough it
// needs DeleteObject on the bucket itself as well, or the whole call is refused.
func (q *request) deleteObjects() (*reply, *apiError) {
	grid, byKey := q.store.traits.grid, q.store.traits.deletesByKey
	aclAllows := byKey && q.bucketACLAllows(permWrite)
	if !byKey {
		err := q.allow(q.bucket, "s3:DeleteObject", q.bucket.arn(""), func() bool {
			aclAllows = q.bucketACLAllows(permWrite)
			return aclAllows
		})
		if err != nil {
			return nil, err
		}
	}
	if q.bodyErr != nil {
		return nil, q.bodyErr
	}
	var in deleteXML
	err := parseDocument(q.body, &in)
	if n := len(in.Objects); err != nil || n > maxDeleteKeys || n == 0 && q.store.traits.wantsKeys {
		if grid {
			return nil, errMalformedXML()
		}
		// The gateway sends the bare status here.
		return nil, &apiError{status: http.StatusBadRequest, code: "BadRequest", bare: true}
	}
	bypass := q.bypass(q.bucket.arn(""))
	out := deleteResultXML{NS: xmlns}
	for _, o := range in.Objects {
		d, err := q.deleteListed(o, aclAllows, bypass)
		if err != nil {
			// The gateway's message repeats the code, even where the single call has a better one.
			message := err.code
			if grid {
				message = q.store.traits.message(err.code)
			}
			out.Errors = append(out.Errors, deleteErrorXML{Key: o.Key, VersionID: o.VersionID, Code: err.code, Message: message})
			continue
		}
		if in.Quiet {
			continue
		}
		done := deletedXML{Key: o.Key, VersionID: o.VersionID, DeleteMarker: d.marker}
		if d.marker {
			done.DeleteMarkerVersionID = d.versionID
		}
		out.Deleted = append(out.Deleted, done)
	}
	return document(out)
}

func (q *request) deleteListed(o deleteObjectXML, aclAllows, bypass bool) (deletion, *apiError) {
	if o.Key == "" {
		return deletion{}, failure(http.StatusBadRequest, "InvalidObjectName", "")
	}
	action := "s3:DeleteObject"
	if o.VersionID != "" {
		action = "s3:DeleteObjectVersion"
	}
	if err := q.allow(q.bucket, action, q.bucket.arn(o.Key), func() bool { return aclAllows }); err != nil {
		return deletion{}, err
	}
	return q.deleteKey(o.Key, o.VersionID, bypass)
}
