package plan_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"parley/adapters/markdown"
	"parley/assembly/plan"
	"parley/ingest/card"
)

// TestReadTasks reads the forms in which agents give a plan.
func TestReadTasks(t *testing.T) {
	tasks := []plan.Task{{Title: "a", Status: plan.Done}, {Title: "b", Status: plan.Running}, {Title: "c", Status: plan.Pending}, {Title: "d", Status: plan.Failed}, {Title: "e", Status: plan.Skipped}}
	const list = `[{"goal":"a","status":"completed"},{"title":"b","state":"in_progress"},"c",{"name":"d","status":"failed"},{"text":"e","status":"skipped"},7,{"status":"done"},""]`
	for details, want := range map[string][]plan.Task{
		list: tasks, `{"plan":` + list + `}`: tasks, `{"plan":{"tasks":` + list + `}}`: tasks, `{"tasks":` + list + `}`: tasks, `{"steps":` + list + `}`: tasks,
		`[{"content":"a","done":true}]`: {{Title: "a", Status: plan.Done}},
		``:                              {{Title: "first"}, {Title: "second"}},
		`{"plan":"later"}`:              {{Title: "first"}, {Title: "second"}},
		`null`:                          {{Title: "first"}, {Title: "second"}},
	} {
		title, got := plan.ReadTasks("Look\n first\n\nsecond", json.RawMessage(details))
		if diff := cmp.Diff(want, got); title != "Look" || diff != "" {
			t.Errorf("%s: %q %s", details, title, diff)
		}
	}
}

// TestReadBatch reads the forms of progress.
func TestReadBatch(t *testing.T) {
	for details, want := range map[string]string{
		`{"completed":0,"total":7}`:   "▱▱▱▱▱▱▱▱▱▱ 0% (0 of 7): mails  sent",
		`{"done":7,"max":7}`:          "▰▰▰▰▰▰▰▰▰▰ 100% (7 of 7): mails  sent",
		`{"completed":70,"total":7}`:  "▰▰▰▰▰▰▰▰▰▰ 100% (7 of 7): mails  sent",
		`{"completed":-1,"total":7}`:  "▱▱▱▱▱▱▱▱▱▱ 0% (0 of 7): mails  sent",
		`{"completed":"x","total":2}`: "▱▱▱▱▱▱▱▱▱▱ 0% (0 of 2): mails  sent",
		`{"completed":3}`:             "", `{"total":0}`: "", `[]`: "", ``: "",
	} {
		got := ""
		if b := plan.ReadBatch("mails \n sent", json.RawMessage(details)); b != nil {
			got = b.String()
		}
		if got != strings.ReplaceAll(want, "  ", " ") {
			t.Errorf("%s: %q, want %q", details, got, want)
		}
	}
}

// TestView checks each part, and that a text of an agent stays text.
func TestView(t *testing.T) {
	s := plan.State{
		Status: "error", Title: "# The *plan*", End: "The run failed.", Notes: []string{"⚠️ careful\n- not a list"},
		Tasks:       []plan.Task{{Title: "1. a | b", Status: plan.Done}, {Title: "`b`", Status: plan.Running}, {Title: "- c\n> d", Status: plan.Pending}},
		Batch:       &plan.Batch{Completed: 1, Total: 2_000_000, Text: "rows\nof it"},
		Workstreams: []plan.Task{{Title: "research", Status: plan.Running, Words: "executing search_web"}},
	}
	plan.Ended(s.Tasks, plan.Failed)
	all := func(card.View) bool { return true }
	v := s.View(all)
	want := "# The *plan* (1 of 3 done)\n✅ 1. a | b\n❌ `b` (failed)\n▫️ - c > d\nrows of it: ▱▱▱▱▱▱▱▱▱▱ 0% (1 of 2000000)\n" +
		"⏳ research: executing search_web\n• ⚠️ careful - not a list\nThe run failed."
	if diff := cmp.Diff(want, v.Plain()); diff != "" || v.Status != "error" {
		t.Error(v.Status, diff)
	}
	if diff := cmp.Diff(want, strings.Join(markdown.Format(v.Markdown(), markdown.Plain, 4000), "\n")); diff != "" {
		t.Error("in markdown:", diff)
	}
	if empty := (&plan.State{End: "x"}); !empty.IsEmpty() || s.IsEmpty() {
		t.Error("a state without a plan and without lines is empty, and no other one")
	}
	for want, s := range map[string]plan.State{
		"Look\n• first":                      {Title: "Look", Tasks: []plan.Task{{Title: "first"}}},
		"Plan (0 of 1 done)\n⏭️ a (skipped)": {Tasks: []plan.Task{{Title: "a", Status: plan.Skipped}}},
		"Workstreams\n⏹️ w (stopped)":        {Workstreams: []plan.Task{{Title: "w", Status: plan.Stopped}}},
	} {
		if v := s.View(all); v.Plain() != want {
			t.Errorf("%q, want %q", v.Plain(), want)
		}
	}
}

// TestViewFits checks that a plan says how many tasks do not fit.
func TestViewFits(t *testing.T) {
	var s plan.State
	for range 400 {
		s.Tasks = append(s.Tasks, plan.Task{Title: strings.Repeat("long ", 100), Status: plan.Pending})
	}
	for _, most := range []int{60, 500, 2000, 11_500} {
		text := s.View(func(v card.View) bool { return utf8.RuneCountInString(v.Plain()) <= most }).Plain()
		if n := utf8.RuneCountInString(text); n > most || n < most-200 && most > 200 || !strings.Contains(text, "more tasks") {
			t.Errorf("%d characters of %d: %.80q", n, most, text)
		}
	}
}
