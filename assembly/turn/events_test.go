package turn_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/assembly/turn"
	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/storage"
	"parley/ingest/stream"
)

// events returns the stored events of a run as "seq type activity text".
func (d *fixture) events(run string) (list []string) {
	d.Helper()
	synctest.Wait()
	page, err := d.journal.Runs.RunEvents(d.Context(), run, 0, 10_000)
	d.must(err)
	for _, e := range page.Events {
		list = append(list, fmt.Sprint(e.Seq, " ", e.Type, " ", e.ActivityID, " ", e.Text))
	}
	return list
}

// steps is a script whose steps the test releases one by one.
func steps(list ...script) (run script, next func()) {
	release := make(chan struct{})
	return func(ctx context.Context, emit func(stream.Message) error) error {
		for _, step := range list {
			<-release
			if err := step(ctx, emit); err != nil {
				return err
			}
		}
		return nil
	}, func() { release <- struct{}{} }
}

// api sets a platform whose clients follow runs.
func api(d *fixture) { d.settings.API = true }

func said(kind stream.Type, activity, text string) stream.Message {
	return stream.Message{Type: kind, ActivityID: activity, Text: text}
}

// TestEventsAreStoredDuringTheRun, and the answer with the run's end.
func TestEventsAreStoredDuringTheRun(t *testing.T) {
	inBubble(t, nil, func(d *fixture) {
		script, next := steps(
			streams(said(stream.Thought, "", "hm"), token("y"), said(stream.Answer, "", "no")),
			streams(said(stream.Update, "u", "half")),
			streams(said(stream.Answer, "a", "yes"), stream.Message{Type: stream.Complete}),
		)
		d.agent.does = []func(context.Context, func(stream.Message) error) error{script}
		d.asks("C1/1", "so?")
		run := d.agent.inputs[0].RunID
		same(t, "before", d.events(run), nil)
		next()
		same(t, "an answer may be the last one", d.events(run), []string{"1 THOUGHT  hm"})
		next()
		same(t, "it was not", d.events(run), []string{"1 THOUGHT  hm", "2 ANSWER  no", "3 UPDATE u half"})
		next()
		same(t, "at the end", d.events(run)[3:], []string{"4 ANSWER a yes"})
		same(t, "outcomes", d.outcomes(), []turn.Outcome{turn.Answered})
	})
}

// TestChunksAreStoredForTheAPI, joined by time. They have the activity of the answer
// that replaces them, and another one at each attempt. A THOUGHT replaces those of an attempt that
// failed.
func TestChunksAreStoredForTheAPI(t *testing.T) {
	inBubble(t, api, func(d *fixture) {
		aside := stream.Message{Type: stream.StreamingChunk, Workstream: "w2", Text: "aside"}
		script, next := steps(
			streams(token("He")), streams(token("ll"), token("o")), streams(aside),
			func(context.Context, func(stream.Message) error) error { return errors.New("broken") },
		)
		second := func(ctx context.Context, emit func(stream.Message) error) error {
			_ = emit(token("Hi"))
			pass(time.Second)
			return emit(stream.Message{Type: stream.Complete, Details: []byte(`{"a":1}`)})
		}
		d.agent.does = []func(context.Context, func(stream.Message) error) error{script, second}
		d.asks("C1/1", "so?")
		run := d.agent.inputs[0].RunID
		next()
		same(t, "the first token", d.events(run), []string{"1 STREAMING_CHUNK " + run + "/answer He"})
		next()
		same(t, "at once", len(d.events(run)), 1)
		pass(16 * time.Millisecond)
		same(t, "after 16 ms", d.events(run)[1:], []string{"2 STREAMING_CHUNK " + run + "/answer llo"})
		pass(time.Second)
		next()
		same(t, "later, at once", d.events(run)[2:], []string{"3 STREAMING_CHUNK " + run + "/answer/w2 aside"})
		next()
		pass(1500 * time.Millisecond)
		same(t, "at the next attempt", d.events(run), []string{
			"4 THOUGHT " + run + "/answer The answer begins again.", "5 THOUGHT " + run + "/answer/w2 The answer begins again.",
			"6 STREAMING_CHUNK " + run + "/answer/5 Hi",
		})
		pass(time.Second)
		same(t, "at the end", d.events(run)[2:], []string{"7 ANSWER " + run + "/answer/5 Hi", "8 COMPLETE  "})
	})
}

