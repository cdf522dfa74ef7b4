package turn_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"parley/assembly"
	"parley/assembly/turn"
	"parley/ingest/event"
	"parley/ingest/journal/envelopes"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/storage"
	"parley/ingest/stream"
)

// untilEnd waits for the end of the run's context, and then does what script does.
func untilEnd(script script) script {
	return func(ctx context.Context, emit func(stream.Message) error) error {
		<-ctx.Done()
		return script(ctx, emit)
	}
}

// TestACancelledRunIsNoFailure even if the agent returns without an error and without an answer.
func TestACancelledRunIsNoFailure(t *testing.T) {
	for text, want := range map[string]turn.Outcome{"and?": turn.Interrupted, "": turn.Canceled, "/stop": turn.Canceled} {
		inBubble(t, interrupting, func(d *fixture) {
			d.agent.does = []script{untilEnd(fails(nil))}
			d.asks("1", "one")
			pass(time.Second)
			if text == "" {
				d.deletes("1")
			} else {
				d.asks("2", text)
			}
			same(t, "outcome", d.outcomes()[0], want)
		})
	}
}

// TestAnAnswerAtTheLastMoment is committed although the run's time, or the process, has ended.
func TestAnAnswerAtTheLastMoment(t *testing.T) {
	for _, stops := range []bool{false, true} {
		inBubble(t, nil, func(d *fixture) {
			d.agent.does = []script{untilEnd(answers("just in time"))}
			d.asks("1", "one")
			pass(time.Second)
			if stops {
				d.stop()
			}
			pass(2 * time.Minute)
			same(t, "outcomes", d.outcomes(), []turn.Outcome{turn.Answered})
		})
	}
}

// TestACommitWithAnUnclearOutcome is repeated, also if the store fails then: the agent is not asked
// again.
func TestACommitWithAnUnclearOutcome(t *testing.T) {
	inBubble(t, nil, func(d *fixture) {
		d.agent.does = []script{func(ctx context.Context, emit func(stream.Message) error) error {
			d.engine.unclear.Store(true)
			time.AfterFunc(100*time.Millisecond, func() { d.engine.down.Store(true) })
			time.AfterFunc(time.Second, func() { d.engine.down.Store(false) })
			return answers("ok")(ctx, emit)
		}}
		d.asks("1", "one")
		pass(2 * time.Second)
		same(t, "outcomes", d.outcomes(), []turn.Outcome{turn.Answered})
		same(t, "posts", d.deliveries(), []string{"ok"})
	})
}

// TestAnInputThatTheStoreCannotRead leaves the run off: the agent is asked once the store works,
// and the attempt is not counted.
func TestAnInputThatTheStoreCannotRead(t *testing.T) {
	for name, m := range map[string]*event.Message{
		"the transcript":               human("2", "two"),
		"our own post that it quotes":  {ExternalID: "2", Quoted: &event.Quote{ExternalID: "C1/post1", Own: true}},
		"what its client gave":         {ExternalID: "2", RunID: "run-of-a-client"},
		"the question that it answers": {ExternalID: "2"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(d *fixture) {
				d.agent.does = []script{streams(question)}
				d.asks("1", "one")
				d.outcomes()
				d.deliveries()
				m.Metadata = human("", "").Metadata
				if m.Content == "" {
					m.Attachments = []event.Attachment{{ID: "file", Name: "file"}}
				}
				if m.RunID == "" && m.Quoted == nil {
					d.answer = &runs.Answer{Text: "yes"}
				}
				d.keep = func(context.Context) { d.engine.blind.Store(true) } // after the transcript
				if m.Attachments == nil {
					d.keep(t.Context())
				}
				d.record(messages.TriggerRun, m)
				synctest.Wait()
				d.keep = nil
				d.engine.blind.Store(false)
				pass(time.Minute)
				same(t, "outcomes", d.outcomes(), []turn.Outcome{turn.Answered, turn.LeftOff, turn.Answered})
				same(t, "requests", len(d.agent.inputs), 2)
			})
		})
	}
}

// TestAnInputThatCannotBeMade checks that the agent is not asked with half an input.
func TestAnInputThatCannotBeMade(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want turn.Outcome
	}{"the store is unavailable": {storage.ErrUnavailable, turn.LeftOff}, "another error": {errors.New("oops"), turn.Retried}} {
		t.Run(name, func(t *testing.T) {
			reads := 0
			history := &reading{history: func() error {
				if reads++; reads == 1 {
					return c.err
				}
				return nil
			}}
			inBubble(t, func(d *fixture) { d.history = history }, func(d *fixture) {
				d.asks("1", "one")
				pass(5 * time.Second)
				same(t, "outcomes", d.outcomes(), []turn.Outcome{c.want, turn.Answered})
				same(t, "requests", len(d.agent.inputs), 1)
				d.asks("2", "two")
				pass(5 * time.Second)
				same(t, "reads of earlier messages, the second turn included", reads, 2)
			})
		})
	}
	t.Run("unreadable metadata", func(t *testing.T) {
		inBubble(t, nil, func(d *fixture) {
			d.record(messages.TriggerPassive, human("1", "aside"))
			d.must(d.engine.Write(d.Context(), storage.WriteOptions{}, func(tx storage.Tx) error {
				_, err := tx.Exec(`UPDATE messages SET metadata = $1`, []byte(`{`))
				return err
			}))
			d.asks("2", "two")
			same(t, "outcomes", d.outcomes(), []turn.Outcome{turn.Retried})
			same(t, "requests", len(d.agent.inputs), 0)
			same(t, "runs whose signs end", d.expected, []int{1})
		})
	})
	t.Run("it cannot be shown", func(t *testing.T) {
		inBubble(t, func(d *fixture) { d.cannot = errors.New("the workspace is gone") }, func(d *fixture) {
			d.asks("1", "one")
			same(t, "outcomes", d.outcomes(), []turn.Outcome{turn.Retried})
			same(t, "its cause is reported", errors.Is(d.reports[0].Err, d.cannot), true)
		})
	})
}

