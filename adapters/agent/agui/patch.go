package agui

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// operation is one operation of a JSON Patch (RFC 6902). The published Go libraries lose or
// misread nulls, empty keys and values that the same patch has written, and panic on some
// patches, so the patch is applied here.
type operation struct {
	Op    string
	Path  *string
	From  *string
	Value json.RawMessage // nil if it is absent
}

// document is a JSON value that patches change. Numbers are json.Number.
type document struct {
	value any
	limit int // of the whole value as JSON, in bytes
	room  int // so many bytes may be added before the whole value is measured again
}

// maxDepth bounds the nesting of a value that is encoded. A move can nest a value in another one
// without any new bytes, and json.Marshal calls itself for each level: at a million levels its
// stack overflows, which ends the process.
const maxDepth = 1000

// encode returns the JSON of a value. It fails if the value is nested more than maxDepth deep.
func encode(value any) ([]byte, error) {
	if isDeeper(value, maxDepth) {
		return nil, fmt.Errorf("the document is nested more than %d deep", maxDepth)
	}
	return json.Marshal(value)
}

// isDeeper reports whether a value is nested more than depth deep in objects and arrays.
func isDeeper(value any, depth int) bool {
	if depth < 0 {
		return true
	}
	switch value := value.(type) {
	case map[string]any:
		for _, inner := range value {
			if isDeeper(inner, depth-1) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(value, func(inner any) bool { return isDeeper(inner, depth-1) })
	}
	return false
}

// newDocument returns the value of a JSON text.
func newDocument(raw []byte, limit int) (*document, error) {
	value, err := read(raw)
	d := &document{value: value, limit: limit, room: limit}
	if err == nil {
		err = d.grow(len(raw))
	}
	return d, err
}

// grow fails if the document is too large after it has grown by so many bytes.
func (d *document) grow(bytes int) error {
	if d.room -= bytes; d.room >= 0 {
		return nil
	}
	raw, err := encode(d.value)
	if d.room = d.limit - len(raw) - bytes; err == nil && d.room < 0 {
		err = fmt.Errorf("the document is larger than %d bytes (max_bytes)", d.limit)
	}
	return err
}

// read returns the value of a JSON text.
func read(raw []byte) (value any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	err = decoder.Decode(&value)
	return value, err
}

// patch applies a JSON Patch. After an error, the document is of no use.
func (d *document) patch(raw []byte) error {
	var operations []operation
	if err := json.Unmarshal(raw, &operations); err != nil {
		return err
	}
	for _, o := range operations {
		if err := d.apply(o); err != nil {
			return fmt.Errorf("%s: %w", o.Op, err)
		}
	}
	return nil
}

func (d *document) apply(o operation) (err error) {
	var value any
	var path, from []string
	if path, err = pointer(o.Path); err != nil {
		return err
	}
	switch o.Op {
	case "add", "replace", "test":
		if o.Value == nil {
			return errors.New("value: is required")
		}
		if err = d.grow(len(o.Value)); err == nil {
			value, err = read(o.Value)
		}
	case "move", "copy":
		if from, err = pointer(o.From); err == nil {
			value, err = find(d.value, from)
		}
	case "remove":
	default:
		return errors.New("is no operation")
	}
	if err != nil {
		return err
	}
	switch o.Op {
	case "test", "replace":
		old, err := find(d.value, path)
		if err == nil && o.Op == "test" && !equal(old, value) {
			err = errors.New("the value is another one")
		}
		if err != nil || o.Op == "test" {
			return err
		}
		return d.edit(path, func(in any, key string) (any, error) { return put(in, key, value) })
	case "remove":
		return d.edit(path, removed)
	case "copy":
		value, err = d.copied(value)
	case "move":
		if len(from) < len(path) && slices.Equal(from, path[:len(from)]) {
			return errors.New("path: is inside of from")
		}
		err = d.edit(from, removed)
	}
	if err != nil {
		return err
	}
	return d.edit(path, func(in any, key string) (any, error) { return insert(in, key, value) })
}

// copied returns a copy of a value that shares nothing with it.
func (d *document) copied(value any) (any, error) {
	raw, err := encode(value)
	if err != nil {
		return nil, err
	}
	if err := d.grow(len(raw)); err != nil {
		return nil, err
	}
	return read(raw)
}

// pointer returns the keys of a JSON Pointer (RFC 6901); none for the whole document.
func pointer(text *string) ([]string, error) {
	switch {
	case text == nil:
		return nil, errors.New("path: is required")
	case *text == "":
		return nil, nil
	case (*text)[0] != '/':
		return nil, fmt.Errorf("path: %q does not begin with /", *text)
	}
	keys := strings.Split((*text)[1:], "/")
	for i, key := range keys {
		plain := strings.NewReplacer("~0", "", "~1", "").Replace(key)
		if strings.Contains(plain, "~") {
			return nil, fmt.Errorf("path: %q has a ~ without 0 or 1", *text)
		}
		keys[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(key)
	}
	return keys, nil
}

// index returns the place in an array of n values that a key names, below limit.
func index(key string, limit int) (int, error) {
	i, err := strconv.Atoi(key)
	if err != nil || i < 0 || i >= limit || strconv.Itoa(i) != key {
		return 0, fmt.Errorf("path: %q is no place in the array", key)
	}
	return i, nil
}

// find returns the value at a path.
func find(value any, path []string) (any, error) {
	for _, key := range path {
		switch in := value.(type) {
		case map[string]any:
			next, ok := in[key]
			if !ok {
				return nil, fmt.Errorf("path: there is no %q", key)
			}
			value = next
		case []any:
			i, err := index(key, len(in))
			if err != nil {
				return nil, err
			}
			value = in[i]
		default:
			return nil, fmt.Errorf("path: there is no %q", key)
		}
	}
	return value, nil
}

// whole takes the place of the object or array for a change of the whole document.
type whole struct{}

// edit changes the document at a path: change gets the object or array of the last key, and
// returns it as it is then. For the whole document it gets whole and returns the new value.
func (d *document) edit(path []string, change func(in any, key string) (any, error)) (err error) {
	last := len(path) - 1
	if last < 0 {
		d.value, err = change(whole{}, "")
		return err
	}
	in, err := find(d.value, path[:last])
	if err != nil {
		return err
	}
	changed, err := change(in, path[last])
	if err != nil {
		return err
	}
	if last == 0 {
		d.value = changed
		return nil
	}
	outer, err := find(d.value, path[:last-1])
	if err == nil {
		_, err = put(outer, path[last-1], changed) // an array may be another one now
	}
	return err
}

// put replaces the value of a key, or the whole document.
func put(in any, key string, value any) (any, error) {
	switch in := in.(type) {
	case whole:
		return value, nil
	case map[string]any:
		in[key] = value
	case []any:
		i, err := index(key, len(in))
		if err != nil {
			return nil, err
		}
		in[i] = value
	default:
		return nil, fmt.Errorf("path: there is no %q", key)
	}
	return in, nil
}

// insert adds a value to an object, or to an array before a place. The key - is the array's end.
func insert(in any, key string, value any) (any, error) {
	array, ok := in.([]any)
	if !ok {
		return put(in, key, value)
	}
	if key == "-" {
		return append(array, value), nil
	}
	i, err := index(key, len(array)+1)
	if err != nil {
		return nil, err
	}
	return slices.Insert(array, i, value), nil
}

// removed removes the value of a key. A document without its value is null.
func removed(in any, key string) (any, error) {
	switch in := in.(type) {
	case whole:
		return nil, nil
	case map[string]any:
		if _, ok := in[key]; ok {
			delete(in, key)
			return in, nil
		}
	case []any:
		i, err := index(key, len(in))
		if err != nil {
			return nil, err
		}
		return slices.Delete(in, i, i+1), nil
	}
	return nil, fmt.Errorf("path: there is no %q", key)
}

// equal reports whether two values are the same. Numbers are compared as numbers.
func equal(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for key, inner := range a {
			if other, ok := b[key]; !ok || !equal(inner, other) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, equal)
	case json.Number:
		b, ok := b.(json.Number)
		x, _ := a.Float64()
		y, _ := b.Float64()
		return ok && (a == b || x == y)
	}
	return a == b
}
