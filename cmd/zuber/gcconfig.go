package main

import (
	"time"

	"github.com/spf13/pflag"
)

// clusterSettings says where what should exist is read from.
type clusterSettings struct {
	Kubeconfig string
	File       string
	AssumeNone bool
}

func (s *clusterSettings) bind(fs *pflag.FlagSet) {
	fs.StringVar(&s.Kubeconfig, flagKubeconfig, "",
		"kubeconfig of the cluster whose Buckets and BucketAccesses are read; without it "+envKubeconfig+", and in a pod its service account")
	fs.StringVar(&s.File, flagFile, "",
		"read the Buckets and BucketAccesses from a file instead, as kubectl get buckets,bucketaccesses --all-namespaces -o yaml writes it")
}

func (s *clusterSettings) check(c *collector) {
	given := 0
	for _, set := range []bool{s.File != "", s.AssumeNone, s.Kubeconfig != ""} {
		if set {
			given++
		}
	}
	if given > 1 {
		c.addf("--%s, --%s and --%s exclude each other: what should exist is said by one of them", flagKubeconfig, flagFile, flagAssumeNone)
	}
}

// gcSettings is the configuration of `zuber gc`.
type gcSettings struct {
	backendSettings
	clusterSettings
	Backend     string
	Regions     []string
	Only        []string
	KeepBuckets []string
	MinAge      time.Duration
	SeenFile    string
	LookTwice   bool
	Delete      bool
	Purge       bool
	Yes         bool
	Output      string
}

func (s *gcSettings) bind(fs *pflag.FlagSet) {
	s.bindReal(fs)
	s.clusterSettings.bind(fs)
	fs.BoolVar(&s.AssumeNone, flagAssumeNone, false, "read no cluster: nothing should exist, so that everything with the driver's mark is an orphan")
	fs.StringVar(&s.Backend, flagBackend, "", "back end to look at; without it every one")
	fs.StringSliceVar(&s.Regions, flagRegion, nil, "region to look at, may be repeated; without it every one")
	fs.StringSliceVar(&s.Only, flagOnly, nil, "ID, or name of a bucket, to look at, may be repeated; without it everything")
	fs.StringSliceVar(&s.KeepBuckets, flagKeepBucket, nil, "name of a bucket that stays although no Bucket has it, such as one that the deletion policy Retain has kept; may be repeated")
	fs.DurationVar(&s.MinAge, flagMinAge, time.Hour, "how old an orphan must be to be deleted; where the cloud tells no age, how long it must have been seen as one")
	fs.StringVar(&s.SeenFile, flagSeenFile, "", "file that remembers, from run to run, since when orphans of unknown age have been seen")
	fs.BoolVar(&s.LookTwice, flagLookTwice, false, "look, wait for --"+flagMinAge+" and look again in the same run, so that orphans of unknown age need no file")
	fs.BoolVar(&s.Delete, flagDelete, false, "delete the orphans; without it they are listed only")
	fs.BoolVar(&s.Purge, flagPurge, false, "delete the data of orphaned buckets, too; without it a bucket that holds data stays")
	fs.BoolVar(&s.Yes, flagYes, false, "do not ask before anything is deleted")
	fs.StringVar(&s.Output, flagOutput, formatText, "output: text, or json (one object)")
}

func (s *gcSettings) check(c *collector) {
	s.checkMark(c)
	s.clusterSettings.check(c)
	oneOf(c, flagOutput, s.Output, formatText, formatJSON)
	if s.MinAge < 0 {
		c.addf("--%s is %s: it cannot be negative", flagMinAge, s.MinAge)
	}
	for flag, set := range map[string]bool{flagPurge: s.Purge, flagYes: s.Yes} {
		if set && !s.Delete {
			c.addf("--%s has no effect without --%s", flag, flagDelete)
		}
	}
	for flag, values := range map[string][]string{flagRegion: s.Regions, flagOnly: s.Only, flagKeepBucket: s.KeepBuckets} {
		for _, value := range values {
			if value == "" {
				c.addf("--%s: one of its values is empty", flag)
			}
		}
	}
}
