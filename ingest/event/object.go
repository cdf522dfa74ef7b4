package event

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"
)

// ReadObject returns the members of a JSON object in their order, with the original bytes
// of the values. It refuses any other value, and a key that is given twice, because
// readers differ in which of the two counts. That error is FieldErrors, and the members
// are returned with it, so that the caller can report other faults at the same time.
func ReadObject(raw []byte) ([]Extra, error) {
	if !json.Valid(raw) {
		var v any
		return nil, fmt.Errorf("must be a JSON object: %w", json.Unmarshal(raw, &v))
	}
	if trim(raw)[0] != '{' {
		return nil, errors.New("must be a JSON object")
	}
	pairs := split(raw)
	if len(pairs) > maxMembers {
		return nil, fmt.Errorf("must have at most %d keys", maxMembers)
	}
	members := make([]Extra, 0, len(pairs))
	var doubled FieldErrors
	for _, pair := range pairs {
		key, err := unquote(pair.key)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(members, func(m Extra) bool { return m.Key == key }) {
			doubled = append(doubled, FieldError{clip(key), "is given twice"})
		}
		members = append(members, Extra{key, pair.value})
	}
	return members, doubled.Err()
}

// maxMembers bounds the keys of one object, because each is compared with the others.
const maxMembers = 1000

// pair holds the original bytes of a member of an object.
type pair struct{ key, value []byte }

// split returns the members of an object that is known to be valid JSON. It stops after
// the first one above the limit.
func split(object []byte) []pair {
	pairs := make([]pair, 0, 16)
	depth, start, colon := 0, 0, 0 // a member begins at start; its colon has been found if colon > start
	for i := 0; i < len(object); i++ {
		switch c := object[i]; c {
		case '"':
			i += text(object[i:]) - 1
		case '{', '[':
			if depth++; depth == 1 {
				start = i + 1
			}
		case ':':
			if depth == 1 {
				colon = i
			}
		case ',', '}', ']':
			if depth == 1 && colon > start {
				if pairs = append(pairs, pair{trim(object[start:colon]), trim(object[colon+1 : i : i])}); len(pairs) > maxMembers {
					return pairs
				}
				start = i + 1
			}
			if c != ',' {
				depth--
			}
		}
	}
	return pairs
}

// trim removes the white space of JSON from the ends of b.
func trim(b []byte) []byte { return bytes.Trim(b, " \t\r\n") }

// unquote reads a string that is known to be valid JSON.
func unquote(quoted []byte) (s string, err error) {
	if bytes.IndexByte(quoted, '\\') < 0 && utf8.Valid(quoted) {
		return string(quoted[1 : len(quoted)-1]), nil
	}
	err = json.Unmarshal(quoted, &s)
	return s, err
}

// text returns the length of the string at the beginning of b.
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
