package jsonobject

import (
	"encoding/json"
	"math"
	"strconv"

	"parley/ingest/event"
)

// The functions below read values of a payload that is valid JSON. So they need not check it
// again for every object inside another one, as package json does.

// members returns the members of an object. Of two members with one key, the last one counts.
func members(raw json.RawMessage) (map[string]json.RawMessage, bool) {
	if raw[0] != '{' {
		return nil, false
	}
	all := map[string]json.RawMessage{}
	var quoted []byte // the key of the next value
	for value := range event.Values(raw) {
		if quoted == nil {
			quoted = value
			continue
		}
		key, _ := text(quoted)
		all[key], quoted = value, nil
	}
	return all, true
}

// objects returns the members of each object of a list. A null has none.
func objects(raw json.RawMessage) (list []map[string]json.RawMessage, ok bool) {
	if raw[0] != '[' {
		return nil, false
	}
	list = []map[string]json.RawMessage{}
	for element := range event.Values(raw) {
		one, ok := map[string]json.RawMessage(nil), true
		if string(element) != "null" {
			one, ok = members(element)
		}
		if !ok {
			return nil, false
		}
		list = append(list, one)
	}
	return list, true
}

func text(raw json.RawMessage) (string, bool) {
	s, err := event.Unquote(raw)
	return s, err == nil
}

// number reads a number, or a text with one. A fraction is cut off.
func number(raw json.RawMessage) (int64, bool) {
	if raw[0] == '"' {
		written, _ := text(raw)
		raw = json.RawMessage(written)
	}
	if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		return n, true
	}
	var n *float64
	if json.Unmarshal(raw, &n) != nil || n == nil || *n < math.MinInt64 || *n >= math.MaxInt64 {
		return 0, false
	}
	return int64(*n), true
}

func flag(raw json.RawMessage) (value, ok bool) {
	value = string(raw) == "true"
	return value, value || string(raw) == "false"
}
