package objectstore

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/xml"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zuber-storage/zuber/pkg/emulator/policy"
)

const (
	// gridMaxMetadata bounds the names and values of an object's own metadata, in bytes.
	gridMaxMetadata = 24 << 10
	// gridUploadLife is how long a grid keeps an upload that is not completed.
	gridUploadLife = 15 * 24 * time.Hour
	gridMaxRules   = 1000
)

func gridTraits() *traits {
	return &traits{
		// A grid's callers are authorised for each key, too.
		releaseTraits: releaseTraits{dialect: policy.StorageGRID, deletesByKey: true},
		maxBuckets:    5000, grid: true, trusting: true,
		checksums:      []string{"sha256"},
		storageClasses: []string{storageClass, "REDUCED_REDUNDANCY"},
		uploadLife:     gridUploadLife, keyTooLong: "KeyTooLong", kinds: gridKinds(),
		refuse: gridRefuse, checkObject: gridCheckObject, message: gridMessage,
		label: func(e *endpoint, h http.Header) string {
			// Request IDs grow with the time, and no two are the same.
			id := strconv.FormatInt(e.store.now().UnixMicro()+int64(e.store.requests.Add(1)), 10)
			trace := make([]byte, 8)
			_, _ = rand.Read(trace) // never fails
			h.Set("Server", "StorageGRID/11.9.0")
			h.Set("X-Amz-Request-Id", id)
			h.Set("X-Amz-Id-2", "12345678")
			h.Set("X-Ntap-Sg-Trace-Id", hex.EncodeToString(trace))
			return id
		},
		details: func(_ *endpoint, r *http.Request, _ target, id string) [][2]string {
			return [][2]string{{"Resource", r.URL.Path}, {"RequestId", id}}
		},
	}
}

func errNotImplemented() *apiError {
	return failure(http.StatusNotImplemented, "NotImplemented", "")
}

func errXNotImplemented() *apiError {
	return failure(http.StatusNotImplemented, "XNotImplemented", "")
}

// gridRefuse turns away operations and headers that release 11.9 does not have. That it answers a checksum
// of a newer SDK with 501, rather than with an error of another code, is the emulator's reading of
// "not supported".
func gridRefuse(r *http.Request, query url.Values, operation string) *apiError {
	h := r.Header
	switch {
	case gridLacks(query, operation):
		return errNotImplemented()
	case h.Get("X-Amz-Security-Token") != "", query.Has("X-Amz-Security-Token"),
		h.Get("X-Amz-Website-Redirect-Location") != "",
		strings.HasSuffix(h.Get("X-Amz-Content-Sha256"), "-TRAILER"):
		return errXNotImplemented()
	}
	switch operation {
	case "PutObject", "UploadPart", "CompleteMultipartUpload":
		if h.Get("X-Amz-Sdk-Checksum-Algorithm") != "" || h.Get("X-Amz-Trailer") != "" {
			return errXNotImplemented()
		}
	case "CreateMultipartUpload":
		if a := h.Get("X-Amz-Checksum-Algorithm"); a != "" && !strings.EqualFold(a, "SHA256") {
			return errXNotImplemented()
		}
	}
	return nil
}

// gridLacks tells whether an operation is none of the grid's, or is one of its own that is not emulated.
func gridLacks(query url.Values, operation string) bool {
	for name := range query {
		// Without this a request for one of the grid's own subresources, or for one of Amazon's that it
		// lacks, would be taken for one that makes, lists or deletes the bucket.
		if strings.HasPrefix(name, "x-ntap-sg-") ||
			slices.Contains([]string{"analytics", "inventory", "metrics", "intelligent-tiering"}, name) {
			return true
		}
	}
	noun := operation
	for _, verb := range []string{"Get", "Put", "Delete"} {
		noun = strings.TrimPrefix(noun, verb)
	}
	switch noun {
	case "BucketPolicyStatus", "BucketOwnershipControls", "PublicAccessBlock", "BucketLogging",
		"BucketRequestPayment", "BucketAccelerateConfiguration", "BucketAccelerate", "BucketWebsite":
		return true
	}
	return operation == "PutBucketAcl" || operation == "PutObjectAcl"
}

