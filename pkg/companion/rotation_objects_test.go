package companion

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/zuber-storage/zuber/pkg/driver"
)

// newUID draws one as the API server does.
func newUID(t *testing.T) string {
	t.Helper()
	var b [16]byte
	if _, err := rand.Read(b[:]); err != nil {
		t.Fatal(err)
	}
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

type dict = map[string]any

// write puts an object there.
func (r *rotating) write(path string, object dict) {
	r.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		r.Fatal(err)
	}
	r.server.put(r.T, path, string(text))
}

// writeObjects writes what COSI has when it has granted the access.
func (r *rotating) writeObjects(parameters map[string]string) {
	r.Helper()
	api := cosiGroup + "/" + r.version
	created := r.now.UTC().Format(time.RFC3339)
	r.write(r.path("bucketaccessclasses", "key"), dict{
		"apiVersion": api, "kind": kindAccessClass, "metadata": dict{"name": "key"}, "driverName": rotatingDriver, "parameters": parameters,
	})
	var targets []any
	for i, id := range r.buckets {
		name := r.names[i]
		r.write(r.path("bucketclaims", name), dict{
			"apiVersion": api, "kind": kindClaim, "metadata": dict{"namespace": "ns", "name": name, "uid": "c-" + name},
			"status": dict{"bucketReady": true, "readyToUse": true, "bucketName": name, "boundBucketName": name},
		})
		r.write(r.path("buckets", name), dict{
			"apiVersion": api, "kind": kindBucket, "metadata": dict{"name": name, "uid": "b-" + name},
			"spec": dict{"driverName": rotatingDriver}, "status": dict{"bucketID": id, "bucketReady": true, "readyToUse": true},
		})
		r.writeSecret(i, created)
		targets = append(targets, dict{"bucketClaimName": name, "accessSecretName": r.secretName(i)})
	}
	r.write(r.path("bucketaccesses", "photos"), dict{
		"apiVersion": api, "kind": kindAccess,
		"metadata": dict{"namespace": "ns", "name": "photos", "uid": r.uid, "creationTimestamp": created, "annotations": dict{AnnotationEnvSecret: "photos-env"}},
		"spec":     dict{"bucketAccessClassName": "key", "bucketClaims": targets, "bucketClaimName": r.names[0], "credentialsSecretName": r.secretName(0)},
		"status": dict{
			"accountID": r.grant.AccountID, "accessGranted": true, "readyToUse": true, "driverName": rotatingDriver, "parameters": parameters,
		},
	})
}

// writeSecret writes the Secret for the i-th bucket as COSI does.
func (r *rotating) writeSecret(i int, created string) {
	r.Helper()
	key, bucket := r.grant.Credentials, r.grant.Buckets[i].Bucket
	data := map[string]string{
		"COSI_S3_BUCKET_ID": bucket.Name, "COSI_S3_ENDPOINT": bucket.Endpoint, "COSI_S3_REGION": bucket.SigningRegion,
		"COSI_S3_ACCESS_KEY_ID": key.AccessKeyID, "COSI_S3_ACCESS_SECRET_KEY": key.SecretAccessKey.Reveal(),
	}
	if r.version == v1alpha1 {
		document, err := json.Marshal(dict{"metadata": dict{"name": "bc-" + r.uid}, "spec": dict{
			"bucketName": r.names[i], "authenticationType": "Key", "protocols": []string{"S3"}, "secretS3": dict{
				"endpoint": bucket.Endpoint, "region": bucket.SigningRegion, "accessKeyID": key.AccessKeyID, "accessSecretKey": key.SecretAccessKey.Reveal(),
			},
		}})
		if err != nil {
			r.Fatal(err)
		}
		data = map[string]string{bucketInfoKey: string(document)}
	}
	encoded := dict{}
	for k, v := range data {
		encoded[k] = base64.StdEncoding.EncodeToString([]byte(v))
	}
	r.write(secretsPath+"/"+r.secretName(i), dict{
		"apiVersion": "v1", "kind": "Secret", "metadata": dict{"namespace": "ns", "name": r.secretName(i), "creationTimestamp": created}, "data": encoded,
	})
}

// set changes one field of the access; nil takes it away.
func (r *rotating) set(value any, path ...string) {
	r.edit(r.path("bucketaccesses", "photos"), value, path...)
}

// drop takes an object away.
func (r *rotating) drop(at string) {
	r.server.mu.Lock()
	defer r.server.mu.Unlock()
	delete(r.server.objects, at)
}

// annotate sets an annotation of the access.
func (r *rotating) annotate(name, value string) { r.set(value, "metadata", "annotations", name) }

// edit changes one field of an object.
func (r *rotating) edit(at string, value any, path ...string) {
	r.Helper()
	r.server.mu.Lock()
	defer r.server.mu.Unlock()
	here := r.server.objects[at]
	for _, key := range path[:len(path)-1] {
		if here[key] == nil {
			here[key] = dict{}
		}
		here, _ = here[key].(map[string]any)
	}
	if last := path[len(path)-1]; value == nil {
		delete(here, last)
	} else {
		here[last] = value
	}
}

// regrant lets another process answer the sidecar of v1alpha2, which writes what it
// gets.
func (r *rotating) regrant(p *rotator) {
	r.Helper()
	r.grantAgain(p)
	r.writeSecrets()
}

// grantAgain is what the sidecar of v1alpha2 asks for when it starts.
func (r *rotating) grantAgain(p *rotator) {
	r.Helper()
	request := driver.GrantRequest{Account: "ba-" + r.uid}
	for _, id := range r.buckets {
		request.Buckets = append(request.Buckets, driver.GrantBucket{ID: id})
	}
	var err error
	if r.grant, err = p.keys.GrantAccess(r.quiet(), request); err != nil {
		r.Fatal(err)
	}
}

// writeSecrets is what it does then.
func (r *rotating) writeSecrets() {
	r.Helper()
	for i := range r.buckets {
		r.writeSecret(i, r.now.UTC().Format(time.RFC3339))
	}
}

// between runs f once, when the Secret has been read.
type between struct {
	client.Reader
	secret string
	once   sync.Once
	f      func()
}

func (b *between) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	err := b.Reader.Get(ctx, key, o, opts...)
	if key.Name == b.secret {
		b.once.Do(b.f)
	}
	return err
}
