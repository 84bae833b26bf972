package main

import (
	"reflect"
	"testing"

	"github.com/spf13/pflag"
)

// TestGCSample: the CronJob's command line is one that only lists, its variables are
// known, and its role reads what the command reads and nothing else.
func TestGCSample(t *testing.T) {
	all := manifests(t)
	job := all["samples/gc/cronjob.yaml"][0]
	pod := object(job.at("spec", "jobTemplate", "spec", "template", "spec").(map[string]any))
	c := object(pod.at("containers", 0).(map[string]any))
	var args []string
	for _, a := range c.at("args").([]any) {
		args = append(args, a.(string))
	}
	var s gcSettings
	fs := pflag.NewFlagSet("gc", pflag.ContinueOnError)
	s.bind(fs)
	faults := collect(fs)
	if err := fs.Parse(args[1:]); err != nil || args[0] != "gc" {
		t.Fatalf("%q: %v", args, err)
	}
	s.check(faults)
	if err := faults.err(); err != nil || s.Delete || !s.LookTwice {
		t.Errorf("%+v: %v", s, err)
	}
	wantKnownVariables(t, c)
	if limit := job.at("spec", "jobTemplate", "spec", "activeDeadlineSeconds").(int); float64(limit) < 2*s.MinAge.Seconds() {
		t.Errorf("the job has %d s, and waits for %s", limit, s.MinAge)
	}
	role := all["samples/gc/clusterrole.yaml"][0]
	want := []any{map[string]any{
		"apiGroups": []any{cosiGroup}, "resources": []any{"buckets", "bucketaccesses"}, "verbs": []any{"get", "list"},
	}}
	if !reflect.DeepEqual(role.at("rules"), want) {
		t.Errorf("the role has %v", role.at("rules"))
	}
	account := all["samples/gc/serviceaccount.yaml"][0]
	if name := pod.at("serviceAccountName"); name != account.at("metadata", "name") {
		t.Errorf("the pod runs as %v, and the role is of %v", name, account.at("metadata", "name"))
	}
}
