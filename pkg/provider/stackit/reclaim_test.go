package stackit

import (
	"errors"
	"testing"

	"github.com/zuber-storage/zuber/pkg/emulator"
	"github.com/zuber-storage/zuber/pkg/provider"
)

// TestReclaim: an announcement whose bucket never came goes; one that is in use, and
// every group that is none, stays.
func TestReclaim(t *testing.T) {
	c := newCloud(t, emulator.Options{})
	p := c.provider(t)
	mustCreate(t, p, "bucket")
	group := func(name string) provider.Resource {
		g, err := p.createGroup(t.Context(), testRegion, name)
		if err != nil {
			t.Fatal(err)
		}
		return provider.Resource{Kind: provider.KindOwner, ID: g.id, Region: testRegion}
	}
	adm, err := p.adminGroup(t.Context(), testRegion, false)
	if err != nil {
		t.Fatal(err)
	}
	keyed := group(intentName(c.driver, "", "other"))
	if _, err := p.mintKey(t.Context(), testRegion, keyed.ID, 0); err != nil {
		t.Fatal(err)
	}
	orphan := group(intentName(c.driver, "", "never"))
	for name, tc := range map[string]struct {
		r    provider.Resource
		want error
	}{
		"of a bucket that exists": {group(intentName(c.driver, "", "bucket")), provider.ErrPrecondition},
		"with a key":              {keyed, provider.ErrPrecondition},
		"of another driver":       {group(intentName("other.example", "", "bucket")), provider.ErrPermissionDenied},
		"somebody's":              {group("team"), provider.ErrPermissionDenied},
		"the admin":               {provider.Resource{Kind: provider.KindOwner, ID: adm.id, Region: testRegion}, provider.ErrPermissionDenied},
		"the admin as what it is": {provider.Resource{Kind: provider.KindAdmin, ID: adm.id, Region: testRegion}, provider.ErrPermissionDenied},
		"of an ID that is none":   {provider.Resource{Kind: provider.KindOwner, ID: "../x", Region: testRegion}, provider.ErrPermissionDenied},
		"of a region not served":  {provider.Resource{Kind: provider.KindOwner, ID: orphan.ID, Region: "eu09"}, provider.ErrInvalidArgument},
		"of a bucket that is not": {orphan, nil},
		"one that does not exist": {provider.Resource{Kind: provider.KindOwner, ID: "6a1e3b5c-9d2f-4e7a-8b1c-000000000001", Region: testRegion}, nil},
	} {
		before := len(c.Groups())
		err := p.Reclaim(t.Context(), tc.r)
		if !errors.Is(err, tc.want) || tc.want == nil && err != nil {
			t.Errorf("%s: %v, want %v", name, err, tc.want)
		}
		if after := len(c.Groups()); after != before && tc.r.ID != orphan.ID {
			t.Errorf("%s: a group went", name)
		}
	}
	for _, g := range c.Groups() {
		if g.ID == orphan.ID {
			t.Error("the orphan is still there")
		}
	}
	if !p.Announces(provider.Resource{Kind: provider.KindOwner, Name: intentName(c.driver, "", "never")}, "never") || p.Announces(orphan, "never") {
		t.Error("an announcement is not known by its name")
	}
}
