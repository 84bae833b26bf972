package objectstore

import (
	"cmp"
	"encoding/xml"
	"errors"
	"net/http"
	"unicode/utf8"

	"github.com/zuber-storage/zuber/pkg/emulator/policy"
)

const (
	versioningEnabled   = "Enabled"
	versioningSuspended = "Suspended"

	maxBucketTags = 50
	maxObjectTags = 10
	maxTagKey     = 128
	maxTagValue   = 256
)

// policyError turns a refusal of the policy parser into an answer.
func policyError(err error) *apiError {
	var refused *policy.ParseError
	if errors.As(err, &refused) {
		return failure(refused.Status, refused.Code, refused.Message)
	}
	return failure(http.StatusInternalServerError, "InternalError", "")
}

// configKind describes a bucket subresource that is stored and returned without being acted upon.
type configKind struct {
	word      string // query word, and key in bucket.config
	root      string // name of the document's root element
	get, put  string // policy actions
	remove    string // policy action for deleting, if that is not put
	missing   *apiError
	emptyText string // answer while nothing is stored, where that is no error
	// check judges a document to be stored; nil takes every one with the right root.
	check func(text []byte) *apiError
}

func notConfigured(code, message string) *apiError {
	return failure(http.StatusNotFound, code, message)
}

func corsKind() configKind {
	return configKind{word: "cors", root: "CORSConfiguration", get: "s3:GetBucketCORS", put: "s3:PutBucketCORS",
		missing: notConfigured("NoSuchCORSConfiguration", "")}
}

func taggingKind() configKind {
	return configKind{word: "tagging", root: "Tagging", get: "s3:GetBucketTagging", put: "s3:PutBucketTagging",
		missing: notConfigured("NoSuchTagSet", ""), check: func(text []byte) *apiError {
			_, err := parseTagging(text, maxBucketTags)
			return err
		}}
}

func notificationKind() configKind {
	return configKind{word: "notification", root: "NotificationConfiguration", get: "s3:GetBucketNotification",
		put: "s3:PutBucketNotification", emptyText: blankDocument("NotificationConfiguration")}
}

func blankDocument(root string) string {
	return xml.Header + "<" + root + ` xmlns="` + xmlns + `"></` + root + ">"
}

func rgwKinds() []configKind {
	return []configKind{
		corsKind(), taggingKind(), notificationKind(),
		{word: "lifecycle", root: "LifecycleConfiguration", get: "s3:GetLifecycleConfiguration",
			put: "s3:PutLifecycleConfiguration", missing: notConfigured("NoSuchLifecycleConfiguration", "")},
		{word: "encryption", root: "ServerSideEncryptionConfiguration", get: "s3:GetBucketEncryption",
			put: "s3:PutBucketEncryption", missing: notConfigured("ServerSideEncryptionConfigurationNotFoundError",
				"The server side encryption configuration was not found")},
		{word: "ownershipControls", root: "OwnershipControls", get: "s3:GetBucketOwnershipControls",
			put: "s3:PutBucketOwnershipControls", emptyText: blankDocument("OwnershipControls")},
		{word: "logging", root: "BucketLoggingStatus", get: "s3:GetBucketLogging",
			put: "s3:PutBucketLogging", emptyText: blankDocument("BucketLoggingStatus")},
		{word: "replication", root: "ReplicationConfiguration", get: "s3:GetReplicationConfiguration",
			put: "s3:PutReplicationConfiguration", emptyText: blankDocument("ReplicationConfiguration")},
		{word: "accelerate", root: "AccelerateConfiguration", get: "s3:GetAccelerateConfiguration",
			put: "s3:PutAccelerateConfiguration", emptyText: blankDocument("AccelerateConfiguration")},
		{word: "requestPayment", root: "RequestPaymentConfiguration", get: "s3:GetBucketRequestPayment",
			put: "s3:PutBucketRequestPayment", emptyText: xml.Header + `<RequestPaymentConfiguration xmlns="` + xmlns +
				`"><Payer>BucketOwner</Payer></RequestPaymentConfiguration>`},
	}
}

// bucketConfig serves the stored subresources. ok is false if the request is for none of them.
func (q *request) bucketConfig() (res *reply, err *apiError, ok bool) {
	word, _ := bucketSubresource(q.query)
	if word == "" || q.http.Method == http.MethodHead {
		return nil, nil, false
	}
	for _, kind := range q.store.traits.kinds {
		if kind.word != word {
			continue
		}
		switch q.http.Method {
		case http.MethodGet:
			res, err = q.getConfig(kind)
		case http.MethodPut:
			res, err = q.putConfig(kind)
		case http.MethodDelete:
			res, err = q.deleteConfig(kind)
		default:
			err = errMethodNotAllowed()
		}
		return res, err, true
	}
	return nil, nil, false
}

