package turn_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"parley/assembly"
	"parley/assembly/turn"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/runs"
	"parley/ingest/stream"
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
			page, err := d.journal.Runs.RunEvents(d.Context(), run, 0, 10_000)
			d.must(err)
			for _, e := range page.Events {
				got.Messages = append(got.Messages, strings.ReplaceAll(fmt.Sprint(e.Type, " ", e.ActivityID, " ", e.Text), runs.AnswerActivity(run), "answer"))
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

// TestAgentsGetNoIDOfAClient checks that an agent, also one that answers later, knows a run that its client
// named by an id of ours, the same at each attempt, and that the run's successor names it by that id.
func TestAgentsGetNoIDOfAClient(t *testing.T) {
	for name, agent := range map[string]func(turn.Agent) turn.Agent{
		"an agent that answers at once": func(a turn.Agent) turn.Agent { return a },
		"an agent that answers later":   func(a turn.Agent) turn.Agent { return answersLater{a} },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(d *fixture) { d.profile.Agent = agent(d.profile.Agent) }, func(d *fixture) {
				d.agent.does = []script{fails(errors.New("away")), answers("One."), answers("Two."), streams(said(stream.RequestInput, "", "Which?"))}
				ask := func(i int, parent string) assembly.Input {
					m := human(fmt.Sprint("C1/", i), "so?")
					m.RunID, m.RunInput = fmt.Sprint("run-", i), []byte(`{"parentRunId":"`+parent+`"}`)
					d.record(messages.TriggerRun, m)
					pass(time.Minute)
					d.outcomes()
					return d.agent.inputs[len(d.agent.inputs)-1]
				}
				first, second, asked := ask(0, ""), ask(1, "run-0"), ask(2, "another program's")
				same(t, "at the first attempt", d.agent.inputs[0].RunID, first.RunID)
				if uuid.Validate(first.RunID) != nil || uuid.Validate(second.RunID) != nil || first.RunID == second.RunID {
					t.Errorf("%q and %q", first.RunID, second.RunID)
				}
				same(t, "the parent, a run of the thread", second.Given.ParentRunID, first.RunID)
				same(t, "the parent, no run of ours", asked.Given.ParentRunID, "another program's")
				for i, parent := range []string{"run-2", asked.RunID} {
					same(t, "the parent, a run that asked", ask(3+i, parent).Given.ParentRunID, "")
				}
				same(t, "run", d.runs[0].ID, "run-0")
				known, err := d.journal.Runs.LaterRun(d.Context(), first.RunID)
				d.must(err)
				same(t, "the run that the agent knows", known.ID, "run-0")
			})
		})
	}
}

type answersLater struct{ turn.Agent }

func (answersLater) Later(_ assembly.Input, answer stream.Message, emit func(stream.Message) error) error {
	return emit(answer)
}
