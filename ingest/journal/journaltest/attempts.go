package journaltest

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal"
	"parley/ingest/journal/listing"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/storage"
)

func attemptPromises() []promise {
	return []promise{
		{"each attempt of a run is stored with its end", attempts},
		{"an attempt that ended with its process is listed from the next one on", lostAttempts},
		{"an attempt of a stopped run is stored after its end", stoppedAttempt},
		{"the inputs of agents are kept only if they are given, up to their bound", keptInputs},
		{"a deleted message removes the kept inputs of its thread and of the threads that quote it, and those of unfinished runs", inputsForgotten},
		{"the steps of a run are stored under their claim, until the run ends", runSteps},
		{"the results in the steps of unfinished runs lose a message that is deleted or edited", resultsForgotten},
		{"runs are listed from the newest to the oldest, the unfinished ones first", listedRuns},
	}
}

func attempts(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	run, begun := f.begin(threadKey(1)), f.clock.Now()
	f.clock.advance(time.Second)
	f.leaves(run, runs.Unanswered{At: f.clock.Now(), Failed: true, Attempt: runs.Attempt{BegunAt: begun, Error: "401 Unauthorized", InputSHA256: "ab"}})
	same(f, "of an unfinished run", f.run(run.ID).Attempts, []listing.Attempt{{N: 1, Node: "first", BegunAt: begun, EndedAt: f.clock.Now(), Error: "401 Unauthorized", InputSHA256: "ab"}})
	reply, again := answer("Hello."), f.clock.Now()
	reply.AnsweredAt = again.Add(time.Millisecond)
	reply.Attempt = runs.Attempt{BegunAt: again, FirstAt: reply.AnsweredAt, Finish: "stop", TokensIn: 12, TokensOut: 3, InputSHA256: "cd"}
	f.commit(f.begin(threadKey(1)), reply)
	got := f.run(run.ID)
	same(f, "state", []string{got.State, got.Error, got.Agent, string(got.Thread)}, []string{"done", "", agent, string(threadKey(1))})
	same(f, "second", got.Attempts[1:], []listing.Attempt{
		{N: 2, Node: "first", BegunAt: again, FirstAt: reply.AnsweredAt, EndedAt: f.clock.Now(), Finish: "stop", TokensIn: 12, TokensOut: 3, InputSHA256: "cd"},
	})
	f.clock.advance(90 * day)
	f.prune()
	same(f, "after 90 days", f.count("run_attempts"), 0)
}

func lostAttempts(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	lost := listing.Attempt{Error: "its process ended"}
	attempt := func(node string) listing.Attempt {
		return listing.Attempt{Node: node, BegunAt: f.clock.Now(), EndedAt: f.clock.Now()}
	}
	run := f.begin(threadKey(1))
	f.node("idle").claim(run.Thread)
	f.node("two").begin(threadKey(1))
	three := f.node("three")
	third := three.begin(threadKey(1))
	for range 2 { // both losses have their rows already at the second time
		three.leaves(third, runs.Unanswered{At: f.clock.Now(), Failed: true, Attempt: runs.Attempt{BegunAt: f.clock.Now()}})
		third = three.begin(threadKey(1))
	}
	four := f.node("four")
	four.leaves(four.begin(threadKey(1)), runs.Unanswered{State: runs.Failed, Cause: "given up"})
	want := []listing.Attempt{lost, lost, attempt("three"), attempt("three"), lost}
	for i := range want {
		want[i].N = int64(i + 1)
	}
	same(f, "attempts", f.run(run.ID).Attempts, want)
}

// run returns a run as it is listed.
func (f *fixture) run(id string) listing.Run {
	f.Helper()
	run, err := f.Listing.FindRun(f.ctx, id)
	f.must(err)
	return run
}

func stoppedAttempt(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	run := f.begin(threadKey(1))
	_, err := f.Runs.StopRun(f.ctx, run.ID, outbox.Notice{Text: "Stopped.", Metadata: []byte(`{}`)})
	f.must(err)
	f.must(f.Runs.AddAttempt(f.ctx, run, runs.Attempt{BegunAt: f.clock.Now(), Error: "stopped"}))
	got := f.run(run.ID)
	same(f, "run", []any{got.State, got.Error, len(got.Attempts)}, []any{"cancelled", "stopped", 1})
}

func keptInputs(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	run := f.begin(threadKey(1))
	f.leaves(run, runs.Unanswered{At: f.clock.Now(), Failed: true, Attempt: runs.Attempt{BegunAt: f.clock.Now()}})
	same(f, "none was given", f.count("run_inputs"), 0)
	reply := answer("Hello.")
	reply.Attempt = runs.Attempt{BegunAt: f.clock.Now(), Input: `[{"role":"user","content":"hi"}]`}
	f.commit(f.begin(threadKey(1)), reply)
	attempt, input, err := f.Listing.KeptInput(f.ctx, run.ID)
	f.must(err)
	same(f, "kept", []any{attempt, input}, []any{int64(2), reply.Attempt.Input})
	f.clock.advance(7 * day)
	retention := journal.DefaultRetention()
	retention.Inputs = 7*day + time.Minute
	_, err = f.Prune(f.ctx, retention)
	f.must(err)
	same(f, "before its bound", f.count("run_inputs"), 1)
	retention.Inputs = 7 * day
	_, err = f.Prune(f.ctx, retention)
	f.must(err)
	same(f, "at its bound", []int64{f.count("run_inputs"), f.count("run_attempts")}, []int64{0, 2})
}

