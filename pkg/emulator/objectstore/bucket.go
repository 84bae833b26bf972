package objectstore

import (
	"cmp"
	"net"
	"net/http"
	"strings"

	"github.com/zuber-storage/zuber/pkg/emulator/policy"
)

// bucketPolicy is a policy as it was sent and as it was understood.
type bucketPolicy struct {
	text     []byte
	document *policy.Document
}

func (q *request) listBuckets() (*reply, *apiError) {
	owner := q.owner()
	if q.caller.anonymous {
		if q.store.traits.grid {
			return nil, errAccessDenied()
		}
		owner.UID = "anonymous"
	}
	out := listBucketsXML{NS: xmlns, Owner: ownerOf(owner)}
	if !q.caller.anonymous {
		for _, name := range q.store.ownedBy(owner.UID) {
			out.Buckets.Bucket = append(out.Buckets.Bucket, bucketXML{Name: name, CreationDate: isoTime(q.store.buckets[name].created)})
		}
	}
	return document(out)
}

// createBucket follows the measured matrix: at a gateway a repetition by the owner is 200 and changes
// nothing, and everything else about a taken name is 409, in whichever region the bucket is. No bucket
// policy has a say.
func (q *request) createBucket() (*reply, *apiError) {
	name := q.target.bucket
	if !validBucketName(name) {
		return nil, errInvalidBucketName()
	}
	if q.caller.anonymous {
		return nil, errAccessDenied()
	}
	if q.bodyErr != nil {
		return nil, q.bodyErr
	}
	region, constrained, err := q.location()
	if err != nil {
		return nil, err
	}
	owner := q.owner()
	list, err := q.aclFromHeaders(owner, owner)
	if err != nil {
		return nil, err
	}
	existing := q.store.buckets[name]
	if existing != nil {
		same := existing.owner.UID == owner.UID && existing.region == region && existing.acl.equal(list)
		if !same || !q.store.traits.recreate {
			return nil, q.errTaken(existing, region)
		}
	}
	if constrained && !q.store.traits.keepsRegion && q.region.Name != q.store.master() {
		// The secondary region passes the request on, and the master refuses the constraint.
		return nil, failure(http.StatusServiceUnavailable, "ServiceUnavailable", "")
	}
	if existing != nil {
		return empty(http.StatusOK), nil
	}
	if len(q.store.ownedBy(owner.UID)) >= q.store.maxBuckets {
		return nil, failure(http.StatusBadRequest, "TooManyBuckets", "")
	}
	b := newBucket(name, region, owner, q.now)
	b.acl = list
	if strings.EqualFold(q.http.Header.Get("X-Amz-Bucket-Object-Lock-Enabled"), "true") {
		b.lock = &objectLock{}
		b.versioning = versioningEnabled
	}
	q.store.buckets[name] = b
	return empty(http.StatusOK), nil
}

// location resolves the LocationConstraint, "<region>", "<region>:<placement>" or ":<placement>".
func (q *request) location() (region string, constrained bool, _ *apiError) {
	if len(q.body) == 0 {
		return q.region.Name, false, nil
	}
	var in createBucketXML
	if err := parseDocument(q.body, &in); err != nil {
		return "", false, err
	}
	if in.LocationConstraint == "" {
		return q.region.Name, false, nil
	}
	name, placement, hasPlacement := strings.Cut(in.LocationConstraint, ":")
	region, err := q.placed(cmp.Or(name, q.region.Name), placement, hasPlacement)
	return region, true, err
}

// validBucketName holds the S3 rules: 3 to 63 lower-case letters, digits, dots and dashes; labels start
// and end with a letter or digit; no IPv4 address.
func validBucketName(name string) bool {
	if len(name) < 3 || len(name) > 63 || net.ParseIP(name) != nil {
		return false
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for _, c := range label {
			if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
				return false
			}
		}
	}
	return true
}

func (q *request) headBucket() (*reply, *apiError) {
	if err := q.allowBucket("s3:ListBucket"); err != nil {
		return nil, err
	}
	res := empty(http.StatusOK)
	if q.store.traits.grid {
		res.header = http.Header{"X-Ntap-Sg-Bucket-Id": {q.bucket.id}}
	}
	return res, nil
}

// deleteBucket refuses while any version or delete marker is left. Unfinished uploads go with the bucket.
func (q *request) deleteBucket() (*reply, *apiError) {
	if err := q.allowBucket("s3:DeleteBucket"); err != nil {
		return nil, err
	}
	if len(q.bucket.objects) > 0 {
		return nil, failure(http.StatusConflict, "BucketNotEmpty", "")
	}
	delete(q.store.buckets, q.bucket.name)
	return empty(http.StatusNoContent), nil
}

func (q *request) getBucketLocation() (*reply, *apiError) {
	if err := q.allowBucket("s3:GetBucketLocation"); err != nil {
		return nil, err
	}
	region := q.bucket.region
	if q.store.traits.grid && region == "us-east-1" {
		region = "" // as Amazon shows its first region
	}
	return document(locationXML{NS: xmlns, Region: region})
}

func (q *request) getBucketPolicy() (*reply, *apiError) {
	if err := q.allowBucket("s3:GetBucketPolicy"); err != nil {
		return nil, err
	}
	if q.bucket.policy == nil {
		return nil, failure(http.StatusNotFound, "NoSuchBucketPolicy", "The bucket policy does not exist")
	}
	return &reply{
		status: http.StatusOK, header: http.Header{"Content-Type": {"application/json"}}, body: q.bucket.policy.text,
	}, nil
}

// putBucketPolicy stores the text as it came. Unless the owner keeps the calls of the policy there is no
// safety net: a policy that denies everybody who has a key everything can never be changed again.
func (q *request) putBucketPolicy() (*reply, *apiError) {
	if err := q.allowBucket("s3:PutBucketPolicy"); err != nil {
		return nil, err
	}
	if q.bodyErr != nil {
		return nil, q.bodyErr
	}
	parsed, err := policy.Parse(q.body, q.store.traits.dialect)
	if err != nil {
		return nil, policyError(err)
	}
	if q.bucket.pab != nil && q.bucket.pab.BlockPublicPolicy && parsed.Public() {
		return nil, errAccessDenied()
	}
	q.setPolicy(&bucketPolicy{text: q.body, document: parsed})
	return empty(http.StatusNoContent), nil
}

func (q *request) deleteBucketPolicy() (*reply, *apiError) {
	if err := q.allowBucket("s3:DeleteBucketPolicy"); err != nil {
		return nil, err
	}
	q.setPolicy(nil)
	return empty(http.StatusNoContent), nil
}

func (q *request) getBucketPolicyStatus() (*reply, *apiError) {
	if err := q.allowBucket("s3:GetBucketPolicyStatus"); err != nil {
		return nil, err
	}
	public := q.bucket.acl.public() || (q.bucket.policy != nil && q.bucket.policy.document.Public())
	return document(policyStatusXML{NS: xmlns, IsPublic: public})
}
