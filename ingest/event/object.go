package event

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"
)

// ReadObject reads the members of a JSON object in their order, values as they
// came. It refuses what is no object, and a key that is given twice: which of
// the two counts would depend on who reads it. That error is FieldErrors, and the
// members come with it, so that other faults can be told at the same time.
func ReadObject(raw []byte) ([]Extra, error) {
	if !json.Valid(raw) {
		var v any
		return nil, fmt.Errorf("must be a JSON object: %w", json.Unmarshal(raw, &v))
	}
	s := scanner{rest: raw}
	if s.skipSpace(); s.rest[0] != '{' {
		return nil, errors.New("must be a JSON object")
	}
	members := make([]Extra, 0, 16)
	var doubled FieldErrors
	for s.next(); s.rest[0] != '}'; s.next() {
		member, err := s.member()
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(members, func(m Extra) bool { return m.Key == member.Key }) {
			doubled = append(doubled, FieldError{clip(member.Key), "is given twice"})
		}
		if members = append(members, member); len(members) > maxMembers {
			return nil, fmt.Errorf("must have at most %d keys", maxMembers)
		}
		if s.skipSpace(); s.rest[0] == '}' {
			break
		}
	}
	if len(doubled) > 0 {
		return members, doubled
	}
	return members, nil
}

// maxMembers bounds the keys of one object: each is looked for among the others.
const maxMembers = 1000

// scanner walks through text that is known to be one valid JSON value.
type scanner struct{ rest []byte }

// next goes past one byte of punctuation and the space behind it.
func (s *scanner) next() {
	s.rest = s.rest[1:]
	s.skipSpace()
}

func (s *scanner) skipSpace() {
	s.rest = bytes.TrimLeft(s.rest, " \t\r\n")
}

// member reads a key, its colon and its value.
func (s *scanner) member() (m Extra, err error) {
	if m.Key, err = unquote(s.take(text(s.rest))); err != nil {
		return m, err
	}
	s.skipSpace()
	s.next()
	m.Value = json.RawMessage(s.take(value(s.rest)))
	return m, nil
}

// unquote reads a string that is known to be valid JSON.
func unquote(quoted []byte) (s string, err error) {
	if bytes.IndexByte(quoted, '\\') < 0 && utf8.Valid(quoted) {
		return string(quoted[1 : len(quoted)-1]), nil
	}
	err = json.Unmarshal(quoted, &s)
	return s, err
}

func (s *scanner) take(n int) []byte {
	taken := s.rest[:n:n]
	s.rest = s.rest[n:]
	return taken
}

// text is the length of the string that b begins with.
func text(b []byte) int {
	for i := 1; ; i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
}

// value is the length of the value that b begins with.
func value(b []byte) int {
	for i, depth := 0, 0; ; i++ {
		switch b[i] {
		case '"':
			i += text(b[i:]) - 1
		case '{', '[':
			depth++
			continue
		case '}', ']':
			if depth == 0 {
				return len(bytes.TrimRight(b[:i], " \t\r\n"))
			}
			depth--
		case ',':
			if depth == 0 {
				return len(bytes.TrimRight(b[:i], " \t\r\n"))
			}
			continue
		default:
			continue
		}
		if depth == 0 {
			return i + 1
		}
	}
}
