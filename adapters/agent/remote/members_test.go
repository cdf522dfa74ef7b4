package remote

import (
	"encoding/json"
	"testing"
)

var membersSeeds = []string{
	`{"a":1,"b":[true,null,{"c":-0.5e+3}],"d":"\u00fc\n"}`, ` { } `, `{"a":01}`, `{"a":1,}`, `{"a":"` + "\n" + `"}`, `{"a":"\x"}`, `{"a":1} x`, `[]`, `{"a":tru}`,
	`{"a":1e}`, `{"a":-}`, `{"a":1.}`, `{"a" : [ 1 , 2 ] }`, `{"a":"\ud83d"}`, `{"\u0061":1}`, `{"":""}`, `{"a":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]}`, `{`, ``,
}

// FuzzMembers checks that Members finds what package json finds, and reads nothing that is not valid.
func FuzzMembers(f *testing.F) {
	for _, seed := range membersSeeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got := map[string]string{}
		ok := Members(raw, func(key, value []byte) bool {
			got[string(key)] = string(value)
			return true
		})
		if !ok {
			return
		}
		var want map[string]json.RawMessage
		if err := json.Unmarshal(raw, &want); err != nil {
			t.Fatalf("%q is read, but it is no object: %v", raw, err)
		}
		decoded := map[string]string{} // package json repairs the UTF-8 of keys
		for key := range got {
			var name string
			if err := json.Unmarshal([]byte(`"`+key+`"`), &name); err != nil {
				t.Fatalf("%q: key %q: %v", raw, key, err)
			}
			decoded[name] = got[key]
		}
		if len(decoded) != len(want) {
			t.Fatalf("%q: %q, want %q", raw, got, want)
		}
		for key, value := range want {
			if len(decoded) == len(got) && decoded[key] != string(value) {
				t.Fatalf("%q: %s is %q, want %q", raw, key, decoded[key], value)
			}
		}
	})
}

// TestMembers checks which of the seeds are read: all valid objects, but those with an escape in a key or too deep values.
func TestMembers(t *testing.T) {
	for i, seed := range membersSeeds {
		want := i == 0 || i == 1 || i == 12 || i == 13 || i == 15
		if got := Members([]byte(seed), func([]byte, []byte) bool { return true }); got != want {
			t.Errorf("%s: %v, want %v", seed, got, want)
		}
	}
	if Members([]byte(`{"a":1,"b":2}`), func(key, _ []byte) bool { return string(key) == "a" }) {
		t.Error("a refused member was taken")
	}
	n := 0
	if !Elements([]byte(`[1, {"a":[]}]`), func([]byte) bool { n++; return true }) || n != 2 {
		t.Errorf("%d elements", n)
	}
}
