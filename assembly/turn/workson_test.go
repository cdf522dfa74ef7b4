package turn_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"parley/assembly"
	"parley/assembly/turn"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/runs"
	"parley/ingest/stream"
	"parley/ingest/work"
)

// worker is an agent whose server works on after an attempt. Its session names the run.
type worker struct {
	*agent
	rest      time.Duration // until it looks again
	abandoned []string
}

func (w *worker) KeepsSessions() {}

func (w *worker) Run(ctx context.Context, input assembly.Input, emit func(stream.Message) error) error {
	if !input.Taken {
		if err := input.KeepSession("of "+input.RunID, true); err != nil {
			return err
		}
	}
	return w.agent.Run(ctx, input, emit)
}

func (w *worker) Abandon(_ context.Context, run string, sessions []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, session := range sessions {
		w.abandoned = append(w.abandoned, run+" "+session)
	}
}

// told returns the runs that the server was told of, each with its session.
func (w *worker) told() []string {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.abandoned)
}

// works is an attempt that ends with its context, while the server works on.
func (w *worker) works(ctx context.Context, _ func(stream.Message) error) error {
	<-ctx.Done()
	return &resting{w.rest, context.Cause(ctx)}
}

type resting struct {
	pause time.Duration
	cause error
}

func (r *resting) Error() string        { return fmt.Sprint("works on: ", r.cause) }
func (r *resting) Unwrap() []error      { return []error{turn.ErrLater, r.cause} }
func (r *resting) Pause() time.Duration { return r.pause }

var _ turn.WorksOn = (*worker)(nil)

func inWorkersBubble(t *testing.T, test func(d *fixture, w *worker)) {
	w := &worker{rest: 40 * time.Second}
	inBubble(t, func(d *fixture) {
		w.agent = d.agent
		d.profile.Agent, d.settings.Mode = w, turn.ModeInterrupt
	}, func(d *fixture) { test(d, w) })
}

// TestAnAgentWorksOn checks that an attempt whose time ends while the server works has not failed, that another one follows after
// the pause or a report of the server, and that the server is told when the wait ends.
func TestAnAgentWorksOn(t *testing.T) {
	inWorkersBubble(t, func(d *fixture, w *worker) {
		d.agent.does = []script{w.works, w.works, answers("at last")}
		d.asks("1", "one")
		pass(time.Minute + 30*time.Second)
		same(t, "requests before the pause is over", len(d.agent.said()), 1)
		pass(20 * time.Second)
		same(t, "requests after it", len(d.agent.said()), 2)
		pass(time.Minute)
		same(t, "outcomes", d.outcomes(), []turn.Outcome{turn.Awaited, turn.Awaited})
		known, err := d.Runs.LaterRun(d.Context(), d.agent.inputs[0].RunID)
		d.must(err)
		d.must(d.Runs.NudgeRun(d.Context(), known.ID))
		d.scheduler.Wake(work.Turns, "helper", d.thread)
		synctest.Wait()
		same(t, "outcomes", d.outcomes(), []turn.Outcome{turn.Awaited, turn.Awaited, turn.Answered})
		same(t, "taken", []bool{d.agent.inputs[0].Taken, d.agent.inputs[1].Taken, d.agent.inputs[2].Taken}, []bool{false, true, true})
		same(t, "session", d.agent.inputs[2].Session, "of "+known.ID)
		d.must(d.Runs.NudgeRun(d.Context(), known.ID)) // it has ended
		same(t, "told", w.told(), nil)
		run, err := d.journal.Listing.FindRun(d.Context(), known.ID)
		d.must(err)
		same(t, "the words for its attempts", []string{run.Attempts[0].Finish, run.Attempts[1].Finish, run.Attempts[2].Finish}, []string{runs.AnswersLater, runs.AnswersLater, ""})

		w.mu.Lock()
		d.agent.does = slices.Repeat([]script{w.works}, 9)
		w.mu.Unlock()
		d.asks("2", "two")
		pass(7 * time.Minute)
		outcomes := d.outcomes()
		same(t, "the end of the wait", outcomes[len(outcomes)-1], turn.Failed)
		same(t, "told", len(w.told()), 1)
	})
}

// TestAnAgentThatWorksOnFails checks that the server is told of a run that has failed for good, and not of a failed attempt.
func TestAnAgentThatWorksOnFails(t *testing.T) {
	inWorkersBubble(t, func(d *fixture, w *worker) {
		d.settings.MaxAttempts = 2
		d.agent.does = []script{fails(errors.New("too much")), fails(errors.New("too much")), answers("better")}
		d.asks("1", "one")
		same(t, "told after an attempt", w.told(), nil)
		pass(time.Minute)
		run := d.runs[0].ID
		same(t, "outcomes", d.outcomes(), []turn.Outcome{turn.Retried, turn.Failed})
		same(t, "told", w.told(), []string{run + " of " + run})
		d.asks("2", "two")
		same(t, "outcomes", d.outcomes()[2:], []turn.Outcome{turn.Answered})
		same(t, "told after an answer", len(w.told()), 1)
	})
}

// TestAnUnansweredQuestion checks that the server is told once if nobody answers the question of its run, and not if somebody does.
func TestAnUnansweredQuestion(t *testing.T) {
	for name, end := range map[string]func(d *fixture){
		"a stop":        func(d *fixture) { d.asks("2", "/stop") },
		"a new context": func(d *fixture) { d.asks("2", "/new") },
		"its time": func(d *fixture) {
			pass(5 * time.Minute)
			d.must(d.journal.Runs.ExpireQuestions(d.Context(), func(*runs.Run) outbox.Notice { return outbox.Notice{Text: "closed"} },
				func(run *runs.Run) { d.Unasked(run.Agent, run.Thread, run.Question) }))
		},
		"a delete of the question": func(d *fixture) { d.deletes("C1/post1") },
		"": func(d *fixture) {
			d.answer = &runs.Answer{Text: "blue"}
			d.asks("2", "blue")
		},
	} {
		inWorkersBubble(t, func(d *fixture, w *worker) {
			d.agent.does = []script{streams(question)}
			d.asks("1", "one")
			d.posts()
			end(d)
			pass(time.Second)
			d.answer = nil
			d.asks("3", "three")
			run, want := d.runs[0].ID, []string(nil)
			if name != "" {
				want = []string{run + " of " + run}
			}
			same(t, name+": told", w.told(), want)
			same(t, name+": ends of waiting runs", d.waitedRuns(), nil)
			same(t, name+": the last session", d.agent.inputs[len(d.agent.inputs)-1].Session == "", name == "a new context")
		})
	}
}

// TestAnAgentThatWorksOnIsStopped checks that the server is told of a stop, a delete and an interruption for which no attempt is being made.
func TestAnAgentThatWorksOnIsStopped(t *testing.T) {
	for name, end := range map[string]func(d *fixture){
		"a stop":          func(d *fixture) { d.must(d.Stop(d.Context(), d.running(), outbox.NewNotice("slack", "Stopped."))) },
		"a command":       func(d *fixture) { d.asks("2", "/stop") },
		"a delete":        func(d *fixture) { d.deletes("1") },
		"an interruption": func(d *fixture) { d.asks("2", "two") },
	} {
		inWorkersBubble(t, func(d *fixture, w *worker) {
			d.agent.does = []script{w.works}
			d.asks("1", "one")
			pass(time.Minute + time.Second)
			same(t, name+": before", d.outcomes(), []turn.Outcome{turn.Awaited})
			run := d.running()
			end(d)
			pass(time.Second)
			same(t, name+": told", w.told(), []string{run + " of " + run})
		})
	}
}
