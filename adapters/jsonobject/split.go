package jsonobject

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf8"
)

// The functions below read values of a payload that is valid JSON. So they need not check it
// again for every object inside another one, as package json does.

// members returns the members of an object. Of two members with one key, the last one counts.
func members(raw json.RawMessage) (map[string]json.RawMessage, bool) {
	if raw[0] != '{' {
		return nil, false
	}
	all := map[string]json.RawMessage{}
	for s := (splitter{raw, 1}); s.more(); {
		key, _ := text(s.next())
		all[key] = s.next()
	}
	return all, true
}

// objects returns the members of each object of a list. A null has none.
func objects(raw json.RawMessage) (list []map[string]json.RawMessage, ok bool) {
	if raw[0] != '[' {
		return nil, false
	}
	list = []map[string]json.RawMessage{}
	for s := (splitter{raw, 1}); s.more(); {
		one, ok := map[string]json.RawMessage(nil), true
		if element := s.next(); string(element) != "null" {
			one, ok = members(element)
		}
		if !ok {
			return nil, false
		}
		list = append(list, one)
	}
	return list, true
}

// text returns a string. Escapes and invalid UTF-8 are left to package json.
func text(raw json.RawMessage) (s string, ok bool) {
	if raw[0] == '"' && bytes.IndexByte(raw, '\\') < 0 && utf8.Valid(raw) {
		return string(raw[1 : len(raw)-1]), true
	}
	err := json.Unmarshal(raw, &s)
	return s, err == nil
}

func number(raw json.RawMessage) (int64, bool) {
	n, err := strconv.ParseInt(string(raw), 10, 64)
	return n, err == nil
}

func flag(raw json.RawMessage) (value, ok bool) {
	value = string(raw) == "true"
	return value, value || string(raw) == "false"
}

// splitter reads the values inside an object or a list, one after the other. An object's keys and
// values alternate.
type splitter struct {
	raw json.RawMessage
	at  int // after the opening bracket, or after a value
}

// more moves to the next value. It returns false at the end of the object or the list.
func (s *splitter) more() bool {
	for bytes.IndexByte([]byte(" \t\r\n,:"), s.raw[s.at]) >= 0 {
		s.at++
	}
	return s.raw[s.at] != '}' && s.raw[s.at] != ']'
}

// next returns the next value.
func (s *splitter) next() json.RawMessage {
	s.more()
	begin, depth := s.at, 0
	for {
		switch s.raw[s.at] {
		case '"':
			s.skipString()
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 { // of the object or the list itself
				return s.raw[begin:s.at:s.at]
			}
			depth--
		case ',', ':', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return s.raw[begin:s.at:s.at]
			}
		}
		s.at++
	}
}

// skipString moves behind a string.
func (s *splitter) skipString() {
	for s.at++; s.raw[s.at] != '"'; s.at++ {
		if s.raw[s.at] == '\\' {
			s.at++
		}
	}
	s.at++
}
