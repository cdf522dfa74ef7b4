package jsonobject

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzMembers checks that members, objects, text, number and flag read the same as package json. A
// number may also have other forms.
func FuzzMembers(f *testing.F) {
	for _, seed := range []string{
		`{}`, ` { "a" : 1 , "b":[ {"c":"}\\\"]"} , null ] } `, `{"a":1,"a":"x\u00e9\ud800","\u0061":{"a":[]}}`,
		`{"n":-0,"m":1e3,"o":9223372036854775808,"t":true,"f":false,"s":"\xff","e":[],"deep":[[{"x":[1,2,{"y":"z"}]}]]}`,
		`{"list":[{},1]}`, `{"list":[ null , {"a":null}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var want map[string]json.RawMessage
		if json.Unmarshal(body, &want) != nil || want == nil {
			return
		}
		fields, err := Parse(body)
		if err != nil {
			t.Fatal(err)
		}
		compare(t, want, fields.members)
	})
}

// compare compares two readings of an object, and of every value inside.
func compare(t *testing.T, want, got map[string]json.RawMessage) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
	for _, raw := range got {
		same(t, raw, text)
		if json.Unmarshal(raw, new(int64)) == nil {
			same(t, raw, number)
		}
		same(t, raw, flag)
		same(t, raw, objects)
		if strings.HasPrefix(string(raw), "{") {
			var inner map[string]json.RawMessage
			if err := json.Unmarshal(raw, &inner); err != nil {
				t.Fatal(err)
			}
			read, _ := members(raw)
			compare(t, inner, read)
		}
	}
}

func same[T any](t *testing.T, raw json.RawMessage, decode func(json.RawMessage) (T, bool)) {
	t.Helper()
	if string(raw) == "null" { // counts as missing
		return
	}
	var want T
	err := json.Unmarshal(raw, &want)
	got, ok := decode(raw)
	if ok != (err == nil) {
		t.Fatalf("%s: read as %v, %t; the error of package json is %v", raw, got, ok, err)
	}
	if diff := cmp.Diff(want, got); ok && diff != "" {
		t.Fatalf("%s: %s", raw, diff)
	}
}
