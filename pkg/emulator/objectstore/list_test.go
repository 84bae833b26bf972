package objectstore

import (
	"fmt"
	"net/url"
	"slices"
	"sort"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// naive lists keys and common prefixes the slow way, in order.
func naive(keys []string, prefix, delimiter string) []string {
	var out []string
	for _, key := range keys {
		rest, ok := strings.CutPrefix(key, prefix)
		if !ok {
			continue
		}
		if i := strings.Index(rest, delimiter); delimiter != "" && i >= 0 {
			key = prefix + rest[:i+len(delimiter)] + " (prefix)"
		}
		if !slices.Contains(out, key) {
			out = append(out, key)
		}
	}
	return out
}

// pages collects all pages of a listing, whose parameters differ among the calls.
func pages(t *rapid.T, tb testing.TB, c *client, path string, next func(answer) (entries []string, query string, err error)) []string {
	var all []string
	query := ""
	for range 100 {
		a := c.call(tb, "GET", path+query, "")
		entries, more, err := next(a)
		if err != nil || a.status != 200 {
			t.Fatalf("%s: %v %v", path+query, a, err)
		}
		all = append(all, entries...)
		if more == "" {
			return all
		}
		query = more
	}
	t.Fatalf("%s: the listing does not end", path)
	return nil
}

func entriesOf(keys []string, prefixes []commonPrefixXML) []string {
	for _, p := range prefixes {
		keys = append(keys, p.Prefix+" (prefix)")
	}
	sort.Strings(keys)
	return keys
}

// All listings, page by page, give what the naive listing gives, whatever the keys and the page size.
func TestListingPages(t *testing.T) {
	l := newLab(t)
	a := l.user("A")
	rapid.Check(t, func(rt *rapid.T) {
		l.store.mu.Lock()
		delete(l.store.buckets, "l-bkt")
		l.store.mu.Unlock()
		a.must(t, "PUT", "/l-bkt", "")
		word := rapid.StringMatching(`[ab/%]{1,4}`)
		keys := rapid.SliceOfNDistinct(word, 0, 12, rapid.ID).Draw(rt, "keys")
		prefix := rapid.OneOf(rapid.Just(""), word).Draw(rt, "prefix")
		delimiter := rapid.SampledFrom([]string{"", "/", "ab"}).Draw(rt, "delimiter")
		size := rapid.IntRange(1, 5).Draw(rt, "page size")
		for _, key := range keys {
			a.must(t, "PUT", "/l-bkt/"+awsPath(key), "x")
			a.must(t, "POST", "/l-bkt/"+awsPath(key)+"?uploads", "")
		}
		sort.Strings(keys)
		want := naive(keys, prefix, delimiter)
		sort.Strings(want)
		same := func(call string, got []string) {
			sort.Strings(got)
			if !slices.Equal(got, want) {
				rt.Fatalf("%s: %q, want %q", call, got, want)
			}
		}
		query := fmt.Sprintf("prefix=%s&delimiter=%s", url.QueryEscape(prefix), url.QueryEscape(delimiter))

		same("v1", pages(rt, t, a, fmt.Sprintf("/l-bkt?%s&max-keys=%d", query, size), func(got answer) ([]string, string, error) {
			r := parse[listObjectsXML](t, got)
			more := ""
			if r.IsTruncated {
				more = "&marker=" + url.QueryEscape(r.NextMarker)
			}
			return entriesOf(objectKeys(r.Contents), r.CommonPrefixes), more, nil
		}))
		same("v2", pages(rt, t, a, fmt.Sprintf("/l-bkt?list-type=2&%s&max-keys=%d", query, size), func(got answer) ([]string, string, error) {
			r := parse[listObjectsXML](t, got)
			more := ""
			if r.IsTruncated {
				more = "&continuation-token=" + url.QueryEscape(r.NextContinuationToken)
			}
			if n := len(r.Contents) + len(r.CommonPrefixes); r.KeyCount == nil || *r.KeyCount != n {
				return nil, "", fmt.Errorf("KeyCount %v for %d entries", r.KeyCount, n)
			}
			return entriesOf(objectKeys(r.Contents), r.CommonPrefixes), more, nil
		}))
		same("uploads", pages(rt, t, a, fmt.Sprintf("/l-bkt?uploads&%s&max-uploads=%d", query, size), func(got answer) ([]string, string, error) {
			r := parse[listUploadsXML](t, got)
			more := ""
			if r.IsTruncated {
				more = "&key-marker=" + url.QueryEscape(r.NextKeyMarker) + "&upload-id-marker=" + url.QueryEscape(r.NextUploadIDMarker)
			}
			var names []string
			for _, u := range r.Uploads {
				names = append(names, u.Key)
			}
			return entriesOf(names, r.CommonPrefixes), more, nil
		}))
		same("versions", pages(rt, t, a, fmt.Sprintf("/l-bkt?versions&%s&max-keys=%d", query, size), func(got answer) ([]string, string, error) {
			r := parse[listVersionsXML](t, got)
			more := ""
			if r.IsTruncated {
				more = "&key-marker=" + url.QueryEscape(r.NextKeyMarker) + "&version-id-marker=" + url.QueryEscape(r.NextVersionIDMarker)
			}
			var names []string
			for _, v := range r.Versions {
				names = append(names, v.Key)
			}
			return entriesOf(names, r.CommonPrefixes), more, nil
		}))
	})
}

func objectKeys(objects []objectXML) []string {
	var keys []string
	for _, o := range objects {
		keys = append(keys, o.Key)
	}
	return keys
}

// Keys under a common prefix that has only deleted objects left show nothing in a listing of current objects.
func TestListingHidesDeleted(t *testing.T) {
	l := newLab(t)
	a := l.user("A")
	a.must(t, "PUT", "/h-bkt", "")
	a.must(t, "PUT", "/h-bkt?versioning", enableVersioning)
	for _, key := range []string{"gone/1", "gone/2", "half/1", "half/2", "z"} {
		a.must(t, "PUT", "/h-bkt/"+key, "x")
	}
	for _, key := range []string{"gone/1", "gone/2", "half/1"} {
		a.must(t, "DELETE", "/h-bkt/"+key, "")
	}
	r := parse[listObjectsXML](t, a.must(t, "GET", "/h-bkt?list-type=2&delimiter=/&encoding-type=url", ""))
	if got := entriesOf(objectKeys(r.Contents), r.CommonPrefixes); fmt.Sprint(got) != "[half/ (prefix) z]" {
		t.Errorf("entries %q", got)
	}
	v := parse[listVersionsXML](t, a.must(t, "GET", "/h-bkt?versions&delimiter=/", ""))
	if len(v.CommonPrefixes) != 2 || len(v.Versions) != 1 || !v.Versions[0].IsLatest {
		t.Errorf("versions %+v", v)
	}
}
