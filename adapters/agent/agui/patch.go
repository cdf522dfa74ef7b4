package agui

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
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
	work  *int
}

// maxWork bounds the work of a run's patches: the bytes that their operations copy and measure, and
// the elements of arrays that they shift. A patch of a few bytes for each operation could otherwise
// make each of them go through the whole document.
const maxWork = 16 << 20

var errWork = errors.New("the patches of the run need too much work")

// spend takes work from that of the run.
func (d *document) spend(work int) error {
	if *d.work -= work; *d.work < 0 {
		return errWork
	}
	return nil
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

// newDocument returns the value of a JSON text. Work is the number of bytes that the run's patches may still handle.
func newDocument(raw []byte, limit int, work *int) (*document, error) {
	d := &document{limit: limit, room: limit, work: work}
	if len(raw) > overhead*limit {
		return nil, d.tooLarge()
	}
	value, err := read(raw)
	d.value = value
	if err == nil {
		err = d.grow(len(raw))
	}
	return d, err
}

// overhead is how many times longer a JSON text may be than its value: by white space and escapes.
const overhead = 6

func (d *document) tooLarge() error {
	return fmt.Errorf("the document is larger than %d bytes", d.limit)
}

// grow fails if the document is too large after it has grown by so many bytes.
func (d *document) grow(bytes int) error {
	if d.room -= bytes; d.room >= 0 {
		return nil
	}
	raw, err := encode(d.value)
	if d.room = d.limit - len(raw) - bytes; err == nil && d.room < 0 {
		err = d.tooLarge()
	}
	if err == nil {
		err = d.spend(len(raw))
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

// patch applies a JSON Patch, until ctx ends. After an error, the document is of no use.
func (d *document) patch(ctx context.Context, raw []byte) error {
	var operations []operation
	if err := json.Unmarshal(raw, &operations); err != nil {
		return err
	}
	for _, o := range operations {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := d.apply(o); err != nil {
			return fmt.Errorf("%s: %w", o.Op, err)
		}
	}
	return nil
}

func (d *document) apply(o operation) error {
	path, err := pointer(o.Path)
	if err != nil {
		return err
	}
	value, err := d.operand(o)
	if err != nil {
		return err
	}
	op := o.Op
	switch op {
	case "test":
		old, err := find(d.value, path)
		if err == nil && !equal(old, value) {
			err = errors.New("the value is another one")
		}
		return err
	case "copy":
		op = "add"
	case "move":
		from, _ := pointer(o.From) // operand has read it
		if len(from) < len(path) && slices.Equal(from, path[:len(from)]) {
			return errors.New("path: is inside of from")
		}
		if d.value, err = d.edit(d.value, from, "remove", nil); err != nil {
			return err
		}
		op = "add"
	}
	d.value, err = d.edit(d.value, path, op, value)
	return err
}

// operand returns the value of an operation: its own, or the one at its place in the document; a
// copy shares nothing with that one.
func (d *document) operand(o operation) (any, error) {
	switch o.Op {
	case "add", "replace", "test":
		if o.Value == nil {
			return nil, errors.New("value: is required")
		}
		if err := d.grow(len(o.Value)); err != nil {
			return nil, err
		}
		return read(o.Value)
	case "remove":
		return nil, nil
	case "move", "copy":
	default:
		return nil, errors.New("is no operation")
	}
	from, err := pointer(o.From)
	if err != nil {
		return nil, err
	}
	value, err := find(d.value, from)
	if err != nil || o.Op == "move" {
		return value, err
	}
	raw, err := encode(value)
	if err == nil {
		err = d.spend(len(raw))
	}
	if err == nil {
		err = d.grow(len(raw))
	}
	if err != nil {
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
	case strings.Count(*text, "/") > maxDepth:
		return nil, fmt.Errorf("path: has more than %d keys", maxDepth)
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

// edit returns a value after an operation at a path: add, replace or remove. The key - is the end of
// an array. A document without its value is null.
func (d *document) edit(in any, path []string, op string, value any) (any, error) {
	if len(path) == 0 {
		return value, nil
	}
	key, isLast := path[0], len(path) == 1
	switch in := in.(type) {
	case map[string]any:
		old, ok := in[key]
		switch {
		case !ok && !(isLast && op == "add"):
			return nil, fmt.Errorf("path: there is no %q", key)
		case isLast && op == "remove":
			delete(in, key)
			return in, nil
		}
		changed, err := d.edit(old, path[1:], op, value)
		in[key] = changed
		return in, err
	case []any:
		limit := len(in)
		if isLast && op == "add" {
			limit++
			if key == "-" {
				key = strconv.Itoa(len(in))
			}
		}
		i, err := index(key, limit)
		switch {
		case err != nil:
			return nil, err
		case isLast && op == "add":
			return slices.Insert(in, i, value), d.spend(len(in) - i)
		case isLast && op == "remove":
			return slices.Delete(in, i, i+1), d.spend(len(in) - i)
		}
		in[i], err = d.edit(in[i], path[1:], op, value)
		return in, err
	}
	return nil, fmt.Errorf("path: there is no %q", key)
}

// equal reports whether two values are the same. Numbers are compared as numbers.
func equal(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, equal)
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
