package policy

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

func gridConditions(raw json.RawMessage) ([]condition, error) {
	operators, err := members(raw, "the Condition")
	if err != nil {
		return nil, err
	}
	var out []condition
	for _, operator := range slices.Sorted(maps.Keys(operators)) {
		if !slices.Contains(gridOperators[:], operator) {
			return nil, fmt.Errorf("the Condition has the unsupported operator %q", operator)
		}
		keys, err := members(operators[operator], operator)
		if err != nil {
			return nil, err
		}
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			c, err := gridCondition(operator, key, keys[key])
			if err != nil {
				return nil, err
			}
			out = append(out, c)
		}
	}
	return out, nil
}

func gridCondition(operator, key string, raw json.RawMessage) (condition, error) {
	if !gridKnowsKey(key) {
		return condition{}, fmt.Errorf("%s has the unsupported key %q", operator, key)
	}
	values, err := scalars(raw, operator)
	if err != nil {
		return condition{}, err
	}
	c := condition{operator: operator, key: key}
	for _, v := range values {
		t, ok := parseTemplate(v, strings.HasSuffix(operator, "Like"), gridVariables[:])
		if !ok {
			return condition{}, fmt.Errorf("%s has the invalid value %q", operator, v)
		}
		c.patterns = append(c.patterns, t)
	}
	return c, nil
}

// scalars reads a string, number or boolean, or a list of at least one, as
// text.
func scalars(raw json.RawMessage, what string) ([]string, error) {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		list = []json.RawMessage{raw}
	}
	var out []string
	for _, raw := range list {
		var s string
		var n json.Number
		var b bool
		switch {
		case isNull(raw):
			return nil, fmt.Errorf("%s has a null value", what)
		case json.Unmarshal(raw, &s) == nil:
		case json.Unmarshal(raw, &n) == nil:
			s = n.String()
		case json.Unmarshal(raw, &b) == nil:
			s = fmt.Sprint(b)
		default:
			return nil, fmt.Errorf("%s has a value that is no text, number or boolean", what)
		}
		out = append(out, s)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s has no value", what)
	}
	return out, nil
}

// holdsGrid compares as AWS documents it: several values of a positive
// operator are alternatives, a negated one excludes them all, and an absent
// key satisfies exactly the negated ones.
func (c *condition) holdsGrid(env map[string][]string) bool {
	have := env[c.key]
	if c.operator == "Null" {
		return slices.ContainsFunc(c.patterns, func(t template) bool {
			absent, ok := t.text(env)
			return ok && strings.EqualFold(absent, "true") == (len(have) == 0)
		})
	}
	op, negated := positive(c.operator)
	for _, h := range have {
		if slices.ContainsFunc(c.patterns, func(t template) bool { return compareGrid(op, h, t, env) }) {
			return !negated
		}
	}
	return negated
}

// positive turns a negated operator into its opposite.
func positive(operator string) (op string, negated bool) {
	if before, after, ok := strings.Cut(operator, "Not"); ok {
		return before + after, true
	}
	return operator, false
}

func compareGrid(op, have string, want template, env map[string][]string) bool {
	if op == "StringLike" {
		g, ok := want.expand(env)
		return ok && g.match(have)
	}
	text, ok := want.text(env)
	if !ok {
		return false
	}
	if strings.HasPrefix(op, "String") {
		return compareStrings(op, have, text)
	}
	return compareScalars(op, have, text)
}

// text expands a template that was read without wildcards.
func (t template) text(env map[string][]string) (string, bool) {
	g, ok := t.expand(env)
	if !ok {
		return "", false
	}
	b := make([]byte, 0, len(g))
	for _, c := range g {
		if c < 0 || c > 0xff {
			return "", false
		}
		b = append(b, byte(c))
	}
	return string(b), true
}