// TestADeleteThatTheRunHasNotHeardOf cancels the run before the agent is asked: the worker
// reads the thread between the commit of the delete and its report.
func TestADeleteThatTheRunHasNotHeardOf(t *testing.T) {
	history := &reading{}
	inBubble(t, func(d *fixture) { d.history = history }, func(d *fixture) {
		history.history = func() error {
			deleted := make(chan struct{})
			d.recorded = func() { close(deleted); pass(time.Second) }
			d.accept(messages.TriggerNone, event.Event{Kind: event.KindDelete, Targets: []string{"1"}})
			<-deleted
			return nil
		}
		d.asks("1", "one")
		pass(5 * time.Second)
		same(t, "outcomes", d.outcomes(), []turn.Outcome{turn.Canceled})
		same(t, "requests", len(d.agent.inputs), 0)
	})
}

// TestADeleteOfASuspectsMessage cancels the run. The thread gets no sentence about a failure.
func TestADeleteOfASuspectsMessage(t *testing.T) {
	inBubble(t, nil, func(d *fixture) {
		d.agent.does = []script{fails(errors.New("oops"))}
		d.asks("1", "one")
		d.must(d.engine.Write(d.Context(), storage.WriteOptions{}, func(tx storage.Tx) error {
			_, err := tx.Exec(`UPDATE threads SET run_claims = $1`, int64(envelopes.DeadClaims))
			return err
		}))
		d.deletes("1")
		pass(time.Minute)
		same(t, "outcomes", d.outcomes(), []turn.Outcome{turn.Retried, turn.Canceled})
		same(t, "posts", d.deliveries(), nil)
	})
}

// TestDeliveriesAreReported at the end of a run, if there are any.
func TestDeliveriesAreReported(t *testing.T) {
	broken, newer := fails(temporary(false)), thinks(10*time.Second, "stale")
	none := func(string) ([]outbox.Post, error) { return nil, nil }
	preview := func(run *runs.Run) { run.Previews++ }
	sign := func(run *runs.Run) { run.Signed = true }
	for name, c := range map[string]struct {
		does   script
		format func(string) ([]outbox.Post, error)
		show   func(*runs.Run)
		want   int
	}{
		"a reply":                         {answers("ok"), nil, nil, 1},
		"a reply that readers take":       {answers("ok"), none, nil, 0},
		"a notice":                        {broken, nil, nil, 1},
		"a notice without a post":         {broken, none, nil, 0},
		"a preview of a failed run":       {broken, none, preview, 1},
		"a sign of a failed run":          {broken, none, sign, 1},
		"a reply that is not sent":        {newer, nil, nil, 0},
		"a preview that is not completed": {newer, nil, preview, 1},
		"a failure before another try":    {fails(errors.New("oops")), nil, preview, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(d *fixture) {
				d.settings.Stale, d.show = turn.StaleDrop, c.show
				if c.format != nil {
					d.format = c.format
				}
			}, func(d *fixture) {
				d.agent.does = []script{c.does}
				d.asks("1", "one")
				d.record(messages.TriggerPassive, human("2", "aside"))
				for len(d.outcomes()) == 0 {
					pass(100 * time.Millisecond)
				}
				d.mu.Lock()
				defer d.mu.Unlock()
				same(t, "reports", d.posted, c.want)
			})
		})
	}
}

// TestDeliveriesOfTheIntakeAreReported checks a command that ends a run.
func TestDeliveriesOfTheIntakeAreReported(t *testing.T) {
	inBubble(t, nil, func(d *fixture) {
		d.record(messages.TriggerPassive, human("1", "aside"))
		same(t, "reports of a message", d.posted, 0)
		d.agent.does = []script{thinks(time.Minute, "never")}
		d.asks("2", "two")
		d.asks("3", "/stop")
		same(t, "outcomes", d.outcomes(), []turn.Outcome{turn.Canceled})
		same(t, "reports of a stop", d.posted, 1)
	})
}

