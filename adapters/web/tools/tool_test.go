package tools

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// wordsOf returns the words of the error of a call without rights.
func wordsOf(t testing.TB, name, arguments string) string {
	t.Helper()
	i := slices.IndexFunc(all(), func(t tool) bool { return t.Name == name })
	if i < 0 {
		t.Fatal("no tool ", name)
	}
	_, err := all()[i].run(t.Context(), call{}, json.RawMessage(arguments))
	if err == nil {
		t.Fatal(name, arguments, "is no error")
	}
	return call{}.explain(err)
}

// TestWrongArguments checks that a model is told which argument is wrong, and why.
func TestWrongArguments(t *testing.T) {
	for arguments, want := range map[string][]string{
		`{"threadid":"x"}`:  {"arguments: ", `["threadid"]`},
		`{"Thread_ID":"x"}`: {"arguments: ", `["Thread_ID"]`},
		`{"thread_id":7}`:   {"arguments: ", "thread_id", `want "string"`},
		`{"limit":1.5}`:     {"arguments: ", "limit", "integer"},
		`{"limit":0}`:       {"limit: must be 1 to 500; thread_id: must be a UUID"},
		`[]`:                {"arguments: ", "array"},
	} {
		words := wordsOf(t, "read_thread", arguments)
		for _, part := range want {
			if !strings.Contains(words, part) {
				t.Errorf("%s: %s; want %s", arguments, words, part)
			}
		}
	}
	if words := wordsOf(t, "react", `{"emoji":"+1"}`); !strings.Contains(words, `["message_id"]`) {
		t.Errorf("without a required argument: %s", words)
	}
}

func BenchmarkCall(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		wordsOf(b, "read_thread", `{"thread_id":"x"}`)
	}
}
