package turn_test

import (
	"testing"
	"time"

	"parley/assembly"
	"parley/assembly/turn"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/runs"
	"parley/ingest/stream"
)

// question is a REQUEST_INPUT with two options.
var question = stream.Message{
	Type: stream.RequestInput, Text: "Shall I?", Details: []byte(`{"ux":{"options":[{"id":"y","label":"Yes"},{"id":"n","label":"No"}]},"approval":true}`),
}

// TestAQuestionEndsTheRun checks that the run ends with the agent's question, and that the next
// run has the question and its answer, also after a restart.
func TestAQuestionEndsTheRun(t *testing.T) {
	inBubble(t, nil, func(d *fixture) {
		d.agent.does = []script{streams(token("It is old."), stream.Message{Type: stream.Answer, Text: "It is old."}, question)}
		d.asks("1", "delete it")
		same(t, "outcomes", d.outcomes(), []turn.Outcome{turn.Answered})
		same(t, "posts", d.deliveries(), []string{"It is old.\n\nShall I?\n\n1. Yes\n2. No"})
		d.stop()
		d.work()
		d.answer = &runs.Answer{Option: "y", Text: "1"}
		d.asks("2", "1")
		d.outcomes()
		asked := d.runs[0].ID
		same(t, "resume", d.agent.inputs[1].Resume, &assembly.Resume{RunID: asked, Details: question.Details, Answered: true, Option: "y", Text: "1"})
		d.asks("3", "thanks")
		d.outcomes()
		if d.agent.inputs[0].Resume != nil || d.agent.inputs[2].Resume != nil {
			t.Error("another run has the question")
		}
	})
}

// TestAnAnswerIsGivenOnce checks that a message during the run of an answer waits in every mode.
func TestAnAnswerIsGivenOnce(t *testing.T) {
	inBubble(t, interrupting, func(d *fixture) {
		d.agent.does = []script{streams(question), thinks(time.Second, "Deleted.")}
		d.asks("1", "delete it")
		d.outcomes()
		d.answer = &runs.Answer{Option: "y", Text: "1"}
		d.asks("2", "1")
		d.asks("3", "how is it going?")
		pass(time.Second)
		d.outcomes()
		same(t, "inputs", d.agent.said(), [][]string{{"delete it"}, {"1"}, {"how is it going?"}})
		if d.agent.inputs[1].Resume == nil || d.agent.inputs[2].Resume != nil {
			t.Errorf("resumes %+v, %+v", d.agent.inputs[1].Resume, d.agent.inputs[2].Resume)
		}
	})
}

// TestAnAnswerIsNotRepeated checks that a run which answers a question is not asked again because a
// newer message makes its reply stale.
func TestAnAnswerIsNotRepeated(t *testing.T) {
	inBubble(t, func(d *fixture) { d.settings.Stale = turn.StaleRerun }, func(d *fixture) {
		d.agent.does = []script{streams(question), thinks(time.Second, "Deleted.")}
		d.asks("1", "delete it")
		d.outcomes()
		d.answer = &runs.Answer{Option: "y", Text: "1"}
		d.asks("2", "1")
		d.asks("3", "how is it going?")
		pass(time.Second)
		same(t, "outcomes", d.outcomes(), []turn.Outcome{turn.Answered, turn.Answered, turn.Answered})
		same(t, "inputs", d.agent.said(), [][]string{{"delete it"}, {"1"}, {"how is it going?"}})
	})
}

// TestAClientAnswersNoQuestionByARunsName checks that a client's parentRunId is no run that asked.
func TestAClientAnswersNoQuestionByARunsName(t *testing.T) {
	inBubble(t, nil, func(d *fixture) {
		d.agent.does = []script{streams(question)}
		d.asks("1", "delete it")
		d.outcomes()
		for i, parent := range []string{d.runs[0].ID, "another"} {
			m := human(parent, "approve")
			m.RunID, m.RunInput = "run-"+parent, []byte(`{"parentRunId":"`+parent+`"}`)
			d.record(messages.TriggerRun, m)
			d.outcomes()
			same(t, "parent", d.agent.inputs[i+1].Given.ParentRunID, []string{"", "another"}[i])
		}
	})
}

// TestAQuestionHasATime checks that the wait for people is bounded by answer_within and by the
// agent's own time.
func TestAQuestionHasATime(t *testing.T) {
	for within, want := range map[time.Duration]time.Duration{time.Hour: time.Hour, 24 * time.Hour: 2 * time.Hour} {
		inBubble(t, func(d *fixture) { d.profile.AnswerWithin = within }, func(d *fixture) {
			begun := time.Now()
			asked := question
			asked.Details = []byte(`{"expires_at":"` + begun.Add(2*time.Hour).Format(time.RFC3339) + `"}`)
			d.agent.does = []script{streams(asked)}
			d.asks("1", "delete it")
			d.outcomes()
			q, err := d.journal.Runs.Question(d.Context(), d.runs[0].ID)
			d.must(err)
			if until := q.UntilAt.Sub(begun).Round(time.Second); until != want {
				t.Errorf("open for %v, want %v", until, want)
			}
			pass(want + time.Second)
			d.must(d.journal.Runs.ExpireQuestions(d.Context(), func(*runs.Run) outbox.Notice { return outbox.Notice{Text: "closed"} }, func(*runs.Run) {}))
			d.asks("2", "yes")
			d.outcomes()
			if r := d.agent.inputs[1].Resume; r == nil || r.Answered {
				t.Errorf("the next run resumes %+v", r)
			}
		})
	}
}
