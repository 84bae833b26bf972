package objectstore

import "net/http"

// dispatch carries out the operation. The store's lock is held.
func (q *request) dispatch() (*reply, *apiError) {
	if q.target.key != "" {
		return q.dispatchObject()
	}
	if q.bucket != nil {
		if res, err, ok := q.bucketConfig(); ok {
			return res, err
		}
	}
	switch q.operation {
	case "ListBuckets":
		return q.listBuckets()
	case "CreateBucket":
		return q.createBucket()
	case "HeadBucket":
		return q.headBucket()
	case "DeleteBucket":
		return q.deleteBucket()
	case "ListObjects":
		return q.listObjects()
	case "ListObjectsV2":
		return q.listObjectsV2()
	case "ListObjectVersions":
		return q.listObjectVersions()
	case "ListMultipartUploads":
		return q.listMultipartUploads()
	case "DeleteObjects":
		return q.deleteObjects()
	case "GetBucketLocation":
		return q.getBucketLocation()
	case "GetBucketPolicy":
		return q.getBucketPolicy()
	case "PutBucketPolicy":
		return q.putBucketPolicy()
	case "DeleteBucketPolicy":
		return q.deleteBucketPolicy()
	case "GetBucketPolicyStatus":
		return q.getBucketPolicyStatus()
	case "GetBucketAcl":
		return q.getBucketACL()
	case "PutBucketAcl":
		return q.putBucketACL()
	case "GetBucketVersioning":
		return q.getBucketVersioning()
	case "PutBucketVersioning":
		return q.putBucketVersioning()
	case "GetPublicAccessBlock":
		return q.getPublicAccessBlock()
	case "PutPublicAccessBlock":
		return q.putPublicAccessBlock()
	case "DeletePublicAccessBlock":
		return q.deletePublicAccessBlock()
	case "GetObjectLockConfiguration":
		return q.getObjectLockConfiguration()
	case "PutObjectLockConfiguration":
		return q.putObjectLockConfiguration()
	}
	return nil, errMethodNotAllowed()
}

func (q *request) dispatchObject() (*reply, *apiError) {
	if q.http.Header.Get("X-Amz-Server-Side-Encryption-Customer-Algorithm") != "" && q.http.TLS == nil {
		// The gateway takes keys of the customer over TLS only.
		return nil, errInvalidRequest("")
	}
	switch q.operation {
	case "PutObject":
		return q.putObject()
	case "CopyObject":
		return q.copyObject()
	case "GetObject", "HeadObject":
		return q.getObject(q.http.Method == http.MethodHead)
	case "DeleteObject":
		return q.deleteObject()
	case "GetObjectAcl":
		return q.getObjectACL()
	case "PutObjectAcl":
		return q.putObjectACL()
	case "GetObjectTagging":
		return q.getObjectTagging()
	case "PutObjectTagging":
		return q.putObjectTagging()
	case "DeleteObjectTagging":
		return q.deleteObjectTagging()
	case "GetObjectRetention":
		return q.getObjectRetention()
	case "PutObjectRetention":
		return q.putObjectRetention()
	case "GetObjectLegalHold":
		return q.getObjectLegalHold()
	case "PutObjectLegalHold":
		return q.putObjectLegalHold()
	case "CreateMultipartUpload":
		return q.createMultipartUpload()
	case "UploadPart":
		return q.uploadPart()
	case "UploadPartCopy":
		return q.uploadPartCopy()
	case "CompleteMultipartUpload":
		return q.completeMultipartUpload()
	case "AbortMultipartUpload":
		return q.abortMultipartUpload()
	case "ListParts":
		return q.listParts()
	}
	return nil, errMethodNotAllowed()
}