// TestAnAnswerBeforeAFailure is an event of the run if no other attempt follows.
func TestAnAnswerBeforeAFailure(t *testing.T) {
	inBubble(t, func(d *fixture) { d.settings.MaxAttempts = 2 }, func(d *fixture) {
		broken := func(ctx context.Context, emit func(stream.Message) error) error {
			_ = emit(said(stream.Answer, "", "half"))
			return errors.New("broken")
		}
		d.agent.does = []script{broken, broken}
		d.asks("1", "one")
		run := d.agent.inputs[0].RunID
		same(t, "after the first attempt", d.events(run), nil)
		pass(time.Minute)
		same(t, "after the last", d.events(run), []string{"1 ANSWER  half"})
	})
}

// TestALaterAnswerBeforeTheEndOfTheAttempt is taken at once.
func TestALaterAnswerBeforeTheEndOfTheAttempt(t *testing.T) {
	inBubble(t, nil, func(d *fixture) {
		d.agent.does = []script{func(context.Context, func(stream.Message) error) error {
			run, err := d.journal.Runs.UnfinishedRun(d.Context(), d.thread)
			d.must(errors.Join(err, d.journal.Runs.AnswerRun(d.Context(), run, stream.Message{Type: stream.Answer, Text: "later"})))
			return turn.ErrLater
		}}
		d.accept(messages.TriggerRun, event.Event{Kind: event.KindMessage, Message: human("1", "one")})
		pass(1500 * time.Millisecond) // the next look may be needed
		same(t, "outcomes", d.outcomes(), []turn.Outcome{turn.Awaited, turn.Answered})
	})
}

// TestARunOfAClientIsNotInterrupted: its id belongs to one message.
func TestARunOfAClientIsNotInterrupted(t *testing.T) {
	inBubble(t, interrupting, func(d *fixture) {
		d.agent.does = []script{thinks(10*time.Second, "first"), answers("second")}
		m := human("1", "one")
		m.RunID = "run-of-a-client"
		d.record(messages.TriggerRun, m)
		pass(time.Second)
		d.asks("2", "two")
		pass(20 * time.Second)
		same(t, "outcomes", d.outcomes(), []turn.Outcome{turn.Answered, turn.Answered})
		same(t, "turns", d.agent.said(), [][]string{{"one"}, {"two"}})
	})
}

// TestAPassiveMessageBeginsNoTurn, and one that asks waits for the envelopes after it.
func TestAPassiveMessageBeginsNoTurn(t *testing.T) {
	history := &reading{}
	inBubble(t, func(d *fixture) { d.history = history }, func(d *fixture) {
		d.record(messages.TriggerPassive, human("1", "aside"))
		same(t, "begun", history.readies(), 0)
		d.recorded = func() { pass(100 * time.Millisecond) }
		d.accept(messages.TriggerPassive, event.Event{Kind: event.KindMessage, Message: human("2", "another aside")}) // its commit lasts until all are accepted
		d.accept(messages.TriggerRun, event.Event{Kind: event.KindMessage, Message: human("3", "three")})
		d.accept(messages.TriggerRun, event.Event{Kind: event.KindMessage, Message: human("4", "four")})
		pass(250 * time.Millisecond)
		same(t, "begun before the second message", history.readies(), 0)
		pass(time.Second)
		same(t, "turns", d.agent.said(), [][]string{{"three"}, {"four"}})
	})
}

// TestEachAuthorKeepsTheirName in a transcript of several people.
func TestEachAuthorKeepsTheirName(t *testing.T) {
	inBubble(t, nil, func(d *fixture) {
		for i, name := range []string{"Olivia", "Olivia", "Ash", "Olivia"} {
			m := human(string(rune('1'+i)), "hi")
			m.Metadata.SenderDisplayName, m.Metadata.SenderID = name, "slack:"+name
			d.record(messages.TriggerRun, m)
			d.outcomes()
		}
		const ok = "assistant: ok\n"
		same(t, "assembled", d.assembled(3), "user: [Olivia]: hi\n"+ok+"user: [Olivia]: hi\n"+ok+"user: [Ash]: hi\n"+ok+"user: [Olivia]: hi\n")
	})
}

// TestAQuestionOfAnotherTime gives an agent neither a question that is gone nor one of another
// agent.
func TestAQuestionOfAnotherTime(t *testing.T) {
	for name, query := range map[string]string{"gone": `DELETE FROM questions`, "of another agent": `UPDATE questions SET agent = 'other'`} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(d *fixture) {
				d.agent.does = []script{streams(question)}
				d.asks("1", "one")
				asked := d.runs[0].ID
				q, err := d.journal.Runs.Question(d.Context(), asked)
				d.must(err)
				same(t, "time to answer", time.Until(q.UntilAt), d.profile.AnswerWithin)
				d.must(d.engine.Write(d.Context(), storage.WriteOptions{}, func(tx storage.Tx) error {
					_, err := tx.Exec(query)
					return err
				}))
				d.asks("2", "two")
				same(t, "outcomes", d.outcomes(), []turn.Outcome{turn.Answered, turn.Answered})
				same(t, "question", d.agent.inputs[1].Resume, (*assembly.Resume)(nil))
			})
		})
	}
}
