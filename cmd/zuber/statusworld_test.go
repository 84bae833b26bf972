package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// recognisable is in every secret access key, and must be in no output.
const recognisable = "RECOGNISABLE"

// statusWorld makes what zuber status reads, in one version of COSI.
type statusWorld struct {
	*testing.T
	sender
	version string
	uids    map[string]string // the UIDs that the server gave, by path
}

// The finalizer that keeps what is deleted.
const heldFinalizer = "example.com/held"

func newStatusWorld(t *testing.T, s sender, version string) *statusWorld {
	return &statusWorld{t, s, version, map[string]string{}}
}

func (w *statusWorld) old() bool { return w.version == "v1alpha1" }

func (w *statusWorld) send(method, path string, body any) map[string]any {
	w.Helper()
	got, err := w.Send(w.Context(), method, path, body)
	if err != nil {
		w.Fatal(err)
	}
	return got
}

// post makes an object in the namespace, which may be empty, and returns its UID.
func (w *statusWorld) post(namespace, resource, name string, fields map[string]any) (path, uid string) {
	w.Helper()
	path = "/apis/" + cosiGroup + "/" + w.version
	fields["apiVersion"] = cosiGroup + "/" + w.version
	if resource == "secrets" || resource == "events" {
		path, fields["apiVersion"] = "/api/v1", "v1"
	}
	if namespace != "" {
		path += "/namespaces/" + namespace
	}
	path += "/" + resource
	metadata, _ := fields["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
		fields["metadata"] = metadata
	}
	metadata["name"] = name
	got := w.send(http.MethodPost, path, fields)
	path += "/" + name
	uid, _ = object(got).at("metadata", "uid").(string)
	w.uids[path] = uid
	return path, uid
}

func (w *statusWorld) status(path string, status map[string]any) {
	w.Helper()
	w.send(http.MethodPatch, path+"/status", map[string]any{"status": status})
}

// delete has an object be deleted and stay.
func (w *statusWorld) delete(path string) {
	w.Helper()
	w.send(http.MethodPatch, path, map[string]any{"metadata": map[string]any{"finalizers": []string{heldFinalizer}}})
	w.send(http.MethodDelete, path, nil)
}

// claim makes a BucketClaim with its Bucket, whose ID may be empty.
func (w *statusWorld) claim(namespace, name, bucketID string, annotations map[string]string) (claim, bucket string) {
	w.Helper()
	claim, uid := w.post(namespace, "bucketclaims", name, map[string]any{
		"kind": "BucketClaim", "metadata": map[string]any{"annotations": annotations},
		"spec": map[string]any{"bucketClassName": "zuber-rma", "protocols": []string{"S3"}},
	})
	field, bucketName := "bucketClaimRef", "bc-"+uid
	spec := map[string]any{"driverName": defaultDriverName, "protocols": []string{"S3"}, "deletionPolicy": "Delete"}
	if w.old() {
		field, bucketName = "bucketClaim", "bucket-"+uid
		spec["bucketClassName"] = "zuber-rma"
	}
	spec[field] = map[string]any{"namespace": namespace, "name": name, "uid": uid}
	bucket, _ = w.post("", "buckets", bucketName, map[string]any{"kind": "Bucket", "spec": spec})
	if w.old() && bucketID != "" {
		w.status(bucket, map[string]any{"bucketReady": true, "bucketID": bucketID})
		w.status(claim, map[string]any{"bucketReady": true, "bucketName": bucketName})
	} else if bucketID != "" {
		w.status(bucket, map[string]any{"readyToUse": true, "bucketID": bucketID})
		w.status(claim, map[string]any{"readyToUse": true, "boundBucketName": bucketName})
	}
	return claim, bucket
}

