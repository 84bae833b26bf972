package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zuber-storage/zuber/pkg/driver"
	"github.com/zuber-storage/zuber/pkg/gc"
)

func newGC(a *app) *cobra.Command {
	var s gcSettings
	cmd := &cobra.Command{
		Use:   "gc",
		Short: "List what the driver has made and nobody needs any more, and delete it",
		Long: `List what the driver has made and nobody needs any more, and delete it.

Everything in the clouds that carries the driver's mark is compared with the
Buckets and BucketAccesses of the cluster. Without --delete nothing is changed.
Another cluster whose driver has the same name and the same cloud project sees
this cluster's buckets as orphans, and this one sees those of the other, unless
each has a cluster ID (--cluster-id) and made them with it.
A bucket that the deletion policy Retain has kept has no Bucket and is an orphan,
too: name it with --keep-bucket.`,
		Args: noArgs,
	}
	s.bind(cmd.Flags())
	c := collect(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		backends, err := a.openReal(cmd, c, &s.backendSettings, s.check)
		if err != nil {
			return err
		}
		run, err := newCollection(a, s, backends)
		if err != nil {
			return err
		}
		run.answers = cmd.InOrStdin()
		return run.run(cmd.Context())
	}
	return cmd
}

// openReal reads and checks the configuration of a command that works on accounts,
// and opens every back end. All faults are reported at once; no credentials are one.
func (a *app) openReal(cmd *cobra.Command, c *collector, s *backendSettings, check func(*collector)) ([]driver.Backend, error) {
	c.apply(a.env)
	warnUnknown(a.stderr, cmd.Root(), a.env)
	check(c)
	specs := s.resolve(c, a.env)
	if len(c.faults) == 0 && len(specs) == 0 {
		c.addf(noCredentials)
	}
	if err := c.err(); err != nil {
		return nil, err
	}
	return openAll(specs, wiring{DriverName: s.DriverName, ClusterID: s.ClusterID})
}

// collection is one run of the command.
type collection struct {
	*app
	settings  gcSettings
	kinds     map[string]string // providers by back end
	collector gc.Collector
	answers   io.Reader
}

func newCollection(a *app, s gcSettings, backends []driver.Backend) (*collection, error) {
	chosen, err := choose(backends, s.Backend)
	if err != nil {
		return nil, err
	}
	expect, err := s.expectFunc(a.env, backends)
	if err != nil {
		return nil, err
	}
	seen := gc.Sightings{}
	if s.SeenFile != "" {
		if seen, err = gc.LoadSightings(s.SeenFile); err != nil {
			return nil, err
		}
	}
	c := &collection{app: a, settings: s, kinds: map[string]string{}}
	c.collector = gc.Collector{Expect: expect, MinAge: s.MinAge, Seen: seen, Regions: s.Regions, Only: s.Only, Now: time.Now}
	for _, b := range chosen {
		c.kinds[b.Name] = b.Kind
		c.collector.Backends = append(c.collector.Backends, gc.Backend{Name: b.Name, Provider: b.Provider})
	}
	return c, nil
}

// run looks, asks and deletes.
func (c *collection) run(ctx context.Context) error {
	plan, err := c.look(ctx)
	if err != nil {
		return err
	}
	orphans := plan.Orphans()
	if c.settings.Output == formatText {
		if err := c.table(plan); err != nil {
			return err
		}
	}
	var ended error
	if c.settings.Delete && orphans > 0 && plan.Refusal == nil {
		if plan, ended = c.confirmed(ctx, plan); ended == nil {
			ended = c.collector.Delete(ctx, plan, c.settings.Purge)
			ended = errors.Join(ended, c.save())
		}
	}
	if c.settings.Delete && plan.Refusal != nil {
		ended = fmt.Errorf("nothing was deleted: %w", plan.Refusal)
	}
	return errors.Join(c.report(plan), ended, errors.Join(plan.Unread...), failures(plan))
}

// look looks once or twice and remembers what it has seen.
func (c *collection) look(ctx context.Context) (*gc.Plan, error) {
	plan, err := c.collector.Look(ctx)
	if err != nil {
		return nil, err
	}
	if c.settings.LookTwice && plan.Refusal == nil {
		_, _ = fmt.Fprintf(c.stderr, "Looking again in %s\n", c.settings.MinAge)
		if !pause(ctx, c.settings.MinAge) {
			return nil, ctx.Err()
		}
		if plan, err = c.collector.Look(ctx); err != nil {
			return nil, err
		}
	}
	return plan, c.save()
}

func (c *collection) save() error {
	if c.settings.SeenFile == "" {
		return nil
	}
	return c.collector.Seen.Save(c.settings.SeenFile)
}

// confirmed asks whether the orphans may go. A person may take hours to answer, so
// it looks again then; what has become an orphan meanwhile was not agreed to, and
// then it returns an error.
func (c *collection) confirmed(ctx context.Context, shown *gc.Plan) (*gc.Plan, error) {
	if c.settings.Yes {
		return shown, nil
	}
	data := "Buckets that hold data stay."
	if c.settings.Purge {
		data = "THE DATA OF THE BUCKETS IS DELETED, TOO."
	}
	_, _ = fmt.Fprintf(c.stderr, "%s\nWhat another cluster has made without a cluster ID in the same cloud project with the driver name %s looks the same as an orphan,\n"+
		"and so do a bucket that the deletion policy Retain has kept and one of a lost cluster whose claims are not applied again yet.\nDelete what is listed as %s (%d)? [yes/no] ",
		data, c.settings.DriverName, gc.Orphan, shown.Orphans())
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(c.answers).ReadString('\n') // an end without an answer is no
		answer <- line
	}()
	select {
	case <-ctx.Done():
		return shown, ctx.Err()
	case line := <-answer:
		if strings.TrimSpace(strings.ToLower(line)) != "yes" {
			return shown, fmt.Errorf("nothing was deleted: the answer was not yes (--%s does not ask)", flagYes)
		}
	}
	plan, err := c.collector.Look(ctx)
	if err != nil {
		return shown, err
	}
	if plan.Refusal == nil && !plan.Within(shown) {
		return shown, errors.New("nothing was deleted: there are other orphans than those that were shown; run it again")
	}
	return plan, plan.Refusal
}

// failures is an error if the deletion of something has failed. Its text is in the
// report.
func failures(p *gc.Plan) error {
	for _, i := range p.Items {
		if i.Outcome == gc.Failed {
			return errReported
		}
	}
	return nil
}
