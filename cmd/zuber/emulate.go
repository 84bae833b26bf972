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
		Short: "Run cloudscale.ch and STACKIT on loopback, in memory",
		Long: `Run cloudscale.ch and STACKIT on loopback: the control plane of each and the
S3 endpoint of each region. Everything is in memory and gone when the command
ends.`,
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
	options := s.options()
	options.Listen, options.Token = s.Listen, s.Token
	cloud, err := emulator.Start(options) //nolint:contextcheck // the emulator ends with Close
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cloud.Close()) }()
	if err := cloud.Describe(a.stdout); err != nil {
		return err
	}
	if _, err := io.WriteString(a.stdout, zuberLines(cloud)); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// zuberLines shows how another zuber uses the emulator. The credentials open
// nothing else.
func zuberLines(e *emulator.Emulator) string {
	cloud, stackit := e.Cloudscale(), e.Stackit()
	return fmt.Sprintf(`
zuber, in another shell:

  printf '%%s' '%s' > emulator.token
  printf '%%s' '%s' > emulator.key.json
  cat > emulator.yaml <<'END'
backends:
  - name: emulated
    provider: cloudscale
    tokenFile: emulator.token
    apiURL: %s
    endpoints:
%s  - name: emulated-stackit
    provider: stackit
    keyFile: emulator.key.json
    apiURL: %s
    regions: [%s]
END
  zuber selftest --config emulator.yaml

Interrupt (Ctrl-C) ends it.
`, cloud.Token, stackit.ServiceAccountKey(), cloud.APIURL, endpointLines(cloud.Endpoints), stackit.APIURL, emulatedRegion)
}

func endpointLines(endpoints map[string]string) string {
	var b strings.Builder
	for _, region := range slices.Sorted(maps.Keys(endpoints)) {
		fmt.Fprintf(&b, "      %s: %s\n", region, endpoints[region])
	}
	return b.String()
}
