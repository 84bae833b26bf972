package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"
)

// TestNonEmpty: a bucket with data waits, and so does its claim, until somebody
// empties it. The accesses are gone by then, so that takes the administrator of
// the project, with the key of the bucket's owner.
func TestNonEmpty(t *testing.T) {
	s := together(t)
	claim := s.claim("photos", s.class(cloudscale))
	access := s.access("photos", "photos", s.accessClass())
	info := s.bucketInfo(access)
	client, bucket := info.s3(), s.bucket(claim)
	if err := client.put(t.Context(), "precious", "data"); err != nil {
		t.Fatal(err)
	}
	s.deleteSoon(claim)
	s.told(bucket, "it holds objects, versions or delete markers")
	s.freed(access)
	if err := client.remove(t.Context(), "precious"); !refused(err) {
		t.Errorf("the key of a deleted access may still remove: %v", err)
	}
	for _, o := range []object{claim, bucket} {
		if s.absent(t.Context(), o) == nil {
			t.Errorf("%s is gone, although its bucket holds data", o)
		}
	}
	owner, err := s.owner(bucket.name())
	if err != nil {
		t.Fatal(err)
	}
	info.Spec.SecretS3.AccessKeyID, info.Spec.SecretS3.AccessSecretKey = owner.AccessKey, owner.SecretKey
	admin := info.s3()
	if content, err := admin.read(t.Context(), "precious"); err != nil || content != "data" {
		t.Fatalf("the data: %q, %v", content, err)
	}
	if err := admin.remove(t.Context(), "precious"); err != nil {
		t.Fatal(err)
	}
	s.gone(claim, bucket)
}

// ownerKey is a key as cloudscale.ch's API shows it.
type ownerKey struct {
	AccessKey string `json:"access_key"`
	SecretKey string `json:"secret_key"`
}

// owner reads the key of the objects user that a bucket of cloudscale.ch belongs
// to, and which is named after it.
func (s *story) owner(bucket string) (ownerKey, error) {
	cloud := s.Emulator.Cloudscale()
	var users []struct {
		DisplayName string     `json:"display_name"`
		Keys        []ownerKey `json:"keys"`
	}
	if err := fetch(s.Context(), cloud.APIURL+"v1/objects-users", cloud.Token, &users); err != nil {
		return ownerKey{}, err
	}
	for _, user := range users {
		if user.DisplayName == "zuber-"+bucket && len(user.Keys) > 0 {
			return user.Keys[0], nil
		}
	}
	return ownerKey{}, fmt.Errorf("there is no objects user zuber-%s with a key", bucket)
}

func fetch(ctx context.Context, url, token string, into any) (err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, resp.Status)
	}
	return json.NewDecoder(resp.Body).Decode(into)
}
