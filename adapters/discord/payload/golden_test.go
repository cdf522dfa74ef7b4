package payload_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/adapters/discord/payload"
)

var update = flag.Bool("update", false, "overwrite the golden files")

// TestRecordings compares the keys and the event of every recorded frame with golden files.
func TestRecordings(t *testing.T) {
	for _, path := range recordings(t) {
		name := strings.TrimSuffix(filepath.Base(path), ".jsonl")
		t.Run(name, func(t *testing.T) {
			var lines []any
			for _, r := range readRecording(t, path) {
				lines = append(lines, interpretation(t, r))
			}
			compareGolden(t, filepath.Join("testdata", name+".golden.json"), lines)
		})
	}
}

// interpretation returns a frame's keys, and its event unless the keys already contain a
// result.
func interpretation(t *testing.T, r recorded) any {
	t.Helper()
	k := keysOf(r.envelope, r.directory)
	line := map[string]any{"keys": k}
	e, err := payload.Normalizer{}.Normalize(t.Context(), r.envelope, r.directory)
	switch {
	case err != nil:
		line["error"] = err.Error()
	case k.Result == nil:
		line["event"] = e
	}
	return withoutZeros(t, line)
}

// withoutZeros returns the value as decoded JSON without members that have a zero value.
func withoutZeros(t *testing.T, value any) any {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var decoded any
	if err := json.Unmarshal(data, &decoded); err != nil {
		t.Fatal(err)
	}
	return prune(decoded)
}

func prune(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, member := range v {
			if v[key] = prune(member); v[key] == nil {
				delete(v, key)
			}
		}
		if len(v) == 0 {
			return nil
		}
	case []any:
		for i := range v {
			v[i] = prune(v[i])
		}
	case string, bool, float64:
		if v == "" || v == false || v == 0.0 || v == "0001-01-01T00:00:00Z" {
			return nil
		}
	}
	return value
}

func compareGolden(t *testing.T, path string, value any) {
	t.Helper()
	var got bytes.Buffer
	encoder := json.NewEncoder(&got)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}
