package remote

import (
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/assembly"
)

var speakers = assembly.Speakers{Agent: "helper", Account: func() string { return "Pärley Bot" }, Headers: []string{"[Ash]:", "[Ash Ketchum (<@U06>)]:"}}

// speak returns the answer and the rest of a text that comes in chunks.
func speak(chunks ...string) (answer, rest string) {
	v := &voice{speakers: speakers}
	for _, chunk := range chunks {
		answer += v.add(chunk)
	}
	if !v.over {
		answer += v.end()
	}
	return answer, v.rest.String()
}

func TestAnswerSpeaksForTheAgentAlone(t *testing.T) {
	for text, want := range map[string][2]string{
		"Hi":                              {"Hi"},
		" \n Hi":                          {" \n Hi"},
		"[helper]: Hi":                    {"Hi"},
		"\n[Helper]:\n\nHi":               {"Hi"},
		"helper: Hi":                      {"Hi"},
		"[helper (<@U0BOT>)]: Hi":         {"Hi"},
		"[helper]: [helper]: Hi":          {"Hi"},
		"[Pärley Bot]: Hi":                {"Hi"},
		"[pärley bot (<@U0BOT>)]:\nHi":    {"Hi"},
		"Pärley Bot: three words":         {"Pärley Bot: three words"},
		"[helper]":                        {"[helper]"},
		"[helper (soon)] is a word":       {"[helper (soon)] is a word"},
		"helpers: three":                  {"helpers: three"},
		"Hi\nhelper: so":                  {"Hi\nhelper: so"},
		"[Ash]: Hi":                       {"[Ash]: Hi"},
		"\n[Ash]: Hi":                     {"\n[Ash]: Hi"},
		"\n[As\n[Ash]: Hi":                {"\n[As\n", "[Ash]: Hi"},
		"Hi\n[Ash]: Thanks\n[helper]: x":  {"Hi\n", "[Ash]: Thanks\n[helper]: x"},
		"Hi\n\n[Ash Ketchum (<@U06>)]:":   {"Hi\n\n", "[Ash Ketchum (<@U06>)]:"},
		"Hi\n[Ash Ketchum]: no header":    {"Hi\n[Ash Ketchum]: no header"},
		"Hi\n [Ash]: indented":            {"Hi\n [Ash]: indented"},
		"Hi [Ash]: inside":                {"Hi [Ash]: inside"},
		"```\n[Ash]: code\n```\n[Ash]: x": {"```\n[Ash]: code\n```\n", "[Ash]: x"},
		"Hi\n[As":                         {"Hi\n[As"},
	} {
		if answer, rest := speak(text); answer != want[0] || rest != want[1] {
			t.Errorf("%q: %q, %q", text, answer, rest)
		}
	}
}

// TestLinesAreReadOnce checks that the work for a text grows with its lines and not with their square.
func TestLinesAreReadOnce(t *testing.T) {
	work := func(lines int) uint64 {
		text := strings.Repeat("a\n", lines)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if answer, _ := speak(text); answer != text {
			t.Error("the text has changed")
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	if one, two := work(2000), work(4000); two > 3*one {
		t.Errorf("2000 lines: %d bytes, twice as many: %d", one, two)
	}
}

// FuzzVoice fuzzes texts with their cuts into chunks: the answer and the rest are those of the text in one
// piece, and lose nothing but the agent's own headers.
func FuzzVoice(f *testing.F) {
	for _, text := range []string{"[helper]: Hi\n[Ash]: x", "\n[helper (<@U0>)]:\n~~~\n[Ash]:\n~~~\n", "Hi\r\n[Ash Ketchum (<@U06>)]: ü", "[hel\n[Ash]"} {
		f.Add(text, []byte{1, 3, 2})
	}
	f.Fuzz(func(t *testing.T, text string, cuts []byte) {
		text, chunks := cutInto(text, cuts)
		answer, rest := speak(text)
		cutAnswer, cutRest := speak(chunks...)
		if diff := cmp.Diff([]string{answer, rest}, []string{cutAnswer, cutRest}); diff != "" {
			t.Errorf("%q: %s", chunks, diff)
		}
		if !strings.HasSuffix(text, answer+rest) {
			t.Errorf("%q: %q and %q", text, answer, rest)
		}
	})
}