func runSteps(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	run := f.begin(threadKey(1))
	claim := f.claim(run.Thread)
	f.must(f.Runs.PutStep(f.ctx, claim, run, 0, "a"))
	f.must(f.Runs.PutStep(f.ctx, claim, run, 1, "b"))
	f.must(f.Runs.PutStep(f.ctx, claim, run, 0, "a, done"))
	steps, err := f.Runs.RunSteps(f.ctx, run)
	f.must(err)
	same(f, "steps", steps, []string{"a, done", "b"})
	other := f.successor("second")
	again := other.begin(threadKey(1))
	f.fails("a fenced write", f.Runs.PutStep(f.ctx, claim, run, 2, "c"), storage.ErrFenced)
	other.commit(again, answer("Hello."))
	f.fails("after the end", other.Runs.PutStep(f.ctx, other.claim(run.Thread), again, 2, "c"), storage.ErrFenced)
	same(f, "after the end of the run", f.count("run_steps"), 0)
}

// resultsForgotten removes from the steps of a run what they have of a message that is edited or deleted, also one of another
// thread.
func resultsForgotten(f *fixture) {
	code := f.message(threadKey(2), said("C2/1", "the code is 4711"), passive).Message
	word := f.message(threadKey(2), said("C2/2", "the word is plover"), passive).Message
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	run := f.begin(threadKey(1))
	claim := f.claim(run.Thread)
	body := func(results ...string) string {
		raw, err := json.Marshal(map[string]any{"Text": "I look.", "Results": results})
		f.must(err)
		return string(raw)
	}
	steps := func() (list []string) {
		bodies, err := f.Runs.RunSteps(f.ctx, run)
		f.must(err)
		for _, body := range bodies {
			var step struct{ Results []string }
			f.must(json.Unmarshal([]byte(body), &step))
			for _, result := range step.Results {
				if strings.HasPrefix(result, `{"error":`) {
					result = "forgotten"
				}
				list = append(list, result)
			}
		}
		return list
	}
	first, second := `{"id":"`+code.UUID+`","content":"the code is 4711"}`, `{"id":"`+word.UUID+`","content":"the word is plover"}`
	f.must(f.Runs.PutStep(f.ctx, claim, run, 0, body(first, `{}`)))
	f.must(f.Runs.PutStep(f.ctx, claim, run, 1, body(second)))
	f.change(threadKey(2), deleted("C2/1"), nil)
	same(f, "after the delete", steps(), []string{"forgotten", `{}`, second})
	f.change(threadKey(2), edited("C2/2", "the word is another", "2"), passive)
	same(f, "after the edit", steps(), []string{"forgotten", `{}`, "forgotten"})
}

func inputsForgotten(f *fixture) {
	asks := func(i int, m *event.Message) *runs.Run {
		f.message(threadKey(i), m, triggers)
		return f.begin(threadKey(i))
	}
	kept := func(run *runs.Run) {
		reply := answer("Hello.")
		reply.Attempt = runs.Attempt{BegunAt: f.clock.Now(), Input: `["hi"]`}
		f.commit(run, reply)
	}
	quotes := func(id string) *event.Message {
		m := said(id, "look")
		m.Forwarded = []event.Quote{{ExternalID: "C1/1", Content: "hi"}}
		return m
	}
	kept(asks(1, said("C1/1", "hi")))
	kept(asks(2, quotes("C1/2")))
	kept(asks(3, said("C1/3", "hi")))
	working := []*runs.Run{asks(1, said("C1/4", "ho")), asks(4, quotes("C1/5"))}
	f.change(threadKey(1), deleted("C1/1"), triggers)
	for _, run := range working {
		kept(run)
	}
	same(f, "kept", f.count(`run_inputs WHERE input <> ''`), 1)
	kept(asks(1, said("C1/6", "ho")))
	same(f, "and of a later run", f.count(`run_inputs WHERE input <> ''`), 2)
}

func listedRuns(f *fixture) {
	var want []string
	for i := range 5 {
		f.message(threadKey(1), said(fmt.Sprintf("C1/%d", i), "hi"), triggers)
		run := f.begin(threadKey(1))
		want = append([]string{run.ID}, want...)
		f.clock.advance(time.Minute)
		if i == 1 {
			f.fail(run, "Sorry.")
		} else if i < 4 {
			f.commit(run, answer("Hello."))
		}
	}
	var got []string
	for filter := (listing.RunFilter{Limit: 2}); ; {
		page, next, err := f.Listing.ListRuns(f.ctx, filter)
		f.must(err)
		got = append(got, each(page, func(r listing.Run) string { return r.ID })...)
		if filter.After = next; next == "" {
			break
		}
	}
	same(f, "all", got, want)
	failed, next, err := f.Listing.ListRuns(f.ctx, listing.RunFilter{State: "failed", Limit: 10})
	f.must(err)
	same(f, "failed", []any{failed[0].ID, failed[0].State, failed[0].Error, len(failed), next}, []any{want[3], "failed", "the agent is gone", 1, ""})
	recent, _, err := f.Listing.ListRuns(f.ctx, listing.RunFilter{Since: f.clock.Now().Add(-time.Minute), Limit: 10})
	f.must(err)
	same(f, "recent", each(recent, func(r listing.Run) string { return r.ID }), want[:2])
}