// gridCheckObject holds an object's metadata to its limit and stores what is to be shown of its encryption.
func gridCheckObject(in, stored http.Header) *apiError {
	size := 0
	for name, values := range stored {
		if own, ok := strings.CutPrefix(name, metaPrefix); ok {
			size += len(own) + len(strings.Join(values, ","))
		}
	}
	if size > gridMaxMetadata {
		return failure(http.StatusBadRequest, "MetadataTooLarge", "")
	}
	const encryption = "X-Amz-Server-Side-Encryption"
	switch method := in.Get(encryption); method {
	case "":
	case "AES256":
		stored.Set(encryption, method)
	default:
		return failure(http.StatusBadRequest, "InvalidEncryptionAlgorithmError", "")
	}
	return nil
}

func gridKinds() []configKind {
	return []configKind{
		corsKind(), taggingKind(), notificationKind(),
		{word: "lifecycle", root: "LifecycleConfiguration", get: "s3:GetLifecycleConfiguration",
			put: "s3:PutLifecycleConfiguration", missing: notConfigured("NoSuchLifecycleConfiguration", ""), check: gridCheckLifecycle},
		{word: "encryption", root: "ServerSideEncryptionConfiguration", get: "s3:GetEncryptionConfiguration",
			put: "s3:PutEncryptionConfiguration", missing: notConfigured("ServerSideEncryptionConfigurationNotFoundError", "")},
		{word: "replication", root: "ReplicationConfiguration", get: "s3:GetReplicationConfiguration",
			put: "s3:PutReplicationConfiguration", remove: "s3:DeleteReplicationConfiguration",
			missing: notConfigured("ReplicationConfigurationNotFoundError", "")},
	}
}

// gridCheckLifecycle refuses the actions that a grid does not have.
func gridCheckLifecycle(text []byte) *apiError {
	var in struct {
		XMLName xml.Name `xml:"LifecycleConfiguration"`
		Rules   []struct {
			Abort                *struct{}  `xml:"AbortIncompleteMultipartUpload"`
			Transitions          []struct{} `xml:"Transition"`
			NoncurrentTransition []struct{} `xml:"NoncurrentVersionTransition"`
		} `xml:"Rule"`
	}
	if err := parseDocument(text, &in); err != nil {
		return err
	}
	if len(in.Rules) == 0 || len(in.Rules) > gridMaxRules {
		return errMalformedXML()
	}
	for _, r := range in.Rules {
		if r.Abort != nil || len(r.Transitions)+len(r.NoncurrentTransition) > 0 {
			return errNotImplemented()
		}
	}
	return nil
}

// gridMessage is a text of the emulator's own: clients show it, none reads it.
func gridMessage(code string) string {
	switch code {
	case "AccessDenied":
		return "Access is denied."
	case "InvalidAccessKeyId":
		return "The access key ID is not known."
	case "SignatureDoesNotMatch":
		return "The signature does not match the request."
	case "RequestTimeTooSkewed":
		return "The time of the request is too far from the time of the server."
	case "NoSuchBucket":
		return "The bucket does not exist."
	case "NoSuchKey":
		return "The key does not exist."
	case "NoSuchUpload":
		return "The upload does not exist; it may have been completed or aborted."
	case "NoSuchBucketPolicy":
		return "The bucket has no policy."
	case "NoSuchTagSet":
		return "The bucket has no tags."
	case "BucketAlreadyExists":
		return "The bucket name is taken."
	case "BucketNotEmpty":
		return "The bucket holds objects, versions or delete markers."
	case "XNotImplemented", "NotImplemented":
		return "The request asks for something that is not implemented."
	case "XMaxBucketPolicyLengthExceeded":
		return "The policy is too long."
	}
	return "The request was refused: " + code + "."
}
