package cloudscale

import (
	"testing"

	"github.com/zuber-storage/zuber/pkg/emulator"
	"github.com/zuber-storage/zuber/pkg/provider/conformance"
)

func TestConformance(t *testing.T) {
	for _, region := range []string{"rma", "lpg"} {
		c := newCloud(t, emulator.Options{})
		for _, check := range conformance.Checks(conformance.Options{Region: region}) {
			t.Run(region+"/"+check.Name, func(t *testing.T) {
				if err := check.Run(t.Context(), c.Provider); err != nil {
					t.Error(err)
				}
			})
		}
		c.wantLeft()
	}
}
