package companion

// What users ask of the companion with annotations.
const (
	// AnnotationEnvSecret names the env Secret of a BucketAccess.
	AnnotationEnvSecret = "zuber.dev/env-secret" //nolint:gosec // the name of an annotation, not a credential
	// AnnotationEnvKeys renames keys of the env Secret.
	AnnotationEnvKeys = "zuber.dev/env-keys"
	// AnnotationRotateAt asks for a new key whenever its value is another one.
	AnnotationRotateAt = "zuber.dev/rotate-credentials-at"
	// AnnotationRotationGrace says how long a replaced key goes on working.
	AnnotationRotationGrace = "zuber.dev/rotation-grace"
	// AnnotationWipeOnDelete asks for the data of a bucket to be deleted with its
	// BucketClaim.
	AnnotationWipeOnDelete = "zuber.dev/wipe-on-delete"
)

// Annotation describes one annotation, for documents.
type Annotation struct {
	Name        string
	Kind        string // of the object that carries it
	Value       string
	Description string
}

// AnnotationTable lists every annotation, in the order of documents.
func AnnotationTable() []Annotation {
	return []Annotation{{
		Name: AnnotationEnvSecret, Kind: kindAccess,
		Value: "the name of a Secret that is not there yet",
		Description: "Makes that Secret beside the BucketAccess, with the credentials as variables for `envFrom`. It is kept as it should be, " +
			"and goes with the BucketAccess or with this annotation.",
	}, {
		Name: AnnotationEnvKeys, Kind: kindAccess,
		Value:       "`field=KEY,…`",
		Description: "Other names for keys of the env Secret, for what reads other variables. The fields are listed below.",
	}, {
		Name: AnnotationRotateAt, Kind: kindAccess,
		Value:       "any text, for example the date",
		Description: "Gives the BucketAccess a new key, once for every other value. What it says when access is granted asks for nothing.",
	}, {
		Name: AnnotationRotationGrace, Kind: kindAccess,
		Value:       "a duration, for example `1h`",
		Description: "How long the key that is replaced goes on working, from when the new one is in the Secrets. Without it, it ends at once.",
	}, {
		Name: AnnotationWipeOnDelete, Kind: kindClaim,
		Value: "`\"true\"`",
		Description: "Deletes the data in the bucket when the BucketClaim is deleted, if the driver runs with `--allow-wipe-annotation`. " +
			"Otherwise, a bucket with data waits until somebody has emptied it.",
	}}
}

// EnvKey describes one key of an env Secret, for documents.
type EnvKey struct {
	Field       string // its name in AnnotationEnvKeys
	Key         string // unless that says otherwise
	Description string
}

// EnvKeyTable lists the keys of an env Secret, in the order of documents.
func EnvKeyTable() []EnvKey {
	return []EnvKey{
		{"accessKeyID", "AWS_ACCESS_KEY_ID", "Access key ID."},
		{"secretAccessKey", "AWS_SECRET_ACCESS_KEY", "Secret access key."},
		{"awsRegion", "AWS_REGION", "Region that AWS's SDKs and command line sign for."},
		{"awsEndpointURL", "AWS_ENDPOINT_URL_S3", "Endpoint that AWS's SDKs and command line use."},
		{"bucket", "S3_BUCKET", "Name of the bucket at the cloud, which may differ from that of the Bucket object."},
		{"region", "S3_REGION", "The region again."},
		{"endpoint", "S3_ENDPOINT", "Host of the endpoint, with its port if it has one."},
		{"endpointURL", "S3_ENDPOINT_URL", "The endpoint again, as a URL."},
		{"bucketURL", "S3_BUCKET_URL", "URL of the bucket: the endpoint with the bucket's name in the path, or in front of the host where the class says `s3PathStyle: \"false\"`."},
	}
}
