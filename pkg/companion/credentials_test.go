package companion

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/zuber-storage/zuber/pkg/provider"
)

const hidden = "do-not-show-me"

const document = `{"metadata":{"name":"bc-uid-1","creationTimestamp":null},"spec":{"bucketName":"named-in-kubernetes","authenticationType":"Key",` +
	`"secretS3":{"endpoint":"https://o.example","region":"r1","accessKeyID":"K1","accessSecretKey":"` + hidden + `"},"secretAzure":null,"protocols":["S3"],"later":12345678901234567890}}`

func TestReadCredentials(t *testing.T) {
	want := credentials{accessKeyID: "K1", secretAccessKey: provider.NewSecret(hidden), endpoint: "https://o.example", region: "r1"}
	for version, data := range map[string]map[string]string{
		v1alpha1: {"BucketInfo": document},
		v1alpha2: {"COSI_S3_ENDPOINT": "https://o.example", "COSI_S3_REGION": "r1", "COSI_S3_ACCESS_KEY_ID": "K1", "COSI_S3_ACCESS_SECRET_KEY": hidden},
	} {
		if got, err := readCredentials(access{meta: meta{version: version, uid: "uid-1"}}, raw(data)); err != nil || got != want {
			t.Errorf("%s: %v, %v", version, got, err)
		}
	}
	for version, all := range map[string][]map[string]string{
		v1alpha1: {
			{}, {"BucketInfo": ""}, {"BucketInfo": "[]"}, {"BucketInfo": document[:200]}, {"BucketInfo": hidden},
			{"BucketInfo": strings.Replace(document, "uid-1", "uid-2", 1)},
			{"BucketInfo": strings.Replace(document, hidden, "", 1)}, {"BucketInfo": strings.Replace(document, `"secretS3"`, `"secretX"`, 1)},
		},
		v1alpha2: {{}, {"COSI_S3_ENDPOINT": "https://o.example", "COSI_S3_ACCESS_KEY_ID": "K1"}, {"COSI_S3_ACCESS_SECRET_KEY": hidden}},
	} {
		for _, data := range all {
			if _, err := readCredentials(access{meta: meta{version: version, uid: "uid-1"}}, raw(data)); err == nil || strings.Contains(err.Error(), hidden) {
				t.Errorf("%s: of %d bytes: %v", version, len(data["BucketInfo"]), err)
			}
		}
	}
}

func raw(data map[string]string) map[string][]byte {
	all := map[string][]byte{}
	for key, value := range data {
		all[key] = []byte(value)
	}
	return all
}

func TestCorrectBucketInfo(t *testing.T) {
	corrected, changed, err := correctBucketInfo([]byte(document), "uid-1", "at-the-cloud")
	if err != nil || !changed {
		t.Fatal(changed, err)
	}
	var before, after map[string]any
	for text, into := range map[string]*map[string]any{strings.Replace(document, "named-in-kubernetes", "at-the-cloud", 1): &before, string(corrected): &after} {
		decoder := json.NewDecoder(strings.NewReader(text))
		decoder.UseNumber()
		if err := decoder.Decode(into); err != nil {
			t.Fatal(err)
		}
	}
	if !reflect.DeepEqual(before, after) {
		t.Error("more than the name of the bucket has changed")
	}
	if again, changed, err := correctBucketInfo(corrected, "uid-1", "at-the-cloud"); err != nil || changed || string(again) != string(corrected) {
		t.Error("corrected twice", changed, err)
	}
}

func TestForeignBucketInfoStays(t *testing.T) {
	for name, text := range map[string]string{
		"of another access": strings.Replace(document, "uid-1", "uid-2", 1),
		"no spec":           `{"metadata":{"name":"bc-uid-1"}}`,
		"no JSON":           hidden,
		"two documents":     document + document,
		"a list":            "[]",
		"nothing":           "",
	} {
		if _, changed, err := correctBucketInfo([]byte(text), "uid-1", "at-the-cloud"); err == nil || changed || strings.Contains(err.Error(), hidden) {
			t.Errorf("%s: %v, %v", name, changed, err)
		}
	}
}
