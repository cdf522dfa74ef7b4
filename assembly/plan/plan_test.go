package plan_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"parley/assembly/plan"
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
		`{"completed":0,"total":7}`:   "░░░░░░░░░░ 0 of 7: mails  sent",
		`{"done":7,"max":7}`:          "▓▓▓▓▓▓▓▓▓▓ 7 of 7: mails  sent",
		`{"completed":70,"total":7}`:  "▓▓▓▓▓▓▓▓▓▓ 7 of 7: mails  sent",
		`{"completed":-1,"total":7}`:  "░░░░░░░░░░ 0 of 7: mails  sent",
		`{"completed":"x","total":2}`: "░░░░░░░░░░ 0 of 2: mails  sent",
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

// TestMarkdown checks each part, and that a text of an agent stays text.
func TestMarkdown(t *testing.T) {
	s := plan.State{
		Title: "# The *plan*", End: "The run failed.", Warnings: []string{"careful\n- not a list"},
		Tasks:       []plan.Task{{Title: "1. a | b", Status: plan.Done}, {Title: "`b`", Status: plan.Running}, {Title: "- c\n> d", Status: plan.Pending}, {Title: "e"}},
		Batch:       &plan.Batch{Completed: 1, Total: 2},
		Workstreams: []plan.Task{{Title: "research", Status: plan.Running, Words: "executing search_web"}},
	}
	plan.Ended(s.Tasks, plan.Failed)
	want := "**# The \\*plan\\*** (1 of 3 done)\n\n- ✅ 1. a \\| b\n- ❌ \\`b\\` (failed)\n- ▫️ - c > d\n- • e\n\n▓▓▓▓▓░░░░░ 1 of 2\n\n" +
		"- ⏳ research: executing search\\_web\n\n- ⚠️ careful - not a list\n\nThe run failed."
	all := func(string) bool { return true }
	if diff := cmp.Diff(want, s.Markdown(all)); diff != "" {
		t.Error(diff)
	}
	if empty := (&plan.State{End: "x"}); !empty.IsEmpty() || s.IsEmpty() {
		t.Error("a state without a plan and without lines is empty, and no other one")
	}
}

// TestMarkdownFits checks that a plan says how many tasks do not fit.
func TestMarkdownFits(t *testing.T) {
	var s plan.State
	for range 400 {
		s.Tasks = append(s.Tasks, plan.Task{Title: strings.Repeat("long ", 100), Status: plan.Pending})
	}
	for _, most := range []int{60, 500, 2000, 11_500} {
		text := s.Markdown(func(text string) bool { return utf8.RuneCountInString(text) <= most })
		if n := utf8.RuneCountInString(text); n > most || n < most-200 && most > 200 || !strings.Contains(text, "more tasks") {
			t.Errorf("%d characters of %d: %.80q", n, most, text)
		}
	}
}