// access makes a BucketAccess that is not granted yet.
func (w *statusWorld) access(namespace, name, claim, class, mode string, annotations map[string]string) (path string) {
	w.Helper()
	spec := map[string]any{"bucketAccessClassName": class, "protocol": "S3"}
	if w.old() {
		spec["bucketClaimName"], spec["credentialsSecretName"] = claim, name+"-credentials"
	} else {
		spec["bucketClaims"] = []any{map[string]any{"bucketClaimName": claim, "accessMode": mode, "accessSecretName": name + "-credentials"}}
	}
	path, _ = w.post(namespace, "bucketaccesses", name, map[string]any{"kind": "BucketAccess", "metadata": map[string]any{"annotations": annotations}, "spec": spec})
	return path
}

// grant grants an access, with a Secret if there is a key.
func (w *statusWorld) grant(path, claim, bucketID, identity, key string, parameters map[string]string) {
	w.Helper()
	uid, name := w.uids[path], path[strings.LastIndex(path, "/")+1:]
	backend, _, _ := strings.Cut(bucketID, "/")
	account := backend + "/ba-" + uid + "/" + identity
	const endpoint, region = "https://objects.rma.cloudscale.ch", "rma"
	var data map[string]string
	if w.old() {
		w.status(path, map[string]any{"accessGranted": true, "accountID": account})
		info, err := json.Marshal(map[string]any{"metadata": map[string]any{"name": "bc-" + uid}, "spec": map[string]any{
			"bucketName": strings.Split(bucketID, "/")[2], "authenticationType": "Key", "protocols": []string{"S3"},
			"secretS3": map[string]string{"endpoint": endpoint, "region": region, "accessKeyID": key, "accessSecretKey": recognisable + key},
		}})
		if err != nil {
			w.Fatal(err)
		}
		data = map[string]string{"BucketInfo": string(info)}
	} else {
		w.status(path, map[string]any{"readyToUse": true, "accountID": account, "driverName": defaultDriverName, "parameters": parameters,
			"accessedBuckets": []any{map[string]any{"bucketName": "bc", "bucketID": bucketID, "bucketClaimName": claim}}})
		data = map[string]string{"COSI_S3_ACCESS_KEY_ID": key, "COSI_S3_ACCESS_SECRET_KEY": recognisable + key, "COSI_S3_ENDPOINT": endpoint, "COSI_S3_REGION": region}
	}
	if key != "" {
		w.secret(path, name+"-credentials", data)
	}
}

// secret makes a Secret that belongs to an access.
func (w *statusWorld) secret(access, name string, data map[string]string) {
	w.Helper()
	encoded := map[string]string{}
	for k, v := range data {
		encoded[k] = base64.StdEncoding.EncodeToString([]byte(v))
	}
	parts := strings.Split(access, "/")
	w.post(parts[5], "secrets", name, map[string]any{"kind": "Secret", "data": encoded, "metadata": map[string]any{"ownerReferences": []any{map[string]any{
		"apiVersion": cosiGroup + "/" + w.version, "kind": "BucketAccess", "name": parts[7], "uid": w.uids[access], "controller": true,
	}}}})
}

// warn tells of a failure of an object: in an event, or in v1alpha2 in its status.
func (w *statusWorld) warn(path, kind, reason, message string, count int) {
	w.Helper()
	parts := strings.Split(path, "/")
	name, namespace, place := parts[len(parts)-1], "", "default"
	if parts[4] == "namespaces" {
		namespace, place = parts[5], parts[5]
	}
	involved := map[string]any{"apiVersion": cosiGroup + "/" + w.version, "kind": kind, "name": name, "uid": w.uids[path]}
	if namespace != "" {
		involved["namespace"] = namespace
	}
	w.post(place, "events", fmt.Sprintf("%s.%s", name, strings.ToLower(reason)), map[string]any{
		"kind": "Event", "involvedObject": involved, "type": "Warning", "reason": reason, "message": message, "count": count,
		"firstTimestamp": "2026-01-02T02:05:00Z", "lastTimestamp": "2026-01-02T02:59:00Z", "source": map[string]any{"component": "cosi"},
	})
}

