package policy

import (
	"bytes"
	"unicode/utf8"
)

// scanner reads JSON with the leniences, error texts and error offsets of the
// reader inside RGW: comments are skipped, a NUL byte ends the text, bytes of
// a string are not checked for encoding.
type scanner struct {
	src []byte
	pos int
}

// syntaxError is a fault of the text or of what it says, at a byte offset.
type syntaxError struct {
	offset int
	text   string
}

func (e *syntaxError) Error() string { return e.text }

func newScanner(src []byte) *scanner {
	if i := bytes.IndexByte(src, 0); i >= 0 {
		src = src[:i]
	}
	return &scanner{src: src}
}

// fail is an error at the current offset.
func (s *scanner) fail(text string) error { return &syntaxError{s.pos, text} }

// peek returns the next byte, 0 at the end.
func (s *scanner) peek() byte {
	if s.pos < len(s.src) {
		return s.src[s.pos]
	}
	return 0
}

// consume takes the next byte if it is c.
func (s *scanner) consume(c byte) bool {
	if s.peek() != c {
		return false
	}
	s.pos++
	return true
}

// skip takes white space and comments.
func (s *scanner) skip() error {
	for {
		switch s.peek() {
		case ' ', '\t', '\r', '\n':
			s.pos++
		case '/':
			s.pos++
			if err := s.comment(); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}

// comment takes a comment whose first slash is taken already.
func (s *scanner) comment() error {
	end := "\n"
	switch {
	case s.consume('*'):
		end = "*/"
	case !s.consume('/'):
		return s.fail("Unspecific syntax error.")
	}
	i := bytes.Index(s.src[s.pos:], []byte(end))
	switch {
	case i >= 0:
		s.pos += i + len(end)
	case end == "\n":
		s.pos = len(s.src)
	default:
		s.pos = len(s.src)
		return s.fail("Unspecific syntax error.")
	}
	return nil
}

// object takes the members of an object whose brace is taken already. The
// function is called after each name and takes its value.
func (s *scanner) object(member func(name string) error) error {
	if err := s.skip(); err != nil {
		return err
	}
	if s.consume('}') {
		return nil
	}
	for {
		if s.peek() != '"' {
			return s.fail("Missing a name for object member.")
		}
		name, err := s.str()
		if err != nil {
			return err
		}
		if err := member(name); err != nil {
			return err
		}
		if err := s.skip(); err != nil {
			return err
		}
		if s.consume('}') {
			return nil
		}
		if !s.consume(',') {
			return s.fail("Missing a comma or } after an object member.")
		}
		if err := s.skip(); err != nil {
			return err
		}
	}
}

// colon takes what stands between a name and its value.
func (s *scanner) colon() error {
	if err := s.skip(); err != nil {
		return err
	}
	if !s.consume(':') {
		return s.fail("Missing a colon after a name of object member.")
	}
	return s.skip()
}

// array takes the elements of an array whose bracket is taken already.
func (s *scanner) array(element func() error) error {
	if err := s.skip(); err != nil {
		return err
	}
	if s.consume(']') {
		return nil
	}
	for {
		if err := element(); err != nil {
			return err
		}
		if err := s.skip(); err != nil {
			return err
		}
		if s.consume(']') {
			return nil
		}
		if !s.consume(',') {
			return s.fail("Missing a comma or ] after an array element.")
		}
		if err := s.skip(); err != nil {
			return err
		}
	}
}

// str takes a string; the next byte is its opening quote.
func (s *scanner) str() (string, error) {
	s.pos++
	var out []byte
	for {
		c := s.peek()
		switch {
		case s.pos >= len(s.src):
			return "", s.fail("Missing a closing quotation mark in string.")
		case c == '"':
			s.pos++
			return string(out), nil
		case c == '\\':
			var err error
			if out, err = s.escape(out); err != nil {
				return "", err
			}
		case c < 0x20:
			return "", s.fail("Invalid encoding in string.")
		default:
			out = append(out, c)
			s.pos++
		}
	}
}

// escape takes one escape sequence; the next byte is the backslash.
func (s *scanner) escape(out []byte) ([]byte, error) {
	start := s.pos
	s.pos++
	c := s.peek()
	s.pos++
	switch c {
	case '"', '\\', '/':
		return append(out, c), nil
	case 'b':
		return append(out, '\b'), nil
	case 'f':
		return append(out, '\f'), nil
	case 'n':
		return append(out, '\n'), nil
	case 'r':
		return append(out, '\r'), nil
	case 't':
		return append(out, '\t'), nil
	case 'u':
	default:
		return nil, &syntaxError{start, "Invalid escape character in string."}
	}
	r, err := s.hex4(start)
	if err != nil {
		return nil, err
	}
	if r >= 0xd800 && r <= 0xdfff {
		if r >= 0xdc00 || !s.consume('\\') || !s.consume('u') {
			return nil, &syntaxError{start, "The surrogate pair in string is invalid."}
		}
		low, err := s.hex4(start)
		if err != nil {
			return nil, err
		}
		if low < 0xdc00 || low > 0xdfff {
			return nil, &syntaxError{start, "The surrogate pair in string is invalid."}
		}
		r = (r-0xd800)<<10 + (low - 0xdc00) + 0x10000
	}
	return utf8.AppendRune(out, r), nil
}

// hex4 takes four hexadecimal digits of an escape that began at start.
func (s *scanner) hex4(start int) (rune, error) {
	var r rune
	for range 4 {
		c := s.peek()
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case c >= 'A' && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return 0, &syntaxError{start, `Incorrect hex digit after \u escape in string.`}
		}
		s.pos++
	}
	return r, nil
}

// number takes a number and returns its text.
func (s *scanner) number() (string, error) {
	start := s.pos
	s.consume('-')
	switch {
	case s.consume('0'):
	case !s.digits():
		return "", s.fail("Invalid value.")
	}
	if s.consume('.') && !s.digits() {
		return "", s.fail("Miss fraction part in number.")
	}
	if s.consume('e') || s.consume('E') {
		if !s.consume('+') {
			s.consume('-')
		}
		if !s.digits() {
			return "", s.fail("Miss exponent in number.")
		}
	}
	return string(s.src[start:s.pos]), nil
}

// digits takes decimal digits and reports whether there was one.
func (s *scanner) digits() bool {
	start := s.pos
	for c := s.peek(); c >= '0' && c <= '9'; c = s.peek() {
		s.pos++
	}
	return s.pos > start
}

// word takes true, false or null; the next byte is its first letter.
func (s *scanner) word(text string) error {
	for i := range len(text) {
		if !s.consume(text[i]) {
			return s.fail("Invalid value.")
		}
	}
	return nil
}
