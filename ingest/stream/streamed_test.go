package stream_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/ingest/stream"
)

// TestStreamed checks which messages take the text that their activity has streamed.
func TestStreamed(t *testing.T) {
	chunk := func(activity, text string) stream.Message {
		return stream.Message{Type: stream.StreamingChunk, ActivityID: activity, Text: text}
	}
	whole := func(kind stream.Type, activity string) stream.Message {
		return stream.Message{Type: kind, ActivityID: activity, Text: "whole"}
	}
	for name, c := range map[string]struct {
		said           []stream.Message
		text, activity string
	}{
		"nothing":                         {nil, "", ""},
		"one activity":                    {[]stream.Message{chunk("a", "Hel"), chunk("a", "lo")}, "Hello", "a"},
		"the nameless one":                {[]stream.Message{chunk("", "Hel"), chunk("", "lo")}, "Hello", ""},
		"two that interleave":             {[]stream.Message{chunk("a", "1"), chunk("b", "3"), chunk("a", "2"), chunk("b", "4")}, "12\n\n34", ""},
		"a thought":                       {[]stream.Message{chunk("a", "Hm"), whole(stream.Thought, "a"), chunk("b", "Yes.")}, "Yes.", "b"},
		"a nameless thought":              {[]stream.Message{chunk("", "Hm"), whole(stream.Thought, ""), chunk("", "Yes.")}, "Yes.", ""},
		"a thought of another activity":   {[]stream.Message{chunk("a", "Yes."), whole(stream.Thought, "b"), whole(stream.Plan, "")}, "Yes.", "a"},
		"a plan and an update":            {[]stream.Message{chunk("a", "1"), chunk("b", "2"), whole(stream.Plan, "a"), whole(stream.Update, "b")}, "", ""},
		"a warning":                       {[]stream.Message{chunk("a", "1"), whole(stream.Warning, "a"), chunk("", "2"), whole(stream.Warning, "")}, "2", ""},
		"an answer":                       {[]stream.Message{chunk("a", "Yes"), whole(stream.Answer, "a")}, "", ""},
		"an answer of another activity":   {[]stream.Message{chunk("a", "Yes"), whole(stream.Answer, "")}, "Yes", "a"},
		"an end":                          {[]stream.Message{chunk("", "Yes"), whole(stream.Idle, ""), whole(stream.Complete, "")}, "Yes", ""},
		"an activity that begins again":   {[]stream.Message{chunk("a", "Hm"), chunk("b", "1"), whole(stream.Thought, "a"), chunk("a", "2")}, "1\n\n2", ""},
		"another workstream":              {[]stream.Message{{Type: stream.StreamingChunk, Workstream: "w", Text: "x"}, chunk("a", "Yes")}, "Yes", "a"},
		"a thought of another workstream": {[]stream.Message{chunk("", "Yes"), {Type: stream.Thought, Workstream: "w", Text: "x"}}, "Yes", ""},
	} {
		var s stream.Streamed
		for _, m := range c.said {
			s.Add(m)
		}
		if text, activity := s.Left(); text != c.text || activity != c.activity {
			t.Errorf("%s: %q of %q", name, text, activity)
		}
	}
}

func TestCut(t *testing.T) {
	m := stream.Message{Type: stream.StreamingChunk, Text: strings.Repeat("é", 450), ActivityID: "a", Final: true}
	var got []string
	for _, c := range m.Cut(200) {
		got = append(got, c.Text)
		if c.Final != (len(got) == 3) || c.ActivityID != "a" {
			t.Errorf("%d: %+v", len(got), c)
		}
	}
	want := []string{strings.Repeat("é", 200), strings.Repeat("é", 200), strings.Repeat("é", 50)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := (stream.Message{}).Cut(200); len(got) != 1 {
		t.Errorf("an empty chunk: %v", got)
	}
}

// TestKeep checks which messages of a run are kept: the newest, and of the older ones those that matter.
func TestKeep(t *testing.T) {
	types := []stream.Type{stream.Question, stream.Warning, stream.Answer, 77}
	types = append(types, slices.Repeat([]stream.Type{stream.StreamingChunk, stream.Thought, stream.Update, stream.Plan, stream.BatchProgress}, 250)...)
	types = append(types, stream.Complete)
	self := func(t stream.Type) stream.Type { return t }
	kept, dropped := stream.Keep(types, self)
	if len(kept) != stream.MaxKept || dropped != len(types)-stream.MaxKept || !slices.Equal(kept[:4], types[:4]) || !slices.Equal(kept[4:], types[4+dropped:]) {
		t.Errorf("%d kept, %d dropped: %v", len(kept), dropped, kept[:6])
	}
	others := slices.Concat(types[:4], slices.Repeat([]stream.Type{stream.System, stream.Error}, 1000))
	kept, dropped = stream.Keep(others, self)
	if len(kept) != 1002 || dropped != 1002 || slices.Contains(kept, stream.System) || slices.Contains(kept, stream.Warning) || slices.Contains(kept, 77) {
		t.Errorf("%d kept, %d dropped", len(kept), dropped)
	}
	if kept, dropped = stream.Keep(types[:9], self); len(kept) != 9 || dropped != 0 {
		t.Errorf("%d kept, %d dropped", len(kept), dropped)
	}
}
