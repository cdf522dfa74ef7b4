package agui

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"parley/adapters/agent/remote"
)

// TestPatch checks JSON Patches of RFC 6902. A want of "" is an error.
func TestPatch(t *testing.T) {
	for _, c := range []struct{ document, patch, want string }{
		{`{}`, `[]`, `{}`},
		{`{"a":1}`, `[{"op":"add","path":"/b","value":null}]`, `{"a":1,"b":null}`},
		{`{"a":1}`, `[{"op":"add","path":"","value":null}]`, `null`},
		{`{"a":1}`, `[{"op":"replace","path":"","value":[1]},{"op":"add","path":"/-","value":2}]`, `[1,2]`},
		{`{"a":null}`, `[{"op":"replace","path":"/a","value":12345678901234567890.5}]`, `{"a":12345678901234567890.5}`},
		{`{"a":1}`, `[{"op":"remove","path":"/a"}]`, `{}`},
		{`{"a":1}`, `[{"op":"remove","path":""}]`, `null`},
		{`{"a":[1,2,3]}`, `[{"op":"remove","path":"/a/1"},{"op":"add","path":"/a/0","value":0},{"op":"add","path":"/a/3","value":4}]`, `{"a":[0,1,3,4]}`},
		{`{"a":[[1],2]}`, `[{"op":"add","path":"/a/0/1","value":5}]`, `{"a":[[1,5],2]}`},
		{`{"":1}`, `[{"op":"replace","path":"/","value":2},{"op":"add","path":"/x","value":{"":3}},{"op":"test","path":"/x/","value":3}]`, `{"":2,"x":{"":3}}`},
		{`{"a/b":1,"m~n":2}`, `[{"op":"test","path":"/a~1b","value":1},{"op":"test","path":"/m~0n","value":2.0}]`, `{"a/b":1,"m~n":2}`},
		{`{"a":{"b":null}}`, `[{"op":"copy","from":"/a","path":"/c"},{"op":"add","path":"/c/d","value":1},{"op":"test","path":"/c/b","value":null}]`, `{"a":{"b":null},"c":{"b":null,"d":1}}`},
		{`{"a":{"b":[1,null]}}`, `[{"op":"copy","from":"","path":"/a/c"},{"op":"move","from":"/a/b","path":"/b"}]`, `{"a":{"c":{"a":{"b":[1,null]}}},"b":[1,null]}`},
		{`{"a":1}`, `[{"op":"move","from":"/a","path":"/a"}]`, `{"a":1}`},
		{`{"a":{}}`, `[{"op":"move","from":"/a","path":"/a/b"}]`, ``},
		{`{}`, `[{"op":"test","path":"/a","value":null}]`, ``},
		{`{"a":[1]}`, `[{"op":"test","path":"/a","value":[1,2]}]`, ``},
		{`{}`, `[{"op":"replace","path":"/a","value":1}]`, ``},
		{`{}`, `[{"op":"add","path":"/a/b","value":1}]`, ``},
		{`{"a":null}`, `[{"op":"add","path":"/a/b","value":1}]`, ``},
		{`{"a":[]}`, `[{"op":"add","path":"/a/1","value":1}]`, ``},
		{`{"a":[1]}`, `[{"op":"replace","path":"/a/-","value":1}]`, ``},
		{`{"a":[1]}`, `[{"op":"replace","path":"/a/00","value":1}]`, ``},
		{`{}`, `[{"op":"add","path":"/a"}]`, ``},
		{`{}`, `[{"op":"add","path":"a","value":1}]`, ``},
		{`{}`, `[{"op":"add","path":"/a~2","value":1}]`, ``},
		{`{}`, `[{"op":"add","value":1}]`, ``},
		{`{}`, `[{"op":"copy","path":"/a"}]`, ``},
		{`{}`, `[{"op":"merge","path":"/a","value":1}]`, ``},
		{`{}`, `{}`, ``},
	} {
		d, err := newDocument([]byte(c.document), 1000, new(maxWork))
		if err != nil {
			t.Fatal(err)
		}
		err = d.patch(t.Context(), []byte(c.patch))
		got, _ := json.Marshal(d.value)
		if (err != nil) != (c.want == "") || err == nil && string(got) != c.want {
			t.Errorf("%s after %s: %s, %v; want %s", c.document, c.patch, got, err, c.want)
		}
	}
}

