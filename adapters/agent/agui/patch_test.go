package agui

import (
	"encoding/json"
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
		d, err := newDocument([]byte(c.document), 1000)
		if err != nil {
			t.Fatal(err)
		}
		err = d.patch([]byte(c.patch))
		got, _ := json.Marshal(d.value)
		if (err != nil) != (c.want == "") || err == nil && string(got) != c.want {
			t.Errorf("%s after %s: %s, %v; want %s", c.document, c.patch, got, err, c.want)
		}
	}
}

// TestStateIsBounded checks that copies and additions cannot make a document large, and that
// removed values make room.
func TestStateIsBounded(t *testing.T) {
	d, err := newDocument([]byte(`{"a":"`+strings.Repeat("x", 400)+`"}`), 1000)
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if err := d.patch([]byte(`[{"op":"copy","from":"/a","path":"/b"},{"op":"remove","path":"/b"}]`)); err != nil {
			t.Fatal(err)
		}
	}
	for _, patch := range []string{
		`[{"op":"copy","from":"","path":"/b"},{"op":"copy","from":"","path":"/c"}]`,
		`[{"op":"add","path":"/d","value":"` + strings.Repeat("x", 1000) + `"}]`,
	} {
		if err := d.patch([]byte(patch)); err == nil || !strings.Contains(err.Error(), "max_bytes") {
			t.Errorf("%.40s: %v", patch, err)
		}
	}
	if _, err := newDocument([]byte(`"`+strings.Repeat("x", 1000)+`"`), 1000); err == nil {
		t.Error("a snapshot above the limit was taken")
	}
}

// TestStateIsNotDeep nests a state by moves, which add no bytes. A document that is measured, a
// copied value and the state of the reply are refused above the bound, and taken at the bound.
func TestStateIsNotDeep(t *testing.T) {
	deep := func(levels int) *document {
		d, err := newDocument([]byte(`{"a":[]}`), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		for range levels - 2 {
			if err := d.patch([]byte(`[{"op":"add","path":"/b","value":[]},{"op":"move","from":"/a","path":"/b/0"},{"op":"move","from":"/b","path":"/a"}]`)); err != nil {
				t.Fatal(err)
			}
		}
		return d
	}
	copied := []byte(`[{"op":"copy","from":"/a","path":"/c"}]`)
	if err := deep(maxDepth).patch(copied); err != nil {
		t.Error(err)
	}
	if err := deep(maxDepth + 3).patch(copied); err == nil {
		t.Error("a deep value was copied")
	}
	if err := deep(maxDepth + 3).grow(2 << 20); err == nil || !strings.Contains(err.Error(), "deep") {
		t.Errorf("a deep document was encoded: %v", err)
	}
	r := run{client: remote.New(remote.DefaultConfig(), nil), state: deep(maxDepth - 1)}
	if _, err := r.own(); err != nil {
		t.Error(err)
	}
	r.state = deep(maxDepth + 3)
	if own, err := r.own(); err == nil {
		t.Errorf("a reply has a deep state of %d bytes", len(own))
	}
}
