package e2e

import (
	"fmt"
	"strings"

	"github.com/zuber-storage/zuber/pkg/emulator"
)

// leftInClouds lists what concerns an object of COSI, by its UID, and what
// concerns any with an empty one. It does not ask the driver but the clouds
// themselves, so that nothing hides. The admin group of the driver is no
// leftover: it belongs to the project.
func leftInClouds(e *emulator.Emulator, uid string) []string {
	var all []string
	add := func(format string, args ...any) {
		if what := fmt.Sprintf(format, args...); concerns(what, uid) {
			all = append(all, what)
		}
	}
	for _, b := range e.Cloudscale().Buckets() {
		add("cloudscale.ch: bucket %s in %s, %d objects", b.Name, b.Region, b.Objects)
	}
	for _, u := range e.Cloudscale().Users() {
		add("cloudscale.ch: objects user %s, tags %v", u.DisplayName, u.Tags)
	}
	for _, b := range e.Stackit().Buckets() {
		add("STACKIT: bucket %s in %s, %d objects", b.Name, b.Region, b.Objects)
	}
	for _, g := range e.Stackit().Groups() {
		if !strings.Contains(g.DisplayName, "-admin-") {
			add("STACKIT: credentials group %s with %d keys", g.DisplayName, g.Keys)
		}
	}
	return all
}

// concerns reports whether a line is about the object with that UID. A
// credentials group is named after the UID without its dashes.
func concerns(what, uid string) bool {
	return strings.Contains(what, uid) || strings.Contains(what, strings.ReplaceAll(uid, "-", ""))
}
