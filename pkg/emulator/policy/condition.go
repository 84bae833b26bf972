package policy

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// condition is one key under one operator.
type condition struct {
	operator string
	ifExists bool
	key      string
	values   []string // RGW
	runtime  bool     // RGW: the last value is ${key}, to be read from the request
	patterns []template
}

// rgwOperators are the operators RGW 18.2.7 reads. It compares with all but
// the last five, which never hold.
var rgwOperators = [...]string{
	"StringEquals", "StringNotEquals", "StringEqualsIgnoreCase", "StringNotEqualsIgnoreCase",
	"StringLike", "StringNotLike",
	"ForAnyValue:StringEquals", "ForAnyValue:StringEqualsIgnoreCase", "ForAnyValue:StringLike",
	"ForAllValues:StringEquals", "ForAllValues:StringEqualsIgnoreCase", "ForAllValues:StringLike",
	"NumericEquals", "NumericNotEquals", "NumericLessThan", "NumericLessThanEquals",
	"NumericGreaterThan", "NumericGreaterThanEquals",
	"DateEquals", "DateNotEquals", "DateLessThan", "DateLessThanEquals",
	"DateGreaterThan", "DateGreaterThanEquals",
	"Bool", "IpAddress", "NotIpAddress", "Null",
	"BinaryEquals", "ArnEquals", "ArnNotEquals", "ArnLike", "ArnNotLike",
}

func rgwKnowsOperator(name string) bool { return slices.Contains(rgwOperators[:], name) }

func (c *condition) holds(d Dialect, env map[string][]string) bool {
	if d == StorageGRID {
		return c.holdsGrid(env)
	}
	return c.holdsRGW(env)
}

// holdsRGW compares as the gateway does: an absent key fails the negated
// operators, too, Null does not look at its value, and a negated operator with
// several values holds as soon as one of them differs.
func (c *condition) holdsRGW(env map[string][]string) bool {
	have := env[c.key]
	if c.operator == "Null" {
		return len(have) == 0
	}
	if len(have) == 0 {
		return c.ifExists || strings.HasPrefix(c.operator, "ForAllValues:")
	}
	want := c.values
	if c.runtime {
		want = env[strings.TrimSuffix(strings.TrimPrefix(want[len(want)-1], "${"), "}")]
	}
	if op, all := strings.CutPrefix(c.operator, "ForAllValues:"); all {
		for _, h := range have {
			if !slices.ContainsFunc(want, func(w string) bool { return compareStrings(op, h, w) }) {
				return false
			}
		}
		return true
	}
	op := strings.TrimPrefix(c.operator, "ForAnyValue:")
	if strings.HasPrefix(op, "String") {
		for _, h := range have {
			if slices.ContainsFunc(want, func(w string) bool { return compareStrings(op, h, w) }) {
				return true
			}
		}
		return false
	}
	if op == "NotIpAddress" {
		net, ok := parseNet(have[0])
		return ok && !slices.ContainsFunc(c.values, func(v string) bool { return sameNet(net, v) })
	}
	// The operators below look at one value of the request and read the
	// document's as plain text.
	return slices.ContainsFunc(c.values, func(w string) bool { return compareScalars(op, have[0], w) })
}

func compareStrings(op, have, want string) bool {
	switch op {
	case "StringEquals":
		return have == want
	case "StringNotEquals":
		return have != want
	case "StringEqualsIgnoreCase":
		return strings.EqualFold(have, want)
	case "StringNotEqualsIgnoreCase":
		return !strings.EqualFold(have, want)
	case "StringLike":
		return compileGlob(want).match(have)
	case "StringNotLike":
		return !compileGlob(want).match(have)
	}
	return false
}

// compareScalars compares numbers, dates, booleans and networks; what does not
// read as one is not equal, not unequal, not anything.
func compareScalars(op, have, want string) bool {
	switch {
	case op == "Bool":
		h, ok1 := parseBool(have)
		w, ok2 := parseBool(want)
		return ok1 && ok2 && h == w
	case op == "IpAddress":
		h, ok := parseNet(have)
		return ok && sameNet(h, want)
	case strings.HasPrefix(op, "Numeric"):
		h, ok1 := parseNumber(have)
		w, ok2 := parseNumber(want)
		return ok1 && ok2 && compareOrder(strings.TrimPrefix(op, "Numeric"), h < w, h == w)
	case strings.HasPrefix(op, "Date"):
		h, ok1 := parseDate(have)
		w, ok2 := parseDate(want)
		return ok1 && ok2 && compareOrder(strings.TrimPrefix(op, "Date"), h.Before(w), h.Equal(w))
	}
	return false
}

func compareOrder(relation string, less, equal bool) bool {
	switch relation {
	case "Equals":
		return equal
	case "NotEquals":
		return !equal
	case "LessThan":
		return less
	case "LessThanEquals":
		return less || equal
	case "GreaterThan":
		return !less && !equal
	case "GreaterThanEquals":
		return !less
	}
	return false
}

func parseNumber(s string) (float64, bool) {
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil && f == f
}

// parseBool reads the words, and numbers as C does.
func parseBool(s string) (value, ok bool) {
	if f, ok := parseNumber(s); ok {
		return f != 0, true
	}
	switch strings.ToLower(s) {
	case "true":
		return true, true
	case "false":
		return false, true
	}
	return false, false
}

// parseDate reads ISO 8601 and seconds since 1970.
func parseDate(s string) (time.Time, bool) {
	if f, ok := parseNumber(s); ok {
		if f < -1e15 || f > 1e15 {
			return time.Time{}, false
		}
		sec := int64(f)
		return time.Unix(sec, int64((f-float64(sec))*1e9)), true
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02T15:04Z07:00", time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// parseNet reads an address or a network; host bits may be set.
func parseNet(s string) (netip.Prefix, bool) {
	if p, err := netip.ParsePrefix(s); err == nil {
		return p, true
	}
	a, err := netip.ParseAddr(s)
	if err != nil || a.Zone() != "" {
		return netip.Prefix{}, false
	}
	return netip.PrefixFrom(a, a.BitLen()), true
}

// sameNet reports whether one of the two networks holds the other.
func sameNet(a netip.Prefix, text string) bool {
	b, ok := parseNet(text)
	return ok && a.Overlaps(b)
}
