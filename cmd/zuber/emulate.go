package main

import (
	"context"
	"errors"
	"fmt"

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
	cloud, err := emulator.Start(emulator.Options{Listen: s.Listen, KeyDelay: keyDelays(s.KeyDelay), Seed: s.Seed, Token: s.Token})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cloud.Close()) }()
	if err := cloud.Describe(a.stdout); err != nil {
		return err
	}
	cs := cloud.Cloudscale()
	_, err = fmt.Fprintf(a.stdout, `
zuber, in another shell:

  printf %%s '%s' > emulator.token
  cat > emulator.yaml <<'END'
  backends:
    - name: emulated
      provider: cloudscale
      tokenFile: emulator.token
      apiURL: %s
      endpoints:
        rma: %s
        lpg: %s
  END
  zuber selftest --config emulator.yaml

Interrupt (Ctrl-C) ends it.
`, cs.Token, cs.APIURL, cs.Endpoints["rma"], cs.Endpoints["lpg"])
	if err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}
