package clients

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

const noLock = "--no-lock"

func restic() client {
	return client{
		name:    "restic",
		program: "restic",
		version: []string{"version"},
		prepare: prepareRestic,
		ladder: func(_ place, g grant) []settings {
			if g.rights&write != 0 {
				return nil
			}
			return []settings{{}, {"`" + noLock + "`", func(s *session) { s.flags = append(s.flags, noLock) }}}
		},
		operations: []operation{
			{name: "`backup`", needs: write, run: func(s *session) error {
				return then(func() error { return s.run("backup", "src/tree") }, func() error { return s.snapshots(2) })
			}},
			{name: "`init`", needs: write, run: func(s *session) error {
				if err := s.run("init", "--repo", s.repository("mine")); err != nil {
					return err
				}
				if s.gone("mine/config") == nil {
					return errors.New("it made no repository")
				}
				return nil
			}},
			{name: "`snapshots`", needs: list | read, run: func(s *session) error {
				var shown []struct{}
				if err := s.run("snapshots", "--json"); err != nil {
					return err
				}
				if err := json.Unmarshal([]byte(s.printed), &shown); err != nil {
					return err
				}
				return s.snapshots(len(shown))
			}},
			{name: "`check --read-data`", needs: list | read, run: func(s *session) error { return s.run("check", "--read-data") }},
			{name: "`restore`", needs: list | read, run: func(s *session) error {
				return then(func() error { return s.run("restore", "latest", "--target", "got") }, func() error { return s.gotTree("got/src/tree") })
			}},
			{name: "`forget --prune`", needs: list | read | write | remove, run: func(s *session) error {
				// Without a lock it would not even ask the endpoint.
				s.flags = slices.DeleteFunc(s.flags, func(flag string) bool { return flag == noLock })
				return then(
					func() error { return s.run("forget", "--group-by", "", "--keep-last", "1", "--prune") },
					func() error { return s.snapshots(1) },
					func() error { return s.run("check", "--read-data") })
			}},
			{name: "`unlock`", needs: list | read | remove, alone: true, run: func(s *session) error { return s.run("unlock", "--remove-all") }},
		},
	}
}

// prepareRestic has somebody else make a repository with a snapshot.
func prepareRestic(s *session) error {
	as := func(a access) []string {
		return []string{"AWS_ACCESS_KEY_ID=" + a.accessKey, "AWS_SECRET_ACCESS_KEY=" + a.secretKey}
	}
	// It goes on for a minute or more trying what was refused.
	s.refusals = 3
	s.flags = []string{"--cacert", "ca.pem", "--no-cache", "--quiet"}
	s.env = append(s.env, "RESTIC_REPOSITORY="+s.repository("repo"), "RESTIC_PASSWORD=test")
	env := s.env
	s.env = append(env[:len(env):len(env)], as(s.others)...)
	defer func() { s.env = append(env, as(s.key)...) }()
	return then(func() error { return s.run("init") }, func() error { return s.run("backup", "src/tree") })
}

func (s *session) repository(name string) string {
	return "s3:" + s.key.endpoint + "/" + bucketName + "/" + name
}

// snapshots fails unless the repository has that many, by its objects.
func (s *session) snapshots(want int) error {
	got := 0
	for key := range s.objects() {
		if strings.HasPrefix(key, "repo/snapshots/") {
			got++
		}
	}
	if got != want {
		return fmt.Errorf("the repository has %d snapshots, want %d", got, want)
	}
	return nil
}
