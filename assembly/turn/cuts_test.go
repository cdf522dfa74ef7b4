package turn_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/assembly/stream"
	"parley/assembly/turn"
	"parley/ingest/journal"
)

// TestCutsDoNotMatter streams the same texts in chunks of several lengths: the thread, the messages of
// the run and the end of the preview are the same.
func TestCutsDoNotMatter(t *testing.T) {
	texts := []stream.Message{
		said(stream.StreamingChunk, "th", "Let me think about it."), said(stream.Thought, "th", "Let me think about it."),
		said(stream.StreamingChunk, "", "Nameless thoughts."), said(stream.Thought, "", "Nameless thoughts."),
		said(stream.StreamingChunk, "a", strings.Repeat("It depends – 🙂. ", 40)), said(stream.Update, "u", "half"),
		said(stream.StreamingChunk, "", "And that is all."), said(stream.Idle, "", ""),
	}
	type result struct{ Posts, Messages, Preview []string }
	var want result
	for _, size := range []int{10_000, 1, 7, 199, 200, 201} {
		inBubble(t, api, func(d *fixture) {
			var messages []stream.Message
			for _, m := range texts {
				if m.Type != stream.StreamingChunk {
					messages = append(messages, m)
				} else {
					messages = append(messages, m.Cut(size)...)
				}
			}
			d.agent.does = []script{streams(messages...)}
			d.asks("C1/1", "so?")
			same(t, "outcomes", d.outcomes(), []turn.Outcome{turn.Answered})
			run := d.runs[0].ID
			got := result{Posts: d.deliveries(), Preview: []string{strings.Join(d.shown[0], "")}}
			page, err := d.journal.RunEvents(d.Context(), run, 0, 10_000)
			d.must(err)
			for _, e := range page.Events {
				got.Messages = append(got.Messages, strings.ReplaceAll(fmt.Sprint(e.Type, " ", e.ActivityID, " ", e.Text), journal.AnswerActivity(run), "answer"))
			}
			if size == 10_000 {
				want = got
				same(t, "posts", got.Posts, []string{texts[4].Text + "\n\nAnd that is all."})
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("chunks of %d characters: %s", size, diff)
			}
		})
	}
}

// TestHiddenTokens checks that people see no tokens of an agent whose tokens may be thoughts.
func TestHiddenTokens(t *testing.T) {
	inBubble(t, func(d *fixture) { d.profile.Agent = hiding{d.profile.Agent} }, func(d *fixture) {
		d.agent.does = []script{streams(token("Hm"), said(stream.Thought, "", "Hm"), token("Yes."), said(stream.Answer, "", "Yes."))}
		d.asks("C1/1", "so?")
		same(t, "outcomes", d.outcomes(), []turn.Outcome{turn.Answered})
		same(t, "posts", d.deliveries(), []string{"Yes."})
		for _, shown := range d.shown {
			same(t, "shown", len(shown), 0)
		}
	})
}

type hiding struct{ turn.Agent }

func (hiding) HidesTokens() bool { return true }

// TestAgentsGetNoIDOfAClient checks that an agent knows a run that its client named by an id of ours,
// the same at each attempt.
func TestAgentsGetNoIDOfAClient(t *testing.T) {
	inBubble(t, nil, func(d *fixture) {
		for i := range 2 {
			m := human(fmt.Sprint("C1/", i), "so?")
			m.RunID = fmt.Sprint("run-00", i)
			d.record(journal.TriggerRun, m)
			d.outcomes()
		}
		first, second := d.agent.inputs[0].RunID, d.agent.inputs[1].RunID
		if len(first) != 36 || first == second || d.runs[0].ID != "run-000" {
			t.Errorf("%q and %q", first, second)
		}
	})
}