// The IDs of the world.
const (
	photosID  = "cloudscale/rma/acme-prod-photos/5e6f7a8b9c0d1e2f"
	archiveID = "cloudscale/rma/archive-2019/accessOnly"
	logsID    = "cloudscale/lpg/acme-prod-logs/0a1b2c3d4e5f6a7b"
)

// fill makes a namespace with claims in every state, and one more.
func (w *statusWorld) fill() {
	w.Helper()
	reader := map[string]string{"accessMode": "ReadOnly", "rotateEvery": "720h"}
	if w.old() {
		w.post("", "bucketaccessclasses", "zuber-key", map[string]any{"kind": "BucketAccessClass", "driverName": defaultDriverName, "authenticationType": "Key"})
		w.post("", "bucketaccessclasses", "zuber-reader", map[string]any{"kind": "BucketAccessClass", "driverName": defaultDriverName, "authenticationType": "Key", "parameters": reader})
	}

	w.claim("prod", "photos", photosID, nil)
	photos := w.access("prod", "photos", "photos", "zuber-key", "ReadWrite", map[string]string{"zuber.dev/env-secret": "photos-env"})
	w.grant(photos, "photos", photosID, "a1b2c3d4e5f60718", "7NWKQ3KCYDO4T3GJ2MPH", nil)
	w.secret(photos, "photos-env", map[string]string{"AWS_SECRET_ACCESS_KEY": recognisable})
	viewer := w.access("prod", "viewer", "photos", "zuber-reader", "ReadOnly", map[string]string{"zuber.dev/rotate-credentials-at": "2026-01-02", "zuber.dev/env-secret": "viewer-env"})
	w.grant(viewer, "photos", photosID, "b2c3d4e5f6071829", "XK2M4QHZ7DPL9WTS31VB", reader)
	w.secret(viewer, "zuber-rotation-"+w.uids[viewer], map[string]string{"rotation": `{"handled": "2025-12-01", "rotated": "2025-12-01T03:00:00Z",
"running": {"value": "2026-01-02", "replaced": "9QWERTZ4UIOP8ASDF6GH", "minted": "XK2M4QHZ7DPL9WTS31VB", "delivered": "2026-01-02T02:50:00Z", "grace": 3600000000000}}`})
	w.warn(viewer, "BucketAccess", "EnvSecretRefused", "the key AWS_REGION would stand for two values: rename one with zuber.dev/env-keys", 1)

	const nowhere = `region "rma2" is not served; allowed are lpg, rma (the back end's regions)`
	_, docs := w.claim("prod", "docs", "", nil)
	w.access("prod", "docs", "docs", "zuber-key", "ReadWrite", nil)
	logs, held := w.claim("prod", "logs", logsID, map[string]string{"zuber.dev/wipe-on-delete": "true"})
	const full = `bucket "acme-prod-logs" in region lpg: not deleted: it holds objects, versions or delete markers; empty it, or use a class with bucketDeletionPolicy: DeleteAll`
	if w.old() {
		w.warn(docs, "Bucket", "FailedCreateBucket", nowhere, 12)
		w.warn(held, "Bucket", "FailedDeleteBucket", full, 3)
	} else {
		failed := func(message string) map[string]any {
			return map[string]any{"error": map[string]any{"time": "2026-01-02T02:59:00Z", "message": "COSI Sidecar error: " + message}}
		}
		w.status(docs, failed(nowhere))
		w.status(held, failed(full))
	}
	w.delete(held)
	w.delete(logs)

	w.claim("prod", "archive", archiveID, nil)
	w.grant(w.access("prod", "archive", "archive", "zuber-key", "ReadOnly", nil), "archive", archiveID, "c3d4e5f607182930", "", nil)
	w.post("prod", "bucketclaims", "inbox", map[string]any{"kind": "BucketClaim", "spec": map[string]any{"bucketClassName": "zuber-rma", "protocols": []string{"S3"}}})
	w.access("prod", "lost", "nowhere", "zuber-key", "ReadWrite", nil)
	w.claim("dev", "photos", "stackit/eu01/acme-dev-photos", nil)
}
