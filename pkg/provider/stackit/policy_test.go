package stackit

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

const (
	testAdminURN = "urn:sgws:identity::12345678901234567890:group/credentials-group-abcdef"
	testStem     = "urn:sgws:identity::12345678901234567890:group/credentials-group-"
)

func testMembers(n int) []member {
	var all []member
	for i := range n {
		all = append(all, member{fmt.Sprintf("%s%06x", testStem, i), modes()[i%3]})
	}
	return all
}

func TestPolicyWithoutAccesses(t *testing.T) {
	const want = `{"Statement":[{"Sid":"deny-outsiders","Effect":"Deny","NotPrincipal":{"AWS":["` + testAdminURN + `"]},` +
		`"Action":"s3:*","Resource":["arn:aws:s3:::b-1","arn:aws:s3:::b-1/*"]}]}`
	if got := render("b-1", testAdminURN, nil); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestPolicyShape: every group is exempt from the first statement, stands in
// exactly one other, and the admin stands in none.
func TestPolicyShape(t *testing.T) {
	members := testMembers(7)
	var doc document
	if err := json.Unmarshal([]byte(render("b-1", testAdminURN, members)), &doc); err != nil {
		t.Fatal(err)
	}
	if len(doc.Statement) != 4 {
		t.Fatalf("%d statements", len(doc.Statement))
	}
	outsiders := doc.Statement[0].NotPrincipal.AWS
	if !slices.IsSorted(outsiders) || len(outsiders) != len(members)+1 || !slices.Contains(outsiders, testAdminURN) {
		t.Errorf("exempt are %v", outsiders)
	}
	in := map[string]string{}
	for _, s := range doc.Statement {
		if s.Effect != "Deny" || !slices.Equal(s.Resource, []string{"arn:aws:s3:::b-1", "arn:aws:s3:::b-1/*"}) {
			t.Errorf("statement %+v", s)
		}
		if s.Principal == nil {
			continue
		}
		if s.Action != "" || len(s.NotAction) == 0 {
			t.Errorf("statement %s allows by something else than NotAction", s.Sid)
		}
		for _, urn := range s.Principal.AWS {
			if urn == testAdminURN || in[urn] != "" {
				t.Errorf("%s stands in %s and %s", urn, in[urn], s.Sid)
			}
			in[urn] = s.Sid
		}
	}
	for _, m := range members {
		if in[m.urn] != string(m.mode) {
			t.Errorf("%s has mode %s, want %s", m.urn, in[m.urn], m.mode)
		}
	}
}

func TestPolicyDependsOnTheSetAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		members := testMembers(rapid.IntRange(0, 20).Draw(t, "n"))
		shuffled := rapid.Permutation(members).Draw(t, "order")
		if render("b-1", testAdminURN, members) != render("b-1", testAdminURN, shuffled) {
			t.Fatal("the order of the ledger shows")
		}
	})
}

// TestModes holds the table against what each mode is for.
func TestModes(t *testing.T) {
	for mode, c := range map[provider.Mode]struct{ may, mayNot []string }{
		provider.ReadWrite: {
			[]string{"s3:GetObject", "s3:PutObject", "s3:PutOverwriteObject", "s3:DeleteObject", "s3:ListBucket", "s3:AbortMultipartUpload"},
			[]string{"s3:DeleteObjectVersion"},
		},
		provider.ReadOnly: {
			[]string{"s3:GetObject", "s3:ListBucket", "s3:GetObjectVersion"},
			[]string{"s3:PutObject", "s3:PutOverwriteObject", "s3:DeleteObject", "s3:PutObjectTagging", "s3:AbortMultipartUpload", "s3:ListBucketMultipartUploads"},
		},
		provider.WriteOnly: {
			[]string{"s3:PutObject", "s3:PutOverwriteObject", "s3:AbortMultipartUpload"},
			[]string{"s3:GetObject", "s3:GetObjectVersion", "s3:GetObjectTagging", "s3:ListBucket", "s3:ListBucketVersions", "s3:DeleteObject"},
		},
	} {
		got := actionsOf(mode)
		for _, a := range append(c.may, "s3:GetBucketLocation") {
			if !slices.Contains(got, a) {
				t.Errorf("%s may not %s", mode, a)
			}
		}
		never := []string{"s3:GetBucketPolicy", "s3:PutBucketPolicy", "s3:DeleteBucketPolicy", "s3:PutBucketTagging", "s3:DeleteBucket",
			"s3:PutBucketVersioning", "s3:PutLifecycleConfiguration", "s3:BypassGovernanceRetention", "s3:*"}
		for _, a := range append(c.mayNot, never...) {
			if slices.Contains(got, a) {
				t.Errorf("%s may %s", mode, a)
			}
		}
	}
	if len(actionsOf("no such mode")) != 0 {
		t.Error("an unknown mode has actions")
	}
}

// TestPolicySize: the limit is met where the facts say, and the refusal names it.
func TestPolicySize(t *testing.T) {
	bucket := strings.Repeat("b", 63)
	fits := 0
	for n := 1; checkPolicySize(render(bucket, testAdminURN, testMembers(n)), n) == nil; n++ {
		fits = n
	}
	if fits < 120 || fits > 130 {
		t.Errorf("%d accesses fit, want about 127", fits)
	}
	err := checkPolicySize(render(bucket, testAdminURN, testMembers(fits+1)), fits+1)
	if !errors.Is(err, provider.ErrQuotaExceeded) || !strings.Contains(err.Error(), "20480") || !strings.Contains(err.Error(), fmt.Sprintf("about %d accesses", fits)) {
		t.Errorf("%d accesses: %v", fits+1, err)
	}
}

func TestSamePolicy(t *testing.T) {
	doc := render("b-1", testAdminURN, testMembers(2))
	list := `{"Statement":[{"Sid":"x","Effect":"Deny","Principal":{"AWS":["u1","u2"]},"NotAction":["s3:A","s3:B"],"Resource":["r"]},{"Sid":"y"}]}`
	for name, c := range map[string]struct {
		a, b string
		same bool
	}{
		"itself":            {doc, doc, true},
		"spaces":            {doc, strings.ReplaceAll(doc, ",", ",\n  "), true},
		"version":           {doc, strings.Replace(doc, "{", `{"Version":"2012-10-17","Id":"",`, 1), true},
		"orders":            {list, `{"Statement":[{"Sid":"y"},{"Resource":"r","NotAction":["s3:B","s3:A"],"Principal":{"AWS":["u2","u1"]},"Effect":"Deny","Sid":"x"}]}`, true},
		"one statement":     {`{"Statement":[{"Sid":"x"}]}`, `{"Statement":{"Sid":"x"}}`, true},
		"one more action":   {list, strings.Replace(list, `"s3:B"`, `"s3:B","s3:C"`, 1), false},
		"condition":         {list, strings.Replace(list, `"Sid":"y"`, `"Sid":"y","Condition":{"Bool":{"k":true}}`, 1), false},
		"other effect":      {list, strings.Replace(list, "Deny", "Allow", 1), false},
		"principal turned":  {list, strings.Replace(list, "Principal", "NotPrincipal", 1), false},
		"none":              {doc, "", false},
		"not JSON":          {doc, "<xml/>", false},
		"statement removed": {list, `{"Statement":[{"Sid":"y"}]}`, false},
	} {
		if got := samePolicy(c.a, c.b); got != c.same {
			t.Errorf("%s: %v", name, got)
		}
	}
}