// TestEventsOfAContinuedRun checks that an agent which continues its run after a restart, and emits
// its messages once more, has each of them stored once.
func TestEventsOfAContinuedRun(t *testing.T) {
	s := &steered{}
	steers := steering(s)
	inBubble(t, func(d *fixture) { api(d); steers(d) }, func(d *fixture) {
		tool := stream.Message{Type: stream.Update, Text: "tool", Details: []byte(`{"a":1}`)}
		first := streams(said(stream.Thought, "x", "hm"), said(stream.Answer, "", "no"), tool, said(stream.Thought, "", "hm"), token("y"))
		d.agent.does = []script{
			func(ctx context.Context, emit func(stream.Message) error) error {
				_ = first(ctx, emit)
				return thinks(50*time.Second, "never")(ctx, emit)
			},
			func(ctx context.Context, emit func(stream.Message) error) error {
				_ = first(ctx, emit)
				return streams(said(stream.Thought, "", "hm"), said(stream.Answer, "", "yes"))(ctx, emit)
			},
		}
		d.asks("1", "so?")
		pass(time.Second)
		run := d.running()
		d.kill()
		d.work()
		pass(10 * time.Second)
		var got []string
		for _, e := range d.events(run) {
			_, e, _ = strings.Cut(e, " ")
			got = append(got, e)
		}
		want := []string{"THOUGHT x hm", "ANSWER " + run + "/answer no", "UPDATE  tool", "THOUGHT  hm", "THOUGHT " + run + "/answer-1 The answer begins again.", "THOUGHT " + run + "/answer-1/6 hm"}
		same(t, "events", got[:len(want)], want)
		same(t, "the answer", len(got), len(want)+1)
		same(t, "outcomes", d.outcomes(), []turn.Outcome{turn.LeftOff, turn.Answered})
	})
}

// TestEventsOfAStoreThatFails are stored with the end of the run.
func TestEventsOfAStoreThatFails(t *testing.T) {
	inBubble(t, api, func(d *fixture) {
		script, next := steps(streams(said(stream.Thought, "", "a")), streams(said(stream.Thought, "", "b"), token("y")), answers("yes"))
		d.agent.does = []func(context.Context, func(stream.Message) error) error{script}
		d.asks("C1/1", "so?")
		run := d.agent.inputs[0].RunID
		d.engine.down.Store(true)
		next()
		pass(time.Second)
		next()
		pass(time.Second)
		same(t, "while it fails", d.events(run), nil)
		d.engine.down.Store(false)
		next()
		same(t, "at the end", d.events(run), []string{"1 THOUGHT  a", "2 THOUGHT  b"})
		same(t, "outcomes", d.outcomes(), []turn.Outcome{turn.Answered})
	})
}

// TestEventsOfFailedAttempts are kept beside those of the next one.
func TestEventsOfFailedAttempts(t *testing.T) {
	inBubble(t, nil, func(d *fixture) {
		d.agent.does = []func(context.Context, func(stream.Message) error) error{
			func(_ context.Context, emit func(stream.Message) error) error {
				_ = emit(said(stream.Thought, "", "a"))
				return errors.New("broken")
			},
			streams(said(stream.Thought, "", "b"), said(stream.Answer, "", "yes")),
		}
		d.asks("C1/1", "so?")
		pass(time.Minute)
		same(t, "events", d.events(d.agent.inputs[0].RunID), []string{"1 THOUGHT  a", "2 THOUGHT  b"})
	})
}

// TestARunIsNotFollowedElsewhere unless clients may follow it or it has events.
func TestARunIsNotFollowedElsewhere(t *testing.T) {
	for followed, set := range map[bool]func(*fixture){false: nil, true: api} {
		inBubble(t, set, func(d *fixture) {
			d.asks("C1/1", "so?")
			same(t, "outcomes", d.outcomes(), []turn.Outcome{turn.Answered})
			same(t, "followed", d.runs[0].Followed, followed)
		})
	}
}

// TestEachTextHasItsActivity: a text without an id belongs to the nameless activity of its workstream,
// which an answer without an id replaces.
func TestEachTextHasItsActivity(t *testing.T) {
	inBubble(t, api, func(d *fixture) {
		aside := func(kind stream.Type, activity, text string) stream.Message {
			return stream.Message{Type: kind, Workstream: "w2", ActivityID: activity, Text: text}
		}
		script, next := steps(
			streams(said(stream.StreamingChunk, "t", "a")),
			streams(
				token("b"), said(stream.StreamingChunk, "t", "c"), aside(stream.StreamingChunk, "t", "d"), said(stream.Thought, "x", "e"),
				said(stream.StreamingChunk, "x", "f"), aside(stream.StreamingChunk, "", "g"), aside(stream.Answer, "", "h"), said(stream.Thought, "th", "i"),
			),
			streams(stream.Message{Type: stream.Answer, Text: "j", Details: []byte(`{"a":1}`)}),
		)
		d.agent.does = []func(context.Context, func(stream.Message) error) error{script, streams(stream.Message{Type: stream.Answer, Text: "k", Details: []byte(`{"a":1}`)})}
		d.asks("C1/1", "so?")
		run := d.agent.inputs[0].RunID
		next()
		next()
		pass(16 * time.Millisecond)
		answer := run + "/answer"
		same(t, "during the run", d.events(run), []string{
			"1 STREAMING_CHUNK t a", "2 STREAMING_CHUNK " + answer + " b", "3 STREAMING_CHUNK t c", "4 STREAMING_CHUNK t d", "5 THOUGHT x e",
			"6 STREAMING_CHUNK x f", "8 ANSWER " + answer + "/w2 h", "9 THOUGHT th i",
		})
		next()
		same(t, "at the end", d.events(run), []string{"5 THOUGHT x e", "8 ANSWER " + answer + "/w2 h", "9 THOUGHT th i", "10 ANSWER " + answer + " j"})
		d.asks("C1/2", "and?")
		run = d.agent.inputs[1].RunID
		same(t, "without tokens", d.events(run), []string{"1 ANSWER " + run + "/answer k"})
	})
}

