package event_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"parley/ingest/event"
)

func TestReadObject(t *testing.T) {
	got, err := event.ReadObject([]byte(" {\n \"a\" : 1.0e5 , \"b\\u0062\":{\"x\":[1,\"}\\\"\" ]} ,\"c\":\"\\\\\",\"d\": null,\"\":[] }\t"))
	if err != nil {
		t.Fatal(err)
	}
	want := []event.Extra{
		{Key: "a", Value: json.RawMessage("1.0e5")},
		{Key: "bb", Value: json.RawMessage(`{"x":[1,"}\"" ]}`)},
		{Key: "c", Value: json.RawMessage(`"\\"`)},
		{Key: "d", Value: json.RawMessage("null")},
		{Key: "", Value: json.RawMessage("[]")},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestReadObjectRefuses(t *testing.T) {
	for raw, want := range map[string]string{
		``:                             "must be a JSON object: unexpected end of JSON input",
		`[]`:                           "must be a JSON object",
		`null`:                         "must be a JSON object",
		`{"a":1} x`:                    "must be a JSON object: invalid character 'x' after top-level value",
		`{"a":1`:                       "must be a JSON object: unexpected end of JSON input",
		`{"a":1,"b":2,"a":3,"b":null}`: "a: is given twice; b: is given twice",
		`{"a":1,"\u0061":2}`:           "a: is given twice",
	} {
		if _, err := event.ReadObject([]byte(raw)); err == nil || err.Error() != want {
			t.Errorf("ReadObject(%s): %v, want %s", raw, err, want)
		}
	}
}

// TestReadObjectAgreesWithJSON compares ReadObject with encoding/json, for any white
// space.
func TestReadObjectAgreesWithJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		object := rapid.MapOf(rapid.String(), values(3)).Draw(t, "object")
		raw, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		var spaced bytes.Buffer
		if err := json.Indent(&spaced, raw, "\r", "\t"); err != nil {
			t.Fatal(err)
		}
		for _, form := range [][]byte{raw, spaced.Bytes()} {
			members, err := event.ReadObject(form)
			if err != nil || len(members) != len(object) {
				t.Fatalf("%d members of %s: %v", len(members), form, err)
			}
			want := map[string]json.RawMessage{}
			if err := json.Unmarshal(form, &want); err != nil {
				t.Fatal(err)
			}
			for _, m := range members {
				if diff := cmp.Diff(string(want[m.Key]), string(m.Value)); diff != "" {
					t.Fatalf("%q: %s", m.Key, diff)
				}
			}
		}
	})
}

// values returns a generator of JSON values of the given depth.
func values(depth int) *rapid.Generator[any] {
	leaf := rapid.OneOf(rapid.Just[any](nil), rapid.Map(rapid.String(), toAny), rapid.Map(rapid.Float64Range(-1e9, 1e9), toAny), rapid.Map(rapid.Bool(), toAny))
	if depth == 0 {
		return leaf
	}
	return rapid.OneOf(leaf,
		rapid.Map(rapid.SliceOfN(values(depth-1), 0, 3), toAny),
		rapid.Map(rapid.MapOfN(rapid.String(), values(depth-1), 0, 3), toAny))
}

func toAny[T any](v T) any { return v }

func BenchmarkReadMetadata(b *testing.B) {
	raw := []byte(`{"source":"slack","sender_id":"slack:U06STGBF4Q0","sender_display_name":"Olivia","sender_type":"human",` +
		`"channel_external_id":"C06RY3YBSLE","mention_token":"<@U06STGBF4Q0>","passive":false,"include_in_memory":true,"trigger_rag":true,"recipient_id":"bot:echo"}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := event.ReadMetadata(raw); err != nil {
			b.Fatal(err)
		}
	}
}

// TestReadObjectBoundsItsKeys covers a body within its own limit.
func TestReadObjectBoundsItsKeys(t *testing.T) {
	object := func(keys int) []byte {
		raw := []byte{'{'}
		for i := range keys {
			raw = fmt.Appendf(raw, `"%d":[{"a":1,"b":2}],`, i)
		}
		return append(raw[:len(raw)-1], '}')
	}
	if members, err := event.ReadObject(object(1000)); err != nil || len(members) != 1000 {
		t.Errorf("%d members: %v", len(members), err)
	}
	if _, err := event.ReadObject(object(1001)); err == nil || err.Error() != "must have at most 1000 keys" {
		t.Errorf("one key above the bound: %v", err)
	}
}

// TestShallow checks that lists and objects deeper than 100 become texts, and that other JSON stays.
func TestShallow(t *testing.T) {
	lists := func(n int, inner string) string { return strings.Repeat("[", n) + inner + strings.Repeat("]", n) }
	for raw, want := range map[string]string{
		``: ``, `7`: `7`, lists(100, `"{["`): lists(100, `"{["`),
		lists(100, `1,[{"a":"]"},2],"x",[],{}`):       lists(100, `1,"[{\"a\":\"]\"},2]","x","[]","{}"`),
		` {"a" : ` + lists(100, "") + `, "b": [ 1 ]}`: ` {"a" : ` + lists(99, `"[]"`) + `, "b": [ 1 ]}`,
	} {
		if got := string(event.Shallow([]byte(raw))); got != want || want != "" && !json.Valid([]byte(got)) {
			t.Errorf("%s is %s, want %s", raw, got, want)
		}
	}
	if got := event.Shallow([]byte(lists(20_000, ""))); event.IsDeep(got) || !json.Valid(got) {
		t.Error("20,000 lists stay deep")
	}
}
