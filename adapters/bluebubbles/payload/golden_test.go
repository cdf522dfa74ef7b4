package payload_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"parley/adapters/bluebubbles/payload"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "overwrite the golden files")

// TestRecordings compares the keys and events of every recording in testdata/bluebubbles with
// testdata/<name>.golden.
func TestRecordings(t *testing.T) {
	files, err := filepath.Glob("../../../testdata/bluebubbles/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".jsonl")
		t.Run(name, func(t *testing.T) {
			got := interpretations(t, name)
			golden := filepath.Join("testdata", name+".golden")
			if *update {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// interpretations returns the keys and the event of each envelope as JSON without zero
// fields.
func interpretations(t *testing.T, name string) []byte {
	envelopes, known := recording(t, name)
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	for _, e := range envelopes {
		k := payload.Normalizer{}.Keys(e, known)
		k.Parsed = nil
		line := map[string]any{"Keys": withoutZeros(reflect.ValueOf(k))}
		normalized, err := payload.Normalizer{}.Normalize(t.Context(), e, known)
		if err == nil {
			line["Event"] = withoutZeros(reflect.ValueOf(normalized))
		}
		if err := encoder.Encode(line); err != nil {
			t.Fatal(err)
		}
	}
	return out.Bytes()
}

// withoutZeros returns a value without the zero fields of its structs. A json.Marshaler stays
// as it is.
func withoutZeros(v reflect.Value) any {
	if _, ok := v.Interface().(json.Marshaler); ok {
		return v.Interface()
	}
	switch v.Kind() {
	case reflect.Pointer:
		return withoutZeros(v.Elem())
	case reflect.Struct:
		members := map[string]any{}
		for i := range v.NumField() {
			if !v.Field(i).IsZero() {
				members[v.Type().Field(i).Name] = withoutZeros(v.Field(i))
			}
		}
		return members
	case reflect.Slice:
		list := make([]any, v.Len())
		for i := range list {
			list[i] = withoutZeros(v.Index(i))
		}
		return list
	}
	return v.Interface()
}
