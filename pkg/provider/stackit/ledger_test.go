package stackit

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/zuber-storage/zuber/pkg/provider"
)

func testEntry(i, keys int) entry {
	e := entry{
		name: fmt.Sprintf("%012x4%03x8%015x", i, i%4096, i), id: fmt.Sprintf("%08x-0000-4000-8000-%012x", i, i),
		urn: fmt.Sprintf("%s%06x", testStem, i), mode: modes()[i%3],
	}
	for k := range keys {
		e.keys = append(e.keys, fingerprint(fmt.Sprintf("key-%d-%d", i, k)))
	}
	if i%5 == 0 {
		e.span = []string{"-a_b", "wxyz"}
	}
	return e
}

// tagText is what the storage takes in keys and values.
var tagText = regexp.MustCompile(`^[a-zA-Z0-9 +\-=._:/@]*$`)

func TestLedgerSurvives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var entries []entry
		for i := range rapid.IntRange(0, 60).Draw(t, "entries") {
			e := testEntry(i, rapid.IntRange(0, maxKeys).Draw(t, "keys"))
			switch rapid.IntRange(0, 4).Draw(t, "kind") {
			case 0:
				e.id, e.urn = "", ""
			case 1:
				e.urn = "urn:sgws:identity::99999999999999999999:group/elsewhere"
			}
			entries = append(entries, e)
		}
		tags, err := encodeLedger(entries, testAdminURN)
		if err != nil {
			t.Fatal(err)
		}
		for k, v := range tags {
			if len(v) > tagValueLimit || v == "" || !tagText.MatchString(k) || !tagText.MatchString(v) {
				t.Fatalf("%s=%s is no tag", k, v)
			}
		}
		back, err := decodeLedger(tags, testAdminURN)
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })
		if len(entries) != len(back) || len(entries) > 0 && !reflect.DeepEqual(back, entries) {
			t.Fatalf("got  %+v\nwant %+v", back, entries)
		}
	})
}

// TestLedgerHoldsWhatThePolicyHolds: also with the most keys for each access.
func TestLedgerHoldsWhatThePolicyHolds(t *testing.T) {
	var entries []entry
	for i := range 127 {
		entries = append(entries, testEntry(i*5+1, maxKeys))
	}
	m := marks{entries: entries, record: record{endpoint: "https://s3.example.org", virtualHosted: true, policy: provider.DeleteAll}}
	tags, err := m.encode("cosi.zuber.dev", "b-1", testAdminURN)
	if err != nil {
		t.Fatal(err)
	}
	if len(tags) > 48 {
		t.Errorf("%d tags", len(tags))
	}
	m.foreign = map[string]string{"a": "1", "b": "2", "c": "3"}
	if _, err := m.encode("cosi.zuber.dev", "b-1", testAdminURN); !errors.Is(err, provider.ErrQuotaExceeded) || !strings.Contains(err.Error(), "50") {
		t.Errorf("51 tags: %v", err)
	}
}

func TestMalformedLedger(t *testing.T) {
	good, err := encodeLedger([]entry{testEntry(1, 1), testEntry(2, 2)}, testAdminURN)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"empty": "", "fields": "RW:a:b", "mode": "XX:AAAAAAAAAAAAAAAAAAAAAA:::",
		"no span": "RW+:AAAAAAAAAAAAAAAAAAAAAA:::", "half a span": "RW+abc:AAAAAAAAAAAAAAAAAAAAAA:::", "name": "RW:short:::", "no name": "RW::::",
		"ID without URN": "RW:AAAAAAAAAAAAAAAAAAAAAA:AAAAAAAAAAAAAAAAAAAAAA::", "URN without ID": "RW:AAAAAAAAAAAAAAAAAAAAAA:::abc",
		"fingerprints": "RW:AAAAAAAAAAAAAAAAAAAAAA::abcd:",
	} {
		tags := maps.Clone(good)
		tags[tagAccess+"77"] = value
		entries, err := decodeLedger(tags, testAdminURN)
		if !errors.Is(err, provider.ErrPrecondition) || !strings.Contains(err.Error(), tagAccess+"77") {
			t.Errorf("%s: %v", name, err)
		}
		if len(entries) != 2 {
			t.Errorf("%s: %d good entries are left", name, len(entries))
		}
	}
}

func FuzzLedger(f *testing.F) {
	f.Add("RW+abcdefgh:AAAAAAAAAAAAAAAAAAAAAA:AAAAAAAAAAAAAAAAAAAAAA:abcdef:a1b2c3@RO:AAAAAAAAAAAAAAAAAAAAAA:::")
	f.Fuzz(func(t *testing.T, value string) {
		entries, err := decodeLedger(map[string]string{tagAccess + "00": value}, testAdminURN)
		if err != nil {
			return
		}
		for _, e := range entries {
			text, err := e.encode(testAdminURN)
			if err != nil {
				t.Fatalf("%q reads as %+v and cannot be written: %v", value, e, err)
			}
			if again, err := decodeEntry(text, testAdminURN); err != nil || !reflect.DeepEqual(again, e) {
				t.Fatalf("%+v became %+v (%v)", e, again, err)
			}
		}
	})
}

