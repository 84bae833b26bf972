package companion

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestParseEnvKeys(t *testing.T) {
	for value, want := range map[string]map[string]string{
		"":                       {},
		" ":                      {},
		"accessKeyID=ACCESS_KEY": {"accessKeyID": "ACCESS_KEY"},
		" bucket = B , region=_r2 ,bucketURL=RESTIC_URL": {"bucket": "B", "region": "_r2", "bucketURL": "RESTIC_URL"},
		"bucket=S3_REGION,region=S3_BUCKET":              {"bucket": "S3_REGION", "region": "S3_BUCKET"}, // exchanged
	} {
		all := defaultKeys()
		maps.Copy(all, want)
		if got, err := parseEnvKeys(value); err != nil || !maps.Equal(got, all) {
			t.Errorf("%q: %v, %v", value, got, err)
		}
	}
}

func TestBadEnvKeys(t *testing.T) {
	for value, want := range map[string]string{
		"accessKeyID":                        "want field=KEY",
		"accessKeyID=A,":                     "want field=KEY",
		",":                                  "want field=KEY",
		"AWS_REGION=R":                       `there is no field "AWS_REGION": want one of accessKeyID,`,
		"=A":                                 `there is no field ""`,
		"bucket=":                            "the field bucket has no key",
		"bucket= ":                           "the field bucket has no key",
		"bucket=A,bucket=B":                  "the field bucket is named twice",
		"bucket=A,region=A":                  "the fields bucket and region both have the key A",
		"bucket=AWS_REGION":                  "the fields awsRegion and bucket both have the key AWS_REGION",
		"bucket=1A":                          "no variable's name",
		"bucket=A-B":                         "no variable's name",
		"bucket=A B":                         "no variable's name",
		"bucket=A=B":                         "no variable's name",
		"bucket=Ä":                           "no variable's name",
		"bucket=" + strings.Repeat("A", 254): "no variable's name",
	} {
		if got, err := parseEnvKeys(value); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v, want %q", value, got, err, want)
		}
	}
}

// FuzzParseEnvKeys: whatever is accepted has a legal key of its own for every
// field, and whatever is refused is said in a short line.
func FuzzParseEnvKeys(f *testing.F) {
	for _, seed := range []string{"", "bucket=B", "bucket=B,region=B", "a=b", ",,", "bucket==", "bucket=\x00", "region=S3_BUCKET,bucket=S3_REGION"} {
		f.Add(seed)
	}
	fields := slices.Sorted(maps.Keys(defaultKeys()))
	f.Fuzz(func(t *testing.T, value string) {
		keys, err := parseEnvKeys(value)
		if err != nil {
			if len(err.Error()) > eventMessage || strings.ContainsAny(err.Error(), "\n\r\x00") {
				t.Errorf("%q: error %q", value, err)
			}
			return
		}
		if !slices.Equal(slices.Sorted(maps.Keys(keys)), fields) {
			t.Errorf("%q: fields %v", value, keys)
		}
		taken := map[string]bool{}
		for field, key := range keys {
			if taken[key] || !envKey.MatchString(key) || len(key) > maxEnvKey {
				t.Errorf("%q: field %s has the key %q", value, field, key)
			}
			taken[key] = true
		}
	})
}