func (q *request) getConfig(kind configKind) (*reply, *apiError) {
	if err := q.allowBucket(kind.get); err != nil {
		return nil, err
	}
	if text, ok := q.bucket.config[kind.word]; ok {
		return xmlText(text), nil
	}
	if kind.missing != nil {
		return nil, kind.missing
	}
	return xmlText([]byte(kind.emptyText)), nil
}

func (q *request) putConfig(kind configKind) (*reply, *apiError) {
	if err := q.allowBucket(kind.put); err != nil {
		return nil, err
	}
	if q.bodyErr != nil {
		return nil, q.bodyErr
	}
	if kind.check != nil {
		if err := kind.check(q.body); err != nil {
			return nil, err
		}
	}
	var root anyXML
	if err := parseDocument(q.body, &root); err != nil {
		return nil, err
	}
	if root.XMLName.Local != kind.root {
		return nil, errMalformedXML()
	}
	q.bucket.config[kind.word] = q.body
	return empty(http.StatusOK), nil
}

func (q *request) deleteConfig(kind configKind) (*reply, *apiError) {
	if err := q.allowBucket(cmp.Or(kind.remove, kind.put)); err != nil {
		return nil, err
	}
	delete(q.bucket.config, kind.word)
	return empty(http.StatusNoContent), nil
}

func (q *request) getBucketVersioning() (*reply, *apiError) {
	if err := q.allowBucket("s3:GetBucketVersioning"); err != nil {
		return nil, err
	}
	return document(versioningXML{NS: xmlns, Status: q.bucket.versioning})
}

func (q *request) putBucketVersioning() (*reply, *apiError) {
	if err := q.allowBucket("s3:PutBucketVersioning"); err != nil {
		return nil, err
	}
	if q.bodyErr != nil {
		return nil, q.bodyErr
	}
	var in versioningXML
	if err := parseDocument(q.body, &in); err != nil {
		return nil, err
	}
	switch in.Status {
	case versioningEnabled:
	case versioningSuspended:
		if q.bucket.lock != nil {
			return nil, failure(http.StatusConflict, "InvalidBucketState", "")
		}
	default:
		return nil, errMalformedXML()
	}
	q.bucket.versioning = in.Status
	return empty(http.StatusOK), nil
}

func (q *request) getPublicAccessBlock() (*reply, *apiError) {
	if err := q.allowBucket("s3:GetBucketPublicAccessBlock"); err != nil {
		return nil, err
	}
	if q.bucket.pab == nil {
		return nil, failure(http.StatusNotFound, "NoSuchPublicAccessBlockConfiguration",
			"The public access block configuration was not found")
	}
	out := *q.bucket.pab
	out.NS = xmlns
	return document(out)
}

func (q *request) putPublicAccessBlock() (*reply, *apiError) {
	if err := q.allowBucket("s3:PutBucketPublicAccessBlock"); err != nil {
		return nil, err
	}
	if q.bodyErr != nil {
		return nil, q.bodyErr
	}
	var in publicAccessBlock
	if err := parseDocument(q.body, &in); err != nil {
		return nil, err
	}
	in.XMLName = xml.Name{}
	q.bucket.pab = &in
	return empty(http.StatusOK), nil
}

func (q *request) deletePublicAccessBlock() (*reply, *apiError) {
	if err := q.allowBucket("s3:PutBucketPublicAccessBlock"); err != nil {
		return nil, err
	}
	q.bucket.pab = nil
	return empty(http.StatusNoContent), nil
}

// parseTagging reads and checks a Tagging document.
func parseTagging(text []byte, limit int) ([]tag, *apiError) {
	var in taggingXML
	if err := parseDocument(text, &in); err != nil {
		return nil, err
	}
	return in.TagSet.Tags, checkTags(in.TagSet.Tags, limit)
}

func checkTags(tags []tag, limit int) *apiError {
	invalid := failure(http.StatusBadRequest, "InvalidTag", "")
	if len(tags) > limit {
		return invalid
	}
	seen := make(map[string]bool, len(tags))
	for _, t := range tags {
		if t.Key == "" || seen[t.Key] ||
			utf8.RuneCountInString(t.Key) > maxTagKey || utf8.RuneCountInString(t.Value) > maxTagValue {
			return invalid
		}
		seen[t.Key] = true
	}
	return nil
}
