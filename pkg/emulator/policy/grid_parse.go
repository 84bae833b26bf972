package policy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

func parseStorageGRID(text []byte) (*Document, error) {
	if len(text) > MaxBytesStorageGRID {
		return nil, &ParseError{
			Code: "XMaxBucketPolicyLengthExceeded", Status: http.StatusBadRequest,
			Message: fmt.Sprintf("The policy exceeds the maximum length of %d bytes.", MaxBytesStorageGRID),
		}
	}
	doc, err := gridDocument(text)
	if err != nil {
		return nil, &ParseError{Code: "XBucketPolicyParseException", Status: http.StatusBadRequest, Message: err.Error()}
	}
	return doc, nil
}

// members reads an object whose names are all in known.
func members(raw json.RawMessage, what string, known ...string) (map[string]json.RawMessage, error) {
	var m map[string]json.RawMessage
	if err := json.Unmarshal(raw, &m); err != nil || m == nil {
		return nil, fmt.Errorf("%s is not an object", what)
	}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if len(known) > 0 && !slices.Contains(known, name) {
			return nil, fmt.Errorf("%s has the unknown element %q", what, name)
		}
	}
	return m, nil
}

// words reads a string or a list of at least one.
func words(raw json.RawMessage, what string) ([]string, error) {
	var list []string
	var one string
	switch {
	case json.Unmarshal(raw, &one) == nil && !isNull(raw):
		return []string{one}, nil
	case json.Unmarshal(raw, &list) == nil && len(list) > 0:
		return list, nil
	}
	return nil, fmt.Errorf("%s is neither a string nor a list of strings", what)
}

func isNull(raw json.RawMessage) bool { return string(bytes.TrimSpace(raw)) == "null" }

func gridDocument(text []byte) (*Document, error) {
	top, err := members(text, "the document", "Version", "Id", "Statement")
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"Version", "Id"} {
		var s string
		if raw, ok := top[name]; ok && (isNull(raw) || json.Unmarshal(raw, &s) != nil) {
			return nil, fmt.Errorf("%s is not a string", name)
		}
	}
	var list []json.RawMessage
	raw := top["Statement"]
	if json.Unmarshal(raw, &list) != nil {
		list = []json.RawMessage{raw}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("the document has no statement")
	}
	doc := &Document{dialect: StorageGRID}
	for _, raw := range list {
		st, err := gridStatement(raw)
		if err != nil {
			return nil, err
		}
		doc.statements = append(doc.statements, st)
	}
	return doc, nil
}

func gridStatement(raw json.RawMessage) (statement, error) {
	m, err := members(raw, "a statement",
		"Sid", "Effect", "Principal", "NotPrincipal", "Action", "NotAction", "Resource", "NotResource", "Condition")
	if err != nil {
		return statement{}, err
	}
	var st statement
	if st.effect, err = gridEffect(m); err != nil {
		return statement{}, err
	}
	if st.principals, st.notPrincipals, err = either(m, "Principal", gridPrincipals); err != nil {
		return statement{}, err
	}
	if st.actions, st.notActions, err = either(m, "Action", gridActionList); err != nil {
		return statement{}, err
	}
	if st.resources, st.notResources, err = either(m, "Resource", gridResources); err != nil {
		return statement{}, err
	}
	if raw, ok := m["Condition"]; ok {
		if st.conditions, err = gridConditions(raw); err != nil {
			return statement{}, err
		}
	}
	return st, nil
}

// either reads an element or its negation, of which a statement needs exactly
// one.
func either[T any](
	m map[string]json.RawMessage, name string, read func(json.RawMessage, string) ([]T, error),
) (plain, negated []T, err error) {
	raw, ok := m[name]
	notRaw, notOK := m["Not"+name]
	switch {
	case ok == notOK:
		return nil, nil, fmt.Errorf("a statement needs exactly one of %s and Not%s", name, name)
	case ok:
		plain, err = read(raw, name)
	default:
		negated, err = read(notRaw, "Not"+name)
	}
	return plain, negated, err
}

func gridEffect(m map[string]json.RawMessage) (Decision, error) {
	var sid, effect string
	if raw, ok := m["Sid"]; ok && (isNull(raw) || json.Unmarshal(raw, &sid) != nil) {
		return NoMatch, fmt.Errorf("the Sid is not a string")
	}
	if err := json.Unmarshal(m["Effect"], &effect); err == nil {
		switch effect {
		case "Allow":
			return Allow, nil
		case "Deny":
			return Deny, nil
		}
	}
	return NoMatch, fmt.Errorf("the Effect is neither Allow nor Deny")
}

func gridPrincipals(raw json.RawMessage, name string) ([]principal, error) {
	var one string
	if json.Unmarshal(raw, &one) == nil && one == "*" {
		return []principal{{kind: principalAnyone}}, nil
	}
	m, err := members(raw, name, "AWS")
	if err != nil {
		return nil, err
	}
	list, err := words(m["AWS"], name)
	if err != nil {
		return nil, err
	}
	out := make([]principal, 0, len(list))
	for _, s := range list {
		p, ok := gridPrincipal(s)
		if !ok {
			return nil, fmt.Errorf("%s names the invalid principal %q", name, s)
		}
		out = append(out, p)
	}
	return out, nil
}

// gridPrincipal reads "*", an account, or an identity as URN or ARN.
func gridPrincipal(s string) (principal, bool) {
	if s == "*" {
		return principal{kind: principalAnyone}, true
	}
	if isAccount(s) {
		return principal{kind: principalAccount, account: s}, true
	}
	account, name, ok := splitIdentity(s)
	if !ok || !isAccount(account) || strings.ContainsAny(name, "*?") {
		return principal{}, false
	}
	if name == "root" {
		return principal{kind: principalAccount, account: account}, true
	}
	switch kind, rest, _ := strings.Cut(name, "/"); kind {
	case "user", "group", "federated-user", "federated-group", "user-uuid":
		return principal{kind: principalGrid, account: account, name: name}, rest != ""
	}
	return principal{}, false
}

// isAccount reports whether s is an account number.
func isAccount(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

func gridActionList(raw json.RawMessage, name string) ([]string, error) {
	list, err := words(raw, name)
	if err != nil {
		return nil, err
	}
	for _, s := range list {
		if !gridValidAction(s) {
			return nil, fmt.Errorf("%s names the unsupported action %q", name, s)
		}
	}
	return list, nil
}

func gridResources(raw json.RawMessage, name string) ([]resource, error) {
	list, err := words(raw, name)
	if err != nil {
		return nil, err
	}
	out := make([]resource, 0, len(list))
	for _, s := range list {
		rest, ok := strings.CutPrefix(s, "arn:aws:s3:::")
		if !ok {
			rest, ok = strings.CutPrefix(s, "urn:sgws:s3:::")
		}
		if s == "*" {
			rest, ok = s, true
		}
		pattern, valid := parseTemplate(rest, true, gridVariables[:])
		if !ok || !valid || rest == "" {
			return nil, fmt.Errorf("%s names the invalid resource %q", name, s)
		}
		out = append(out, resource{pattern: pattern})
	}
	return out, nil
}
