package cloudscale

import (
	"testing"
	"time"

	"github.com/zuber-storage/zuber/pkg/emulator"
	"github.com/zuber-storage/zuber/pkg/provider/conformance"
)

func TestConformance(t *testing.T) {
	late := map[string]emulator.Delay{"lpg": {Max: 80 * time.Millisecond}}
	for name, tc := range map[string]struct {
		region string
		delay  map[string]emulator.Delay
	}{
		"rma":                {"rma", nil},
		"lpg":                {"lpg", nil},
		"lpg with late keys": {"lpg", late},
	} {
		c := newCloud(t, emulator.Options{KeyDelay: tc.delay})
		for _, check := range conformance.Checks(conformance.Options{Region: tc.region}) {
			t.Run(name+"/"+check.Name, func(t *testing.T) {
				if err := check.Run(t.Context(), c.Provider); err != nil {
					t.Error(err)
				}
			})
		}
		c.wantLeft()
	}
}
