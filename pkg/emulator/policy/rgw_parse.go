package policy

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// The words of the language, by the place they belong to. A known word in the
// wrong place is refused with another text than an unknown one.
var (
	rgwTopWords       = [...]string{"Version", "Id", "Statement"}
	rgwStatementWords = [...]string{
		"Sid", "Effect", "Principal", "NotPrincipal", "Action", "NotAction", "Resource", "NotResource", "Condition",
	}
	rgwPrincipalWords = [...]string{"AWS", "Federated", "Service", "CanonicalUser"}
	rgwValueWords     = [...]string{"2008-10-17", "2012-10-17", "Allow", "Deny"}
)

func rgwKnowsWord(w string) bool {
	return slices.Contains(rgwTopWords[:], w) || slices.Contains(rgwStatementWords[:], w) ||
		slices.Contains(rgwPrincipalWords[:], w) || slices.Contains(rgwValueWords[:], w) || rgwKnowsOperator(w)
}

// rgwParser checks while it reads, so that of several faults the first in the
// text is reported.
type rgwParser struct {
	*scanner
	doc     *Document
	release rgwRelease
}

func parseRGW(text []byte, d Dialect, release rgwRelease) (*Document, error) {
	if len(text) > MaxBytesRGW {
		return nil, &ParseError{Code: "InvalidRange", Status: http.StatusRequestedRangeNotSatisfiable}
	}
	p := rgwParser{scanner: newScanner(text), doc: &Document{dialect: d}, release: release}
	if err := p.document(); err != nil {
		pe := &ParseError{Code: "InvalidArgument", Status: http.StatusBadRequest, Message: err.Error()}
		if se, ok := errors.AsType[*syntaxError](err); ok {
			pe.Message = fmt.Sprintf("At character offset %d, %s", se.offset, se.text)
		}
		return nil, pe
	}
	return p.doc, nil
}

func (p *rgwParser) document() error {
	if err := p.skip(); err != nil {
		return err
	}
	if p.pos >= len(p.src) {
		// Measured with an empty body, too, the offset is never below 1.
		return &syntaxError{max(p.pos, 1), "The document is empty."}
	}
	seen := map[string]bool{}
	err := p.value(shape{
		name:   "<Top>",
		str:    func(string) error { return p.fail("String not allowed at top level.") },
		number: "Number not allowed at top level.",
		array:  "Array not allowed at top level.",
		member: func(name string) error { return p.topMember(name, seen) },
	})
	if err != nil {
		return err
	}
	if err := p.skip(); err != nil {
		return err
	}
	if p.pos < len(p.src) {
		return p.fail("The document root must not be followed by other values.")
	}
	return nil
}

// shape says what may stand at one place of the document.
type shape struct {
	name    string
	str     func(string) error // nil: no string
	numeric bool               // numbers count as strings
	number  string             // other text for a refused number
	list    bool               // an array of what else is allowed
	array   string             // other text for a refused array
	begin   func()             // called where an object begins
	member  func(string) error // nil: no object
}

// value takes one value of the given shape.
func (p *rgwParser) value(sh shape) error {
	switch c := p.peek(); c {
	case '"':
		s, err := p.str()
		if err != nil {
			return err
		}
		return p.stringValue(sh, s)
	case '{':
		p.pos++
		if sh.member == nil {
			return p.fail("The " + sh.name + " keyword cannot introduce an object.")
		}
		if sh.begin != nil {
			sh.begin()
		}
		return p.object(sh.member)
	case '[':
		p.pos++
		if !sh.list {
			if sh.array != "" {
				return p.fail(sh.array)
			}
			return p.fail("`" + sh.name + "` does not take array.")
		}
		element := sh
		element.list = false
		return p.array(func() error { return p.value(element) })
	case 't':
		return p.refusedWord("true")
	case 'f':
		return p.refusedWord("false")
	case 'n':
		return p.refusedWord("null")
	}
	start := p.pos
	n, err := p.number()
	if err != nil {
		return err
	}
	if sh.numeric {
		return sh.str(n)
	}
	text := sh.number
	if text == "" {
		text = "Numbers are not allowed outside condition arguments."
	}
	return &syntaxError{start, text}
}

func (p *rgwParser) stringValue(sh shape, s string) error {
	if sh.str == nil {
		return p.fail("`" + s + "` is not valid in the context of `" + sh.name + "`.")
	}
	return sh.str(s)
}

// refusedWord takes true, false or null, which no place allows; the gateway
// has no text for it.
func (p *rgwParser) refusedWord(w string) error {
	if err := p.word(w); err != nil {
		return err
	}
	return p.fail("No error?")
}

// enter checks a member's name and takes the colon behind it. Each name of
// allowed may come once per seen; a nil seen does not count.
func (p *rgwParser) enter(name, context string, allowed []string, seen map[string]bool) error {
	switch {
	case !rgwKnowsWord(name):
		return p.fail("Unknown key `" + name + "`.")
	case !slices.Contains(allowed, name) || seen[name]:
		return p.fail("Token `" + name + "` is not allowed in the context of `" + context + "`.")
	}
	if seen != nil {
		seen[name] = true
	}
	return p.colon()
}

