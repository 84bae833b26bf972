package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zuber-storage/zuber/pkg/emulator"
)

func newEmulate(a *app) *cobra.Command {
	var s emulateSettings
	cmd := &cobra.Command{
		Use:   "emulate",
		Short: "Run cloudscale.ch on loopback, in memory",
		Long: `Run cloudscale.ch on loopback: its control plane and the S3 endpoint of each
region. Everything is in memory and gone when the command ends.`,
		Args: noArgs,
	}
	s.bind(cmd.Flags())
	c := collect(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c.apply(a.env)
		warnUnknown(a.stderr, cmd.Root(), a.env)
		s.check(c)
		if err := c.err(); err != nil {
			return err
		}
		return emulate(cmd.Context(), a, s)
	}
	return cmd
}

// emulate runs until ctx ends, which is no error.
func emulate(ctx context.Context, a *app, s emulateSettings) (err error) {
	//nolint:contextcheck // the emulator ends with Close
	cloud, err := emulator.Start(emulator.Options{Listen: s.Listen, KeyDelay: keyDelays(s.KeyDelay), Seed: s.Seed, Token: s.Token})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cloud.Close()) }()
	if err := cloud.Describe(a.stdout); err != nil {
		return err
	}
	if _, err := io.WriteString(a.stdout, zuberLines(cloud.Cloudscale())); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// zuberLines shows how another zuber uses the emulator. The token opens nothing
// else.
func zuberLines(cloud *emulator.Cloudscale) string {
	var endpoints strings.Builder
	for _, region := range slices.Sorted(maps.Keys(cloud.Endpoints)) {
		fmt.Fprintf(&endpoints, "      %s: %s\n", region, cloud.Endpoints[region])
	}
	return fmt.Sprintf(`
zuber, in another shell:

  printf '%%s' '%s' > emulator.token
  cat > emulator.yaml <<'END'
backends:
  - name: emulated
    provider: cloudscale
    tokenFile: emulator.token
    apiURL: %s
    endpoints:
%sEND
  zuber selftest --config emulator.yaml

Interrupt (Ctrl-C) ends it.
`, cloud.Token, cloud.APIURL, endpoints.String())
}
