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

// setKey puts another key into the data of a Secret that COSI wrote for an access,
// and leaves the rest as it is.
func setKey(a access, data map[string][]byte, key provider.Credentials) error {
	if a.version == v1alpha2 {
		data["COSI_S3_ACCESS_KEY_ID"] = []byte(key.AccessKeyID)
		data["COSI_S3_ACCESS_SECRET_KEY"] = []byte(key.SecretAccessKey.Reveal())
		return nil
	}
	info, spec, err := readBucketInfo(data[bucketInfoKey], a.uid)
	if err != nil {
		return err
	}
	s3, _ := spec["secretS3"].(map[string]any)
	if s3 == nil {
		return errors.New("its BucketInfo has no secretS3")
	}
	s3["accessKeyID"], s3["accessSecretKey"] = key.AccessKeyID, key.SecretAccessKey.Reveal()
	data[bucketInfoKey], err = writeBucketInfo(info)
	return err
}

// correctBucketInfo writes the name that the bucket has at the cloud into the
// document that COSI v1alpha1 wrote for an access, and reports whether it said
// something else. All other fields stay. A document of something else than the
// access is an error; errors hold nothing of it.
func correctBucketInfo(document []byte, accessUID, bucketName string) (corrected []byte, changed bool, err error) {
	info, spec, err := readBucketInfo(document, accessUID)
	if err != nil {
		return nil, false, err
	}
	if spec["bucketName"] == bucketName {
		return document, false, nil
	}
	spec["bucketName"] = bucketName
	corrected, err = writeBucketInfo(info)
	return corrected, err == nil, err
}

// readBucketInfo reads the document for an access and the spec in it, with all
// their fields.
func readBucketInfo(document []byte, accessUID string) (info, spec map[string]any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.UseNumber()
	if decoder.Decode(&info) != nil || decoder.Decode(&struct{}{}) != io.EOF {
		return nil, nil, errors.New("its BucketInfo is no JSON document")
	}
	metadata, _ := info["metadata"].(map[string]any)
	spec, _ = info["spec"].(map[string]any)
	if metadata["name"] != bucketInfoName(accessUID) || spec == nil {
		return nil, nil, errNotOfAccess
	}
	return info, spec, nil
}

func writeBucketInfo(info map[string]any) ([]byte, error) {
	document, err := json.Marshal(info)
	if err != nil {
		return nil, errors.New("its BucketInfo cannot be written")
	}
	return document, nil
}
