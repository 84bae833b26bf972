package companion

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// bucketInfoKey is the only key of the Secrets that COSI v1alpha1 writes.
const bucketInfoKey = "BucketInfo"

// credentials is what one Secret of COSI says.
type credentials struct {
	accessKeyID     string
	secretAccessKey provider.Secret
	endpoint        string // scheme://host[:port]
	region          string
}

// readCredentials reads the Secret that COSI wrote for an access. v1alpha1 takes any
// Secret that is there for its own, so that the document in it has to be of the
// access. Its errors hold nothing of what they read.
func readCredentials(a access, data map[string][]byte) (credentials, error) {
	var c credentials
	if a.version == v1alpha2 {
		c = credentials{
			accessKeyID:     string(data["COSI_S3_ACCESS_KEY_ID"]),
			secretAccessKey: provider.NewSecret(string(data["COSI_S3_ACCESS_SECRET_KEY"])),
			endpoint:        string(data["COSI_S3_ENDPOINT"]),
			region:          string(data["COSI_S3_REGION"]),
		}
	} else {
		var info struct {
			Metadata struct{ Name string }
			Spec     struct {
				SecretS3 struct{ Endpoint, Region, AccessKeyID, AccessSecretKey string }
			}
		}
		if json.Unmarshal(data[bucketInfoKey], &info) != nil {
			return credentials{}, errors.New("its BucketInfo is no JSON document")
		}
		if info.Metadata.Name != bucketInfoName(a.uid) {
			return credentials{}, errNotOfAccess
		}
		s3 := info.Spec.SecretS3
		c = credentials{s3.AccessKeyID, provider.NewSecret(s3.AccessSecretKey), s3.Endpoint, s3.Region}
	}
	if c.accessKeyID == "" || c.secretAccessKey.Empty() || c.endpoint == "" {
		return credentials{}, errors.New("it lacks an S3 key or an endpoint")
	}
	return c, nil
}

// errNotOfAccess is why a document counts for nothing.
var errNotOfAccess = errors.New("its BucketInfo is not of this BucketAccess")

// bucketInfoName is what COSI v1alpha1 calls the document for an access.
func bucketInfoName(accessUID string) string { return "bc-" + accessUID }

// correctBucketInfo writes the name that the bucket has at the cloud into the
// document that COSI v1alpha1 wrote for an access, and reports whether it said
// something else. All other fields stay. A document of something else than the
// access is an error; errors hold nothing of it.
func correctBucketInfo(document []byte, accessUID, bucketName string) (corrected []byte, changed bool, err error) {
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.UseNumber()
	var info map[string]any
	if decoder.Decode(&info) != nil || decoder.Decode(&struct{}{}) != io.EOF {
		return nil, false, errors.New("its BucketInfo is no JSON document")
	}
	metadata, _ := info["metadata"].(map[string]any)
	spec, _ := info["spec"].(map[string]any)
	if metadata["name"] != bucketInfoName(accessUID) || spec == nil {
		return nil, false, errNotOfAccess
	}
	if spec["bucketName"] == bucketName {
		return document, false, nil
	}
	spec["bucketName"] = bucketName
	corrected, err = json.Marshal(info)
	if err != nil {
		return nil, false, errors.New("its BucketInfo cannot be written")
	}
	return corrected, true, nil
}
