package v1alpha2

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strings"

	cosi "github.com/zuber-storage/zuber/pkg/cosi/v1alpha2pb"
	"github.com/zuber-storage/zuber/test/e2e/cluster"
)

// identifier is what an ID must be; its length is held by the definitions.
var identifier = regexp.MustCompile(`^[a-zA-Z0-9/._-]+$`)

var modes = map[string]cosi.AccessMode_Mode{"ReadWrite": cosi.AccessMode_READ_WRITE, "ReadOnly": cosi.AccessMode_READ_ONLY, "WriteOnly": cosi.AccessMode_WRITE_ONLY}

// access grants an access once all its claims are ready, and revokes it.
func (p *Peer) access(ctx context.Context, access object) error {
	if access.deleted() {
		return p.revoke(ctx, access)
	}
	if p.called[access.text("metadata", "uid")] && access.ready() {
		return nil
	}
	class, err := p.get(ctx, "bucketaccessclasses", "", access.text("spec", "bucketAccessClassName"))
	if err != nil || class.text("spec", "driverName") != p.driver {
		return err
	}
	claims := access.list("spec", "bucketClaims")
	if len(claims) > 1 && class.text("spec", "multiBucketAccess") != "MultipleBuckets" {
		return fmt.Errorf("class %s does not allow several buckets", class.text("metadata", "name"))
	}
	if err := p.protect(ctx, "bucketaccesses", access); err != nil {
		return err
	}
	var accessed []map[string]any
	secrets := map[string]string{} // by bucket ID
	for _, one := range claims {
		claim, err := p.get(ctx, "bucketclaims", access.text("metadata", "namespace"), one.text("bucketClaimName"))
		if err != nil {
			return err
		}
		bucket, err := p.get(ctx, "buckets", "", claim.text("status", "boundBucketName"))
		if err != nil || !claim.ready() {
			return fmt.Errorf("claim %s is not ready", one.text("bucketClaimName"))
		}
		if err := p.reserve(ctx, access, one.text("accessSecretName")); err != nil {
			return err
		}
		id := bucket.text("status", "bucketID")
		secrets[id] = one.text("accessSecretName")
		accessed = append(accessed, map[string]any{
			"bucketName": bucket.text("metadata", "name"), "bucketID": id,
			"bucketClaimName": one.text("bucketClaimName"), "accessMode": one.text("accessMode"),
		})
	}
	return p.grant(ctx, access, class, accessed, secrets)
}

func (p *Peer) grant(ctx context.Context, access, class object, accessed []map[string]any, secrets map[string]string) error {
	request := &cosi.DriverGrantBucketAccessRequest{
		AccountName: "ba-" + access.text("metadata", "uid"), Protocol: &cosi.ObjectProtocol{Type: cosi.ObjectProtocol_S3},
		AuthenticationType: &cosi.AuthenticationType{Type: cosi.AuthenticationType_KEY}, Parameters: class.parameters("spec", "parameters"),
	}
	for _, one := range accessed {
		request.Buckets = append(request.Buckets, &cosi.DriverGrantBucketAccessRequest_AccessedBucket{
			BucketId: one["bucketID"].(string), AccessMode: &cosi.AccessMode{Mode: modes[one["accessMode"].(string)]},
		})
	}
	// Upstream sends them in a random order.
	rand.Shuffle(len(request.Buckets), func(i, j int) { //nolint:gosec // no secret depends on it
		request.Buckets[i], request.Buckets[j] = request.Buckets[j], request.Buckets[i]
	})
	response, err := p.rpc.DriverGrantBucketAccess(ctx, request)
	if err != nil {
		return refused(err)
	}
	account, key := response.GetAccountId(), response.GetCredentials().GetS3()
	if !identifier.MatchString(account) || len(response.GetBuckets()) != len(request.GetBuckets()) || key.GetAccessKeyId() == "" || key.GetAccessSecretKey() == "" {
		return fmt.Errorf("the driver's answer for %s does not hold: account %q, %d buckets", request.GetAccountName(), account, len(response.GetBuckets()))
	}
	for _, one := range response.GetBuckets() {
		info, secret := one.GetBucketInfo().GetS3(), secrets[one.GetBucketId()]
		style := map[cosi.S3AddressingStyle_Style]string{cosi.S3AddressingStyle_PATH: "path", cosi.S3AddressingStyle_VIRTUAL: "virtual"}[info.GetAddressingStyle().GetStyle()]
		if secret == "" || info.GetBucketId() == "" || info.GetEndpoint() == "" || info.GetRegion() == "" || style == "" {
			return fmt.Errorf("the driver's answer for bucket %q does not hold", one.GetBucketId())
		}
		data := map[string]string{
			"COSI_PROTOCOL": "S3", "COSI_S3_BUCKET_ID": info.GetBucketId(), "COSI_S3_ENDPOINT": info.GetEndpoint(), "COSI_S3_REGION": info.GetRegion(),
			"COSI_S3_ADDRESSING_STYLE": style, "COSI_S3_ACCESS_KEY_ID": key.GetAccessKeyId(), "COSI_S3_ACCESS_SECRET_KEY": key.GetAccessSecretKey(),
		}
		if _, err := p.cluster.Send(ctx, http.MethodPatch, secretPath(access, secret), map[string]any{"stringData": data}); err != nil {
			return err
		}
	}
	p.called[access.text("metadata", "uid")] = true
	return p.patch(ctx, "bucketaccesses", access, "/status", map[string]any{"status": map[string]any{
		"accountID": account, "accessedBuckets": accessed, "driverName": p.driver, "authenticationType": "Key",
		"parameters": request.GetParameters(), "readyToUse": true, "error": nil,
	}})
}

