package event_test

import (
	"testing"

	"parley/ingest/event"
)

func TestLine(t *testing.T) {
	for text, want := range map[string]string{"": "", " a\n\tb ": "a b", "äöü€": "äöü€", "äöü€x": "äöü…", "one two": "one…"} {
		if got := event.Line(text, 4); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got := event.Line("words", 0); got != "" {
		t.Errorf("no characters: %q", got)
	}
}

func TestCut(t *testing.T) {
	for text, want := range map[string]string{"abcd": "abcd", "abcde": "abcd…", "abc€": "abc…"} {
		if got := event.Cut(text, 4); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestJSON(t *testing.T) {
	if got, err := event.JSON(map[string]string{"a": "<b> & \u2028"}); string(got) != `{"a":"<b> & \u2028"}` || err != nil {
		t.Errorf("%s, %v", got, err)
	}
}