func TestMarksKeepForeignTags(t *testing.T) {
	tags := map[string]string{
		tagManagedBy: "d", tagBucket: "b-1", tagPolicy: "DeleteAll", tagEndpoint: "http.9000.s3.example.org", tagAddressing: "virtual",
		tagIntent: "x", tagClaim: "ns/photos", tagCluster: "c", "NTAP-SG-ILM-BUCKET-TAG": "gold", "team": "Ä und ö",
	}
	m, err := decodeMarks(tags, testAdminURN)
	if err != nil {
		t.Fatal(err)
	}
	want := record{endpoint: "http://s3.example.org:9000", virtualHosted: true, policy: provider.DeleteAll, claim: "ns/photos", cluster: "c"}
	if m.record != want || m.intent != "x" || len(m.foreign) != 2 {
		t.Errorf("%+v", m)
	}
	back, err := m.encode("d", "b-1", testAdminURN)
	if err != nil || !maps.Equal(back, tags) {
		t.Errorf("%v, %v", back, err)
	}
	if untagged(tags) || !untagged(map[string]string{"NTAP-SG-ILM-BUCKET-TAG": "gold"}) || !untagged(nil) {
		t.Error("untagged takes the storage system's own tags for somebody's")
	}
	for _, c := range []struct {
		driver, cluster, bucket string
		tags                    map[string]string
		want                    bool
	}{
		{"d", "c", "b-1", tags, true}, {"d", "c", "b-2", tags, false}, {"e", "c", "b-1", tags, false}, {"d", "c", "b-1", nil, false},
		{"d", "other", "b-1", tags, false}, {"d", "", "b-1", tags, false},
		{"d", "c", "b-1", map[string]string{tagManagedBy: "d", tagBucket: "b-1"}, true},
	} {
		p := &Provider{config: Config{DriverName: c.driver, ClusterID: c.cluster}}
		if got := p.ours(bucketOf(c.bucket, c.tags)); got != c.want {
			t.Errorf("%+v: ours is %t", c, got)
		}
	}
	delete(tags, tagEndpoint)
	tags[tagEndpoint] = "gopher"
	if _, err := decodeMarks(tags, testAdminURN); !errors.Is(err, provider.ErrPrecondition) || !strings.Contains(err.Error(), tagEndpoint) {
		t.Errorf("malformed endpoint: %v", err)
	}
}

func TestRecord(t *testing.T) {
	regional := endpoint{"https", "object.storage.eu01.onstackit.cloud", "443"}
	for name, c := range map[string]struct {
		spec provider.BucketSpec
		want record
		text string // of the refusal
	}{
		"plain":    {provider.BucketSpec{}, record{policy: provider.DeleteIfEmpty}, ""},
		"regional": {provider.BucketSpec{Endpoint: "https://OBJECT.storage.eu01.onstackit.cloud:443/"}, record{policy: provider.DeleteIfEmpty}, ""},
		"other":    {provider.BucketSpec{Endpoint: "http://h:81", DeletionPolicy: provider.DeleteAll}, record{endpoint: "http://h:81", policy: provider.DeleteAll}, ""},
		"policy":   {provider.BucketSpec{DeletionPolicy: "Maybe"}, record{}, `"Maybe"`},
		"dot":      {provider.BucketSpec{Name: "a.b", VirtualHosted: true}, record{}, "path-style"},
		"IPv6":     {provider.BucketSpec{Endpoint: "http://[::1]:81"}, record{}, "endpoints"},
		"claim":    {provider.BucketSpec{Claim: provider.ClaimRef{Namespace: "ns", Name: "a.b"}}, record{policy: provider.DeleteIfEmpty, claim: "ns/a.b"}, ""},
		"no claim": {provider.BucketSpec{Claim: provider.ClaimRef{Namespace: "ns/x", Name: "y"}}, record{}, `"ns/x/y"`},
		"user":     {provider.BucketSpec{Endpoint: "https://user:pw@h"}, record{}, "http(s)://host[:port]"},
	} {
		got, err := (&Provider{}).recordOf(c.spec, regional)
		if c.text == "" && (err != nil || got != c.want) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if c.text != "" && (!errors.Is(err, provider.ErrInvalidArgument) || !strings.Contains(err.Error(), c.text) || strings.Contains(err.Error(), "pw")) {
			t.Errorf("%s: %v", name, err)
		}
	}
	base := record{policy: provider.DeleteIfEmpty}
	for parameter, asked := range map[string]record{
		"endpointURL":           {endpoint: "http://h", policy: provider.DeleteIfEmpty},
		"s3PathStyle":           {virtualHosted: true, policy: provider.DeleteIfEmpty},
		"bucketDeletionPolicy":  {policy: provider.DeleteAll},
		"BucketClaim ns/photos": {policy: provider.DeleteIfEmpty, claim: "ns/photos"},
	} {
		if err := base.differs(asked); !errors.Is(err, provider.ErrAlreadyExists) || !strings.Contains(err.Error(), parameter) {
			t.Errorf("%s: %v", parameter, err)
		}
	}
	if err := base.differs(base); err != nil {
		t.Error(err)
	}
}