// TestStateIsBounded checks that copies and additions cannot make a document large, and that
// removed values make room.
func TestStateIsBounded(t *testing.T) {
	d, err := newDocument([]byte(`{"a":"`+strings.Repeat("x", 400)+`"}`), 1000, new(maxWork))
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if err := d.patch(t.Context(), []byte(`[{"op":"copy","from":"/a","path":"/b"},{"op":"remove","path":"/b"}]`)); err != nil {
			t.Fatal(err)
		}
	}
	for _, patch := range []string{
		`[{"op":"copy","from":"","path":"/b"},{"op":"copy","from":"","path":"/c"}]`,
		`[{"op":"add","path":"/d","value":"` + strings.Repeat("x", 1000) + `"}]`,
	} {
		if err := d.patch(t.Context(), []byte(patch)); err == nil || !strings.Contains(err.Error(), "larger than 1000 bytes") {
			t.Errorf("%.40s: %v", patch, err)
		}
	}
	if _, err := newDocument([]byte(`"`+strings.Repeat("x", 1000)+`"`), 1000, new(maxWork)); err == nil {
		t.Error("a snapshot above the limit was taken")
	}
}

// TestWorkIsBounded doubles patches whose operations copy, measure and shift a large document. The
// work grows as their number, and ends at its bound.
func TestWorkIsBounded(t *testing.T) {
	large := `{"a":[` + strings.Repeat("0,", 20_000) + `0],"s":"` + strings.Repeat("x", 200_000) + `"}`
	for name, c := range map[string]struct {
		operation string
		n, most   int // of operations; most is too many, or 0 if the patch itself is as long as its work
	}{
		"insertions": {`{"op":"add","path":"/a/0","value":0}`, 20, 1000},
		"removals":   {`{"op":"remove","path":"/a/0"}`, 20, 1000},
		"copies":     {`{"op":"copy","from":"/s","path":"/b"}`, 10, 100},
		"growth":     {`{"op":"replace","path":"/b","value":"` + strings.Repeat("x", 10_000) + `"}`, 200, 0},
	} {
		spent := func(n int) (work int, err error) {
			left := maxWork
			d, err := newDocument([]byte(large), 1<<20, &left)
			if err == nil {
				err = d.patch(t.Context(), []byte(`[{"op":"add","path":"/b","value":0}`+strings.Repeat(","+c.operation, n)+`]`))
			}
			return maxWork - left, err
		}
		once, err := spent(c.n)
		twice, other := spent(2 * c.n)
		if err != nil || other != nil || once == 0 || twice > 2*once+1<<20 {
			t.Errorf("%s: work of %d and %d, %v, %v", name, once, twice, err, other)
		}
		if _, err := spent(c.most); c.most > 0 && !errors.Is(err, errWork) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAPatchEndsWithItsContext stops a patch between two operations.
func TestAPatchEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errStop)
	r := run{state: &document{value: map[string]any{}, limit: 1000, work: new(maxWork)}}
	if err := r.change(ctx, streamEvent{Type: "STATE_DELTA", Delta: []byte(`[{"op":"add","path":"/a","value":1}]`)}); !errors.Is(err, errStop) {
		t.Error(err)
	}
}

var errStop = errors.New("stop")

// TestStateIsNotDeep nests a state by moves, which add no bytes. A document that is measured, a
// copied value and the state of the reply are refused above the bound, and taken at the bound.
func TestStateIsNotDeep(t *testing.T) {
	deep := func(levels int) *document {
		d, err := newDocument([]byte(`{"a":[]}`), 1<<20, new(maxWork))
		if err != nil {
			t.Fatal(err)
		}
		for range levels - 2 {
			if err := d.patch(t.Context(), []byte(`[{"op":"add","path":"/b","value":[]},{"op":"move","from":"/a","path":"/b/0"},{"op":"move","from":"/b","path":"/a"}]`)); err != nil {
				t.Fatal(err)
			}
		}
		return d
	}
	copied := []byte(`[{"op":"copy","from":"/a","path":"/c"}]`)
	if err := deep(maxDepth).patch(t.Context(), copied); err != nil {
		t.Error(err)
	}
	if err := deep(maxDepth+3).patch(t.Context(), copied); err == nil {
		t.Error("a deep value was copied")
	}
	if err := deep(maxDepth + 3).grow(2 << 20); err == nil || !strings.Contains(err.Error(), "deep") {
		t.Errorf("a deep document was encoded: %v", err)
	}
	r := run{client: remote.New(remote.DefaultConfig(), "", nil), state: deep(maxDepth - 1)}
	if _, err := r.own(); err != nil {
		t.Error(err)
	}
	r.state = deep(maxDepth + 3)
	if own, err := r.own(); err == nil {
		t.Errorf("a reply has a deep state of %d bytes", len(own))
	}
}
