package cloudscale

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// measured are the statements that were tried on real gateways: the bucket is
// BKT, the owner A, the accesses B, B2 and B3.
const measured = `{"Version":"2012-10-17","Id":"zuber","Statement":[
 {"Sid":"zuber-owner","Effect":"Allow","Principal":{"AWS":["arn:aws:iam:::user/A"]},"Action":["s3:*"],"Resource":["arn:aws:s3:::BKT","arn:aws:s3:::BKT/*"]},
 {"Sid":"zuber-rw-1-b","Effect":"Allow","Principal":{"AWS":["arn:aws:iam:::user/B"]},
  "Action":["s3:ListBucket","s3:ListBucketVersions","s3:ListBucketMultipartUploads","s3:GetBucketLocation","s3:GetBucketVersioning"],"Resource":["arn:aws:s3:::BKT"]},
 {"Sid":"zuber-rw-1-o","Effect":"Allow","Principal":{"AWS":["arn:aws:iam:::user/B"]},
  "Action":["s3:GetObject","s3:GetObjectVersion","s3:PutObject","s3:DeleteObject","s3:DeleteObjectVersion","s3:AbortMultipartUpload","s3:ListMultipartUploadParts",
   "s3:GetObjectTagging","s3:GetObjectVersionTagging","s3:PutObjectTagging","s3:PutObjectVersionTagging","s3:DeleteObjectTagging","s3:DeleteObjectVersionTagging"],
  "Resource":["arn:aws:s3:::BKT","arn:aws:s3:::BKT/*"]},
 {"Sid":"zuber-rw-1-d","Effect":"Deny","Principal":{"AWS":["arn:aws:iam:::user/B"]},"Action":["s3:PutObjectAcl","s3:PutObjectVersionAcl"],"Resource":["arn:aws:s3:::BKT/*"]},
 {"Sid":"zuber-ro-2-b","Effect":"Allow","Principal":{"AWS":["arn:aws:iam:::user/B2"]},
  "Action":["s3:ListBucket","s3:ListBucketVersions","s3:GetBucketLocation","s3:GetBucketVersioning"],"Resource":["arn:aws:s3:::BKT"]},
 {"Sid":"zuber-ro-2-o","Effect":"Allow","Principal":{"AWS":["arn:aws:iam:::user/B2"]},
  "Action":["s3:GetObject","s3:GetObjectVersion","s3:GetObjectTagging","s3:GetObjectVersionTagging"],"Resource":["arn:aws:s3:::BKT/*"]},
 {"Sid":"zuber-wo-3-b","Effect":"Allow","Principal":{"AWS":["arn:aws:iam::t:user/B3"]},"Action":["s3:GetBucketLocation","s3:ListBucketMultipartUploads"],"Resource":["arn:aws:s3:::BKT"]},
 {"Sid":"zuber-wo-3-o","Effect":"Allow","Principal":{"AWS":["arn:aws:iam::t:user/B3"]},"Action":["s3:PutObject","s3:AbortMultipartUpload","s3:ListMultipartUploadParts"],"Resource":["arn:aws:s3:::BKT/*"]},
 {"Sid":"zuber-wo-3-d","Effect":"Deny","Principal":{"AWS":["arn:aws:iam::t:user/B3"]},
  "Action":["s3:GetObject","s3:GetObjectVersion","s3:GetObjectAcl","s3:GetObjectVersionAcl","s3:PutObjectAcl","s3:PutObjectVersionAcl"],"Resource":["arn:aws:s3:::BKT/*"]},
 {"Sid":"zuber-rw-4-x","Effect":"Deny","Principal":{"AWS":["arn:aws:iam:::user/B4"]},"Action":["s3:*"],"Resource":["arn:aws:s3:::BKT","arn:aws:s3:::BKT/*"]}
]}`

func TestPolicyIsTheMeasuredOne(t *testing.T) {
	got, err := render("BKT", "A", []member{
		{id: "4", uid: "B4", mode: provider.ReadWrite, revoked: true},
		{id: "3", uid: "t$B3", mode: provider.WriteOnly},
		{id: "1", uid: "B", mode: provider.ReadWrite},
		{id: "2", uid: "B2", mode: provider.ReadOnly},
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.ReplaceAll(strings.ReplaceAll(measured, "\n", ""), "  ", ""); squeeze(got) != squeeze(want) {
		t.Errorf("got\n%s\nwant\n%s", squeeze(got), squeeze(want))
	}
}

func squeeze(s string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(s, ", ", ",")), "")
}

// Whatever the users are called, no Deny hits the owner and nobody but the owner
// may do everything.
func TestPolicyNeverLocksTheOwnerOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		uid := rapid.OneOf(rapid.StringMatching(`[a-z0-9$*?/:"]{0,12}`), rapid.SampledFrom([]string{"owner", "a", "t$owner", "*", "root"}))
		owner := uid.Draw(t, "owner")
		var members []member
		for i := range rapid.IntRange(0, 5).Draw(t, "n") {
			members = append(members, member{
				id: fmt.Sprint(i), uid: uid.Draw(t, "uid"), revoked: rapid.Bool().Draw(t, "revoked"),
				mode: rapid.SampledFrom([]provider.Mode{provider.ReadWrite, provider.ReadOnly, provider.WriteOnly}).Draw(t, "mode"),
			})
		}
		text, err := render("bkt", owner, members)
		bad := !uidPattern.MatchString(owner) || slices.ContainsFunc(members, func(m member) bool {
			return m.uid == owner || !uidPattern.MatchString(m.uid)
		})
		if bad != (err != nil) {
			t.Fatalf("got %v", err)
		}
		if err != nil {
			return
		}
		var doc policyDocument
		if err := json.Unmarshal([]byte(text), &doc); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(text, "NotPrincipal") || strings.Contains(text, "NotAction") {
			t.Error("a dangerous element")
		}
		ownerARN, _ := principalOf(owner)
		for i, s := range doc.Statement {
			isOwner := slices.Equal(s.Principal.AWS, ownerARN.AWS)
			if isOwner != (i == 0) || s.Effect == deny && isOwner || s.Effect == allow && s.Action[0] == "s3:*" && !isOwner {
				t.Errorf("statement %+v", s)
			}
		}
	})
}

func TestPolicyRefusesTheOwnerAsAnAccess(t *testing.T) {
	_, err := render("bkt", "a", []member{{id: "1", uid: "a", mode: provider.WriteOnly}})
	if !errors.Is(err, provider.ErrPrecondition) {
		t.Error(err)
	}
}

func TestPolicyThatIsTooLong(t *testing.T) {
	members := func(n int) (all []member) {
		for i := range n {
			id := fmt.Sprintf("%064d", i)
			all = append(all, member{id: id, uid: id, mode: provider.ReadWrite})
		}
		return all
	}
	if _, err := render("bucket", "owner", members(500)); err != nil {
		t.Error(err)
	}
	_, err := render("bucket", "owner", members(1500))
	if !errors.Is(err, provider.ErrQuotaExceeded) || !strings.Contains(err.Error(), "1500 accesses") {
		t.Error(err)
	}
}