func (p *rgwParser) topMember(name string, seen map[string]bool) error {
	if err := p.enter(name, "<Top>", rgwTopWords[:], seen); err != nil {
		return err
	}
	switch name {
	case "Version":
		return p.value(shape{name: name, str: func(s string) error {
			if s != "2008-10-17" && s != "2012-10-17" {
				return p.fail("`" + s + "` is not a valid version. Valid versions are `2008-10-17` and `2012-10-17`.")
			}
			return nil
		}})
	case "Id":
		return p.value(shape{name: name, str: func(string) error { return nil }})
	}
	var inStatement map[string]bool
	return p.value(shape{
		name: name,
		list: true,
		begin: func() {
			inStatement = map[string]bool{}
			// Without an Effect the gateway denies.
			p.doc.statements = append(p.doc.statements, statement{effect: Deny})
		},
		member: func(name string) error { return p.statementMember(name, inStatement) },
	})
}

func (p *rgwParser) statementMember(name string, seen map[string]bool) error {
	if err := p.enter(name, "Statement", rgwStatementWords[:], seen); err != nil {
		return err
	}
	st := &p.doc.statements[len(p.doc.statements)-1]
	switch name {
	case "Sid":
		return p.value(shape{name: name, str: func(string) error { return nil }})
	case "Effect":
		return p.value(shape{name: name, str: func(s string) error {
			switch s {
			case "Allow":
				st.effect = Allow
			case "Deny":
				st.effect = Deny
			default:
				return p.fail("`" + s + "` is not a valid effect.")
			}
			return p.guardNotPrincipal(st)
		}})
	case "Principal":
		return p.principals(name, &st.principals, st, seen)
	case "NotPrincipal":
		return p.principals(name, &st.notPrincipals, st, seen)
	case "Action":
		return p.actions(name, &st.actions)
	case "NotAction":
		return p.actions(name, &st.notActions)
	case "Resource":
		return p.resources(name, &st.resources)
	case "NotResource":
		return p.resources(name, &st.notResources)
	}
	return p.value(shape{name: name, member: func(operator string) error {
		return p.operator(operator, &st.conditions)
	}})
}

// guardNotPrincipal refuses an Allow with NotPrincipal where the second of the two stands.
func (p *rgwParser) guardNotPrincipal(st *statement) error {
	if p.release.guardsNotPrincipal && st.effect == Allow && len(st.notPrincipals) > 0 {
		return p.fail("Allow with NotPrincipal is not allowed.")
	}
	return nil
}

// principals reads an element of st into its list.
func (p *rgwParser) principals(element string, into *[]principal, st *statement, seen map[string]bool) error {
	return p.value(shape{
		name: element,
		list: element == "NotPrincipal",
		str: func(s string) error {
			if !strings.HasPrefix(s, "*") {
				return p.fail("`" + s + "` is not valid in the context of `" + element + "`.")
			}
			*into = append(*into, principal{kind: principalAnyone})
			return p.guardNotPrincipal(st)
		},
		member: func(kind string) error {
			if err := p.enter(kind, element, rgwPrincipalWords[:], seen); err != nil {
				return err
			}
			return p.value(shape{name: kind, list: true, str: func(s string) error {
				pr, refusal := rgwPrincipal(kind, s)
				if refusal != "" {
					return p.fail(refusal)
				}
				*into = append(*into, pr)
				return p.guardNotPrincipal(st)
			}})
		},
	})
}

func (p *rgwParser) actions(element string, into *[]string) error {
	return p.value(shape{name: element, list: true, str: func(s string) error {
		if !p.release.validAction(s) {
			return p.fail("`" + s + "` is not a valid action.")
		}
		*into = append(*into, s)
		return nil
	}})
}

func (p *rgwParser) resources(element string, into *[]resource) error {
	return p.value(shape{name: element, list: true, str: func(s string) error {
		r, refusal := rgwResource(s)
		if refusal != "" {
			return p.fail(refusal)
		}
		*into = append(*into, r)
		return nil
	}})
}

func (p *rgwParser) operator(name string, into *[]condition) error {
	bare, ifExists := strings.CutSuffix(name, "IfExists")
	switch {
	case rgwKnowsOperator(bare):
	case rgwKnowsWord(bare):
		return p.fail("Token `" + bare + "` is not allowed in the context of `Condition`.")
	default:
		return p.fail("Unknown key `" + bare + "`.")
	}
	if err := p.colon(); err != nil {
		return err
	}
	return p.value(shape{name: bare, member: func(key string) error {
		if rgwKnowsWord(key) {
			return p.fail("Token `" + key + "` is not allowed in the context of `" + bare + "`.")
		}
		if err := p.colon(); err != nil {
			return err
		}
		*into = append(*into, condition{operator: bare, ifExists: ifExists, key: key})
		c := &(*into)[len(*into)-1]
		return p.value(shape{name: "<Condition Key>", list: true, numeric: true, str: func(s string) error {
			if strings.HasPrefix(s, "$") {
				if !strings.HasPrefix(s, "${") || !strings.HasSuffix(s, "}") {
					return p.fail("Invalid interpolation `" + s + "`.")
				}
				c.runtime = true
			}
			c.values = append(c.values, s)
			return nil
		}})
	}})
}