// TestManyEvents are all stored, for readers who follow the run. The answer of the main workstream waits
// for the end of the run, and the messages of other workstreams do not change that.
func TestManyEvents(t *testing.T) {
	inBubble(t, func(d *fixture) { d.profile.MaxBytes = 1 << 20 }, func(d *fixture) {
		messages := []stream.Message{said(stream.Answer, "", "yes"), {Type: stream.Update, Workstream: "w2", Text: "half"}}
		for range 1005 {
			messages = append(messages, stream.Message{Type: stream.Update, Workstream: "w2", Text: "more"})
		}
		d.agent.does = []script{streams(messages...)}
		d.asks("C1/1", "so?")
		d.outcomes()
		events := d.events(d.agent.inputs[0].RunID)
		same(t, "events", len(events), 1006)
		same(t, "the first", events[0], "1 UPDATE  half")
	})
}

// TestEventsWithAnUnclearOutcome are stored once, whether the first write has stored them or not.
func TestEventsWithAnUnclearOutcome(t *testing.T) {
	for name, unclear := range map[string]func(e *engine) *atomic.Bool{
		"stored": func(e *engine) *atomic.Bool { return &e.unclear }, "not stored": func(e *engine) *atomic.Bool { return &e.missed },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(d *fixture) {
				script, next := steps(streams(said(stream.Thought, "", "a")), streams(said(stream.Thought, "", "b")), answers("yes"))
				d.agent.does = []func(context.Context, func(stream.Message) error) error{script}
				d.asks("C1/1", "so?")
				unclear(d.engine).Store(true)
				next()
				synctest.Wait()
				next()
				synctest.Wait()
				next()
				same(t, "events", d.events(d.agent.inputs[0].RunID), []string{"1 THOUGHT  a", "2 THOUGHT  b"})
			})
		})
	}
}

// TestTheTimeOfTheFirstMessage is stored with the run.
func TestTheTimeOfTheFirstMessage(t *testing.T) {
	inBubble(t, nil, func(d *fixture) {
		d.agent.does = []script{func(_ context.Context, emit func(stream.Message) error) error {
			for _, m := range []stream.Message{token("a"), said(stream.Answer, "", "a")} {
				pass(time.Second)
				if err := emit(m); err != nil {
					return err
				}
			}
			return nil
		}}
		d.asks("C1/1", "so?")
		pass(5 * time.Second)
		var begun, answered int64
		d.must(d.engine.ReadOne(d.Context(), func(tx storage.Tx) error {
			_, err := tx.Row([]any{&begun, &answered}, `SELECT begun_at, answered_at FROM runs`)
			return err
		}))
		same(t, "time to the first message", answered-begun, 1000)
	})
}

// TestARefusedAgentIsHeardNoMore: each later message is refused.
func TestARefusedAgentIsHeardNoMore(t *testing.T) {
	inBubble(t, nil, func(d *fixture) {
		var errs []bool
		d.agent.does = []script{func(_ context.Context, emit func(stream.Message) error) error {
			for _, m := range []stream.Message{
				said(stream.Thought, "", "hm"), {Type: stream.Answer, Details: []byte(`{"files":[{"data":"?"}]}`)}, said(stream.Thought, "", "well"),
			} {
				errs = append(errs, emit(m) != nil)
			}
			return nil
		}}
		d.asks("C1/1", "so?")
		same(t, "outcomes", d.outcomes(), []turn.Outcome{turn.Failed})
		same(t, "refused", errs, []bool{false, true, true})
		same(t, "events", d.events(d.agent.inputs[0].RunID), []string{"1 THOUGHT  hm"})
	})
}

// TestFilesAreSaid: the stream of a run tells which files of its own messages were copied, too large and refused, once.
func TestFilesAreSaid(t *testing.T) {
	inBubble(t, nil, func(d *fixture) {
		d.copying = map[string]turn.Copying{"plot.png": turn.Copied, "film.mp4": turn.TooLarge, "page.html": turn.Refused}
		m := human("1", "look")
		for _, name := range []string{"plot.png", "film.mp4", "page.html", "later.txt"} {
			m.Attachments = append(m.Attachments, event.Attachment{ID: name, Name: name})
		}
		d.record(messages.TriggerRun, m)
		d.outcomes()
		same(t, "events", d.events(d.agent.inputs[0].RunID)[:3], []string{
			"1 SYSTEM  The file plot.png was copied.", "2 SYSTEM  The file film.mp4 is too large and was not copied.", "3 SYSTEM  The file page.html was refused and not copied.",
		})
		d.asks("2", "again") // its window has the files
		for _, said := range d.events(d.agent.inputs[1].RunID) {
			if strings.Contains(said, "SYSTEM") {
				t.Error(said)
			}
		}
	})
}
