package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
	lua "github.com/yuin/gopher-lua"
	"go.yaml.in/yaml/v3"
)

// gitopsSamples is where the samples for Flux and Argo CD are.
func gitopsSamples(path ...string) string {
	return filepath.Join(append([]string{root, "config", "samples", "gitops"}, path...)...)
}

// documents reads the objects of a YAML file.
func documents(t *testing.T, path string) []object {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all []object
	for part := range strings.SplitSeq(string(text), "\n---\n") {
		var o map[string]any // not an object, or those in it would be some, too
		if err := yaml.Unmarshal([]byte(part), &o); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all = append(all, o)
	}
	return all
}

// wantHealth asks what Argo CD and Flux, as the samples set them up, say of an
// object as the API server has it.
func (s *story) wantHealth(o object, argo, flux string) {
	s.Helper()
	if got, message := argoHealth(s.T, o); got != argo || message == "" {
		s.Errorf("Argo CD: %s is %s (%q), want %s; status %v", o, got, message, argo, o["status"])
	}
	if got := fluxHealth(s.T, o); got != flux {
		s.Errorf("Flux: %s is %s, want %s; status %v", o, got, flux, o["status"])
	}
}

// argoHealth runs the sample's script on an object as Argo CD does: with the
// basic libraries alone, and the object as a global.
func argoHealth(t *testing.T, o object) (status, message string) {
	t.Helper()
	kind := o.text("kind")
	script := documents(t, gitopsSamples("argocd", "health.yaml"))[0].text("data", "resource.customizations.health.objectstorage.k8s.io_"+kind)
	if script == "" {
		t.Fatalf("no script for %s", kind)
	}
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for name, open := range map[string]lua.LGFunction{lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable} {
		if err := state.CallByParam(lua.P{Fn: state.NewFunction(open), Protect: true}, lua.LString(name)); err != nil {
			t.Fatal(err)
		}
	}
	state.SetGlobal("obj", luaValue(state, map[string]any(o)))
	if err := state.DoString(script); err != nil {
		t.Fatal(err)
	}
	answer, is := state.Get(-1).(*lua.LTable)
	if !is {
		t.Fatalf("the script for %s returns a %s", kind, state.Get(-1).Type())
	}
	return answer.RawGetString("status").String(), answer.RawGetString("message").String()
}

func luaValue(state *lua.LState, value any) lua.LValue {
	switch v := value.(type) {
	case bool:
		return lua.LBool(v)
	case float64:
		return lua.LNumber(v)
	case string:
		return lua.LString(v)
	case []any:
		table := state.NewTable()
		for _, one := range v {
			table.Append(luaValue(state, one))
		}
		return table
	case map[string]any:
		table := state.NewTable()
		for key, one := range v {
			table.RawSetString(key, luaValue(state, one))
		}
		return table
	}
	return lua.LNil
}

// fluxHealth evaluates the sample's expressions on an object in Flux's order. If
// none is true, or one fails, it waits: Flux asks again until its time is over.
func fluxHealth(t *testing.T, o object) string {
	t.Helper()
	version := o.text("apiVersion")
	env, err := cel.NewEnv(cel.OptionalTypes(), cel.DefaultUTCTimeZone(true), cel.CrossTypeNumericComparisons(true), ext.Strings(), ext.Sets(), ext.Encoders())
	if err != nil {
		t.Fatal(err)
	}
	var checks []object
	for _, k := range documents(t, gitopsSamples("flux", filepath.Base(version)+".yaml")) {
		checks = append(checks, k.list("spec", "healthCheckExprs")...)
	}
	i := slices.IndexFunc(checks, func(c object) bool { return c.text("apiVersion") == version && c.text("kind") == o.text("kind") })
	if i < 0 {
		t.Fatalf("no expressions for %s", o)
	}
	for _, state := range []string{"inProgress", "failed", "current"} {
		expression := checks[i].text(state)
		if expression == "" {
			continue
		}
		parsed, issues := env.Parse(expression)
		if issues.Err() != nil {
			t.Fatal(issues.Err())
		}
		program, err := env.Program(parsed)
		if err != nil {
			t.Fatal(err)
		}
		value, _, err := program.Eval(map[string]any(o))
		if err != nil {
			return "waits"
		}
		if value.Value() == true {
			return state
		}
	}
	return "waits"
}
