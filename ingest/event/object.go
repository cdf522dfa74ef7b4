package event

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
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
	if raw = bytes.Trim(raw, " \t\r\n"); raw[0] != '{' {
		return nil, errors.New("must be a JSON object")
	}
	members := make([]Extra, 0, 16)
	var doubled FieldErrors
	var quoted []byte // the key of the next value
	for value := range Values(raw) {
		if quoted == nil {
			quoted = value
			continue
		}
		if len(members) == maxMembers {
			return nil, fmt.Errorf("must have at most %d keys", maxMembers)
		}
		key, err := Unquote(quoted)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(members, func(m Extra) bool { return m.Key == key }) {
			doubled = append(doubled, FieldError{clip(key), "is given twice"})
		}
		members, quoted = append(members, Extra{key, value}), nil
	}
	return members, doubled.Err()
}

// WriteObject returns the JSON object of members, whose values keep their bytes.
func WriteObject(members []Extra) []byte {
	size := 2
	for _, m := range members {
		size += len(m.Key) + len(m.Value) + len(`"":,`)
	}
	out := append(make([]byte, 0, size), '{')
	for i, m := range members {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(append(out, quote(m.Key)...), ':'), m.Value...)
	}
	return append(out, '}')
}

// maxMembers bounds the keys of one object, because each is compared with the others.
const maxMembers = 1000

// Values returns the values inside an object or a list of valid JSON, without white space around
// it, one after the other, with their original bytes. An object's keys and values alternate.
func Values(raw []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for at := 1; ; {
			for bytes.IndexByte([]byte(" \t\r\n,:"), raw[at]) >= 0 {
				at++
			}
			n, _ := measure(raw[at:])
			if n == 0 || !yield(raw[at:at+n:at+n]) {
				return
			}
			at += n
		}
	}
}

// measure returns the length of the value at the beginning of b, which is 0 at the end of the
// object or the list, and how many objects and lists of the value are inside each other at most.
func measure(b []byte) (length, deepest int) {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			i += text(b[i:]) - 1
		case '{', '[':
			depth++
			deepest = max(deepest, depth)
		case '}', ']':
			if depth == 0 {
				return i, deepest
			}
			depth--
		case ',', ':', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return i, deepest
			}
		}
	}
	return len(b), deepest
}

// maxDepth bounds how deep a value of metadata, and the details of a run's message, are nested. Clients'
// parsers have such bounds, and an answer with many messages is no use to them if one value exceeds it.
const maxDepth = 100

// IsDeep reports whether a value of valid JSON, without white space around it, is nested too deep
// for metadata: more than 100 objects and lists are inside each other.
func IsDeep(value []byte) bool {
	_, deepest := measure(value)
	return deepest > maxDepth
}

// Shallow returns valid JSON whose objects and lists are at most 100 inside each other: each one that is deeper
// becomes a text of its JSON. Other JSON stays as it is.
func Shallow(raw []byte) []byte {
	if len(raw) <= maxDepth || !IsDeep(bytes.TrimLeft(raw, " \t\r\n")) {
		return raw
	}
	out := make([]byte, 0, len(raw)+len(raw)/8)
	depth := 0
	for i := 0; i < len(raw); {
		n := 1
		switch c := raw[i]; {
		case c == '"':
			n = text(raw[i:])
		case (c == '{' || c == '[') && depth == maxDepth:
			n, _ = measure(raw[i:])
			out = append(out, quote(string(raw[i:i+n]))...)
			i += n
			continue
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		}
		out = append(out, raw[i:i+n]...)
		i += n
	}
	return out
}

// Unquote reads a string of valid JSON. It returns an error for another value.
func Unquote(quoted []byte) (s string, err error) {
	if quoted[0] == '"' && bytes.IndexByte(quoted, '\\') < 0 && utf8.Valid(quoted) {
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