// reserve makes the Secret before the driver is asked. One that is there already
// must be the access's own.
func (p *Peer) reserve(ctx context.Context, access object, name string) error {
	got, err := p.cluster.Get(ctx, secretPath(access, name))
	if errors.Is(err, cluster.ErrNotFound) {
		_, err = p.cluster.Send(ctx, http.MethodPost, secretPath(access, ""), map[string]any{
			"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{
				"name": name, "finalizers": []string{finalizer},
				"ownerReferences": []map[string]any{{
					"apiVersion": access.text("apiVersion"), "kind": "BucketAccess", "name": access.text("metadata", "name"), "uid": access.text("metadata", "uid"), "controller": true,
				}},
			},
		})
		return err
	}
	if owners := object(got).list("metadata", "ownerReferences"); err == nil && (len(owners) != 1 || owners[0].text("uid") != access.text("metadata", "uid")) {
		return fmt.Errorf("Secret %s belongs to somebody else", name) //nolint:staticcheck // as Kubernetes writes a kind
	}
	return err
}

// revoke removes the Secrets first, as upstream does.
func (p *Peer) revoke(ctx context.Context, access object) error {
	if access.at("metadata", "finalizers") == nil {
		return nil
	}
	for _, one := range access.list("spec", "bucketClaims") {
		secret := secretPath(access, one.text("accessSecretName"))
		got, err := p.cluster.Get(ctx, secret)
		if errors.Is(err, cluster.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		if owners := object(got).list("metadata", "ownerReferences"); len(owners) != 1 || owners[0].text("uid") != access.text("metadata", "uid") {
			continue
		}
		if _, err := p.cluster.Send(ctx, http.MethodPatch, secret, map[string]any{"metadata": map[string]any{"finalizers": nil}}); err != nil {
			return err
		}
		if _, err := p.cluster.Send(ctx, http.MethodDelete, secret, nil); err != nil && !errors.Is(err, cluster.ErrNotFound) {
			return err
		}
	}
	if account := access.text("status", "accountID"); account != "" {
		request := &cosi.DriverRevokeBucketAccessRequest{
			AccountId: account, Protocol: &cosi.ObjectProtocol{Type: cosi.ObjectProtocol_S3},
			AuthenticationType: &cosi.AuthenticationType{Type: cosi.AuthenticationType_KEY}, Parameters: access.parameters("status", "parameters"),
		}
		for _, one := range access.list("status", "accessedBuckets") {
			request.Buckets = append(request.Buckets, &cosi.DriverRevokeBucketAccessRequest_AccessedBucket{BucketId: one.text("bucketID")})
		}
		if _, err := p.rpc.DriverRevokeBucketAccess(ctx, request); err != nil {
			return refused(err)
		}
	}
	return p.release(ctx, "bucketaccesses", access)
}

// secretPath is where a Secret beside the access is; without a name, where all are.
func secretPath(access object, name string) string {
	return strings.TrimSuffix("/api/v1/namespaces/"+access.text("metadata", "namespace")+"/secrets/"+name, "/")
}
