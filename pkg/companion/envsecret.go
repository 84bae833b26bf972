package companion

import (
	"fmt"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// envSource is one bucket of an access with the credentials for it.
type envSource struct {
	credentials
	claim         string
	bucket        string // its name at the cloud
	virtualHosted bool
}

// values are what the env Secret says about the bucket, by field.
func (s envSource) values() (map[string]string, error) {
	u, err := url.Parse(s.endpoint)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("the endpoint that COSI wrote for the BucketClaim %s is no URL", s.claim) // what is in a Secret stays there
	}
	bucketURL := *u
	if s.virtualHosted {
		bucketURL.Host = s.bucket + "." + u.Host
	} else {
		bucketURL.Path = strings.TrimSuffix(u.Path, "/") + "/" + s.bucket
	}
	return map[string]string{
		"accessKeyID":     s.accessKeyID,
		"secretAccessKey": s.secretAccessKey.Reveal(),
		"awsRegion":       s.region,
		"awsEndpointURL":  s.endpoint,
		"bucket":          s.bucket,
		"region":          s.region,
		"endpoint":        u.Host,
		"endpointURL":     s.endpoint,
		"bucketURL":       bucketURL.String(),
	}, nil
}

// renderEnv is the data of an env Secret. Of several buckets the first has the
// plain keys, and every one, the first too, has its own with claimSuffix. Two
// values for one key are an error, and so is a key that no Secret takes.
func renderEnv(keys map[string]string, sources []envSource) (map[string][]byte, error) {
	data := map[string][]byte{}
	add := func(key, value string) error {
		if len(key) > maxEnvKey {
			return fmt.Errorf("the key %s is longer than %d characters: use a claim with a shorter name, or shorter keys with %s", quote(key), maxEnvKey, AnnotationEnvKeys)
		}
		if _, taken := data[key]; taken {
			return fmt.Errorf("the key %s would stand for two values: rename one with %s, or use claims whose names differ in more than dots and dashes", key, AnnotationEnvKeys)
		}
		data[key] = []byte(value)
		return nil
	}
	for i, source := range sources {
		values, err := source.values()
		if err != nil {
			return nil, err
		}
		for _, k := range EnvKeyTable() {
			key, value := keys[k.Field], values[k.Field]
			if i == 0 {
				err = add(key, value)
			}
			if err == nil && len(sources) > 1 {
				err = add(key+claimSuffix(source.claim), value)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	return data, nil
}

// EnvSecretSuffix is the parameter of a BucketAccessClass that gives every access
// of the class an env Secret.
const EnvSecretSuffix = "envSecretSuffix" //nolint:gosec // the name of a parameter, not a credential

// envSecretName is the name of the access's env Secret; an empty one is none.
func envSecretName(a access, parameters map[string]string) (string, error) {
	name, asked := a.annotations[AnnotationEnvSecret]
	if !asked {
		suffix := parameters[EnvSecretSuffix]
		if suffix == "" {
			return "", nil
		}
		name = a.name + suffix
	}
	if faults := validation.IsDNS1123Subdomain(name); len(faults) > 0 {
		return "", fmt.Errorf("%s is no name for a Secret: want at most 253 characters of a-z, 0-9, - and ., and a letter or digit at both ends", quote(name))
	}
	if a.delivers(name) {
		return "", fmt.Errorf("%s is the name of the Secret that COSI writes: choose another one", quote(name))
	}
	if name == journalName(a) {
		return "", fmt.Errorf("%s is where the companion remembers rotations: choose another name", quote(name))
	}
	return name, nil
}
