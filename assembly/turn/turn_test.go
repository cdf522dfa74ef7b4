package turn_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/assembly/turn"
	"parley/ingest/event"
	"parley/ingest/journal/files"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/outbox"
	"parley/ingest/stream"
	"parley/ingest/work"
)

func same[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func coalescing(d *fixture) {
	d.settings.Coalesce, d.settings.CoalesceMax = 500*time.Millisecond, 2500*time.Millisecond
}

func interrupting(d *fixture) { d.settings.Mode = turn.ModeInterrupt }

// TestMessagesJoinATurn that follow one another within the window.
func TestMessagesJoinATurn(t *testing.T) {
	inBubble(t, coalescing, func(d *fixture) {
		begun := time.Now()
		d.asks("1", "one")
		pass(400 * time.Millisecond)
		d.asks("2", "two")
		pass(2 * time.Second)
		d.asks("3", "three")
		pass(2 * time.Second)
		same(t, "turns", d.agent.said(), [][]string{{"one", "two"}, {"three"}})
		if waited := d.agent.times[0].Sub(begun); waited < 900*time.Millisecond || waited > time.Second {
			t.Errorf("the turn began after %v, want 500 ms after its last message", waited)
		}
	})
}

// TestATurnWaitsNoLongerThanCoalesceMax, even if more messages arrive.
func TestATurnWaitsNoLongerThanCoalesceMax(t *testing.T) {
	inBubble(t, coalescing, func(d *fixture) {
		begun := time.Now()
		for i := range 12 {
			d.asks(fmt.Sprint(i), "more")
			pass(300 * time.Millisecond)
		}
		if waited := d.agent.times[0].Sub(begun); waited < 2500*time.Millisecond || waited > 2600*time.Millisecond {
			t.Errorf("the turn began after %v, want 2.5 s", waited)
		}
	})
}

// TestQueue checks that each message is a turn, one at a time, in order.
func TestQueue(t *testing.T) {
	inBubble(t, nil, func(d *fixture) {
		d.agent.does = []script{thinks(10*time.Second, "first")}
		d.asks("1", "one")
		d.asks("2", "two")
		d.asks("3", "three")
		pass(15 * time.Second)
		same(t, "turns", d.agent.said(), [][]string{{"one"}, {"two"}, {"three"}})
		same(t, "posts", d.deliveries(), []string{"first", "ok", "ok"})
		same(t, "the second turn waited", d.agent.times[1].Sub(d.agent.times[0]), 10*time.Second)
	})
}

// TestAWorkspacesRunsAreBounded: its further turns wait, and those of other workspaces do not.
func TestAWorkspacesRunsAreBounded(t *testing.T) {
	inBubble(t, func(d *fixture) { d.settings.MaxConcurrent = 2 }, func(d *fixture) {
		begin := time.Now()
		for i, place := range []event.ThreadKey{"slack:acme:C1:1", "slack:acme:C1:2", "slack:acme:C1:3", "slack:acme:C1:4", "slack:acme:C1:5", "slack:other:C1:1"} {
			d.agent.does = append(d.agent.does, thinks(time.Duration(10+5*(i%2))*time.Second, "done"))
			d.place = place
			d.asks(fmt.Sprint(i), "please")
		}
		pass(time.Minute)
		var waits []time.Duration
		for _, at := range d.agent.times {
			waits = append(waits, at.Sub(begin).Truncate(time.Second))
		}
		same(t, "waits", waits, []time.Duration{0, 0, 0, 10 * time.Second, 15 * time.Second, 25 * time.Second})
	})
}

// TestAWorkspaceWithRoomIsNotFull: a retry in one thread does not wait for the run of another.
func TestAWorkspaceWithRoomIsNotFull(t *testing.T) {
	inBubble(t, nil, func(d *fixture) {
		d.agent.does = []script{thinks(20*time.Second, "done"), fails(errors.New("oops"))}
		d.asks("1", "one")
		d.place = "slack:acme:C1:2"
		d.asks("2", "two")
		pass(time.Minute)
		same(t, "outcomes", d.outcomes(), []turn.Outcome{turn.Retried, turn.Answered, turn.Answered})
		same(t, "wait", d.agent.times[2].Sub(d.agent.times[1]), time.Second)
	})
}

// TestInterrupt: a newer message begins the turn again, with both.
func TestInterrupt(t *testing.T) {
	inBubble(t, interrupting, func(d *fixture) {
		d.agent.does = []script{thinks(time.Minute, "never")}
		d.asks("1", "one")
		pass(time.Second)
		d.asks("2", "two")
		same(t, "outcomes", d.outcomes(), []turn.Outcome{turn.Interrupted, turn.Answered})
		same(t, "turns", d.agent.said(), [][]string{{"one"}, {"one", "two"}})
		same(t, "posts", d.deliveries(), []string{"ok"})
	})
}

// TestAnEditDuringTheRun: with ModeInterrupt the turn begins again with the new
// text. Otherwise the edit can only make the reply stale.
func TestAnEditDuringTheRun(t *testing.T) {
	for name, c := range map[string]struct {
		set      func(d *fixture)
		outcomes []turn.Outcome
		asked    [][]string
	}{
		"queue":     {nil, []turn.Outcome{turn.Answered}, [][]string{{"tea"}}},
		"interrupt": {interrupting, []turn.Outcome{turn.Interrupted, turn.Answered}, [][]string{{"tea"}, {"coffee"}}},
		"rerun":     {func(d *fixture) { d.settings.Stale = turn.StaleRerun }, []turn.Outcome{turn.Rerun, turn.Answered}, [][]string{{"tea"}, {"coffee"}}},
		"drop":      {func(d *fixture) { d.settings.Stale = turn.StaleDrop }, []turn.Outcome{turn.Dropped}, [][]string{{"tea"}}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, c.set, func(d *fixture) {
				d.agent.does = []script{thinks(20*time.Second, "tea it is")}
				d.asks("1", "tea")
				pass(time.Second)
				begun := time.Now()
				d.edits("1", "coffee")
				d.edits("1", "coffee") // a repeated edit changes nothing
				pass(50 * time.Second)
				same(t, "outcomes", d.outcomes(), c.outcomes)
				same(t, "asked", d.agent.said(), c.asked)
				if name == "interrupt" && d.agent.times[1].Sub(begun) > time.Second {
					t.Errorf("the turn began again after %v", d.agent.times[1].Sub(begun))
				}
			})
		})
	}
}

// TestAnEditOfAnotherMessageInterruptsNoRun checks a passive message and an answered one.
func TestAnEditOfAnotherMessageInterruptsNoRun(t *testing.T) {
	inBubble(t, interrupting, func(d *fixture) {
		d.asks("1", "one")
		pass(time.Second)
		d.record(messages.TriggerPassive, human("2", "two"))
		d.agent.does = []script{thinks(20*time.Second, "three it is")}
		d.asks("3", "three")
		pass(time.Second)
		d.edits("1", "ein")
		d.apply(messages.TriggerPassive, event.Event{Kind: event.KindEdit, Targets: []string{"2"}, Message: revised("2", "zwei")})
		pass(time.Minute)
		same(t, "outcomes", d.outcomes(), []turn.Outcome{turn.Answered, turn.Answered})
	})
}

// TestAPassiveMessageInterruptsNoRun checks ModeInterrupt.
func TestAPassiveMessageInterruptsNoRun(t *testing.T) {
	inBubble(t, interrupting, func(d *fixture) {
		d.agent.does = []script{thinks(10*time.Second, "done")}
		d.asks("1", "one")
		d.record(messages.TriggerPassive, human("2", "aside"))
		pass(11 * time.Second)
		same(t, "outcomes", d.outcomes(), []turn.Outcome{turn.Answered})
	})
}

// TestDeletingEveryMessageCancels, one by one or at once. Deleting one of two messages does
// not.
func TestDeletingEveryMessageCancels(t *testing.T) {
	for name, c := range map[string]struct {
		deletes [][]string
		want    turn.Outcome
	}{
		"one of two":  {[][]string{{"1"}}, turn.Answered},
		"one by one":  {[][]string{{"1"}, {"2"}}, turn.Canceled},
		"in bulk":     {[][]string{{"1", "2"}}, turn.Canceled},
		"in two goes": {[][]string{{"2"}, {"1", "2"}}, turn.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, coalescing, func(d *fixture) {
				d.agent.does = []script{thinks(10*time.Second, "done")}
				d.asks("1", "one")
				d.asks("2", "two")
				pass(time.Second)
				for _, ids := range c.deletes {
					d.deletes(ids...)
				}
				begun := time.Now()
				for len(d.outcomes()) == 0 {
					pass(10 * time.Millisecond)
				}
				same(t, "outcomes", d.outcomes(), []turn.Outcome{c.want})
				if c.want == turn.Canceled && time.Since(begun) > 100*time.Millisecond {
					t.Errorf("it took %v to cancel the run", time.Since(begun))
				}
			})
		})
	}
}

// TestADeleteAfterTheAnswer, in a turn with thread context, leaves the thread's next turns alone.
func TestADeleteAfterTheAnswer(t *testing.T) {
	inBubble(t, nil, func(d *fixture) {
		d.record(messages.TriggerPassive, human("1", "by the way"))
		d.asks("2", "one")
		pass(time.Second)
		d.deletes("2")
		d.asks("3", "two")
		pass(time.Second)
		same(t, "outcomes", d.outcomes(), []turn.Outcome{turn.Answered, turn.Answered})
	})
}

// TestADeleteBeforeTheRun: the agent is not asked.
func TestADeleteBeforeTheRun(t *testing.T) {
	inBubble(t, coalescing, func(d *fixture) {
		d.asks("1", "one")
		d.deletes("1")
		pass(2 * time.Second)
		same(t, "turns", len(d.agent.said()), 0)
	})
}

// TestTheAgentSeesAnEditBeforeTheRun checks an edit during the coalescing window.
func TestTheAgentSeesAnEditBeforeTheRun(t *testing.T) {
	inBubble(t, coalescing, func(d *fixture) {
		d.asks("1", "befor")
		m := human("1", "before")
		m.Revision = "r1"
		d.apply(messages.TriggerRun, event.Event{Kind: event.KindEdit, Message: m, Targets: []string{"1"}})
		pass(2 * time.Second)
		same(t, "turns", d.agent.said(), [][]string{{"before"}})
	})
}

// TestTheNextRunSeesAnEditAtTheEndOfARun: the next run begins with its message
// before the worker has left the earlier run.
func TestTheNextRunSeesAnEditAtTheEndOfARun(t *testing.T) {
	inBubble(t, nil, func(d *fixture) {
		d.ended = func() {
			d.ended = nil
			d.asks("2", "befor")
			m := human("2", "before")
			m.Revision = "r1"
			d.apply(messages.TriggerRun, event.Event{Kind: event.KindEdit, Message: m, Targets: []string{"2"}})
			d.record(messages.TriggerPassive, human("3", "aside"))
		}
		d.accept(messages.TriggerRun, event.Event{Kind: event.KindMessage, Message: human("1", "one")})
		pass(2 * time.Second)
		same(t, "turns", d.agent.said(), [][]string{{"one"}, {"before"}})
	})
}

// temporary is an agent's error. Its value tells whether another attempt is useful.
type temporary bool

func (temporary) Error() string     { return "the agent's words" }
func (e temporary) Temporary() bool { return bool(e) }

// wordless is an agent's error that has no sentence of its own for the people.
type wordless struct{}

func (wordless) Error() string    { return "the agent's words" }
func (wordless) Sentence() string { return "" }

// TestFailures checks how often the agent is asked, and the post to the thread.
func TestFailures(t *testing.T) {
	const sorry = "Sorry, something went wrong while I was answering this. Please ask again later."
	flood := func(_ context.Context, emit func(stream.Message) error) error {
		for emit(stream.Message{Type: stream.StreamingChunk, Text: strings.Repeat("x", 100)}) == nil {
			continue
		}
		return nil // it ignores the refusal
	}
	for name, c := range map[string]struct {
		does script
		want []turn.Outcome
		post string
	}{
		"a temporary failure":            {fails(temporary(true)), []turn.Outcome{turn.Retried, turn.Retried, turn.Failed}, sorry},
		"a failure without a sentence":   {fails(wordless{}), []turn.Outcome{turn.Retried, turn.Retried, turn.Failed}, sorry},
		"a completion without words":     {streams(stream.Message{Type: stream.Complete}), []turn.Outcome{turn.Retried, turn.Retried, turn.Failed}, sorry},
		"a failure without a kind":       {fails(errors.New("oops")), []turn.Outcome{turn.Retried, turn.Retried, turn.Failed}, sorry},
		"a permanent failure":            {fails(temporary(false)), []turn.Outcome{turn.Failed}, sorry},
		"no answer":                      {fails(nil), []turn.Outcome{turn.Retried, turn.Retried, turn.Failed}, sorry},
		"a panic":                        {func(context.Context, func(stream.Message) error) error { panic("a bug") }, []turn.Outcome{turn.Retried, turn.Retried, turn.Failed}, sorry},
		"a flood":                        {flood, []turn.Outcome{turn.Failed}, turn.LongAnswer},
		"an answer that is too long":     {answers(strings.Repeat("x", 1001)), []turn.Outcome{turn.Failed}, turn.LongAnswer},
		"a timeout of the agent's own":   {fails(fmt.Errorf("read: %w", context.DeadlineExceeded)), []turn.Outcome{turn.Retried, turn.Retried, turn.Failed}, sorry},
		"a context of the agent's own":   {fails(fmt.Errorf("read: %w", context.Canceled)), []turn.Outcome{turn.Retried, turn.Retried, turn.Failed}, sorry},
		"an agent that hangs":            {thinks(time.Hour, "late"), []turn.Outcome{turn.Retried, turn.Retried, turn.Failed}, "Sorry, I couldn't answer this in time. Please ask again later."},
		"an answer as long as it may be": {answers(strings.Repeat("x", 1000)), []turn.Outcome{turn.Answered}, strings.Repeat("x", 1000)},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(d *fixture) {
				d.agent.does = []script{c.does, c.does, c.does}
				d.asks("1", "one")
				for range 200 { // seconds: three timeouts of a minute, and the waits between them
					if len(d.outcomes()) < len(c.want) {
						pass(time.Second)
					}
				}
				same(t, "outcomes", d.outcomes(), c.want)
				for _, input := range d.agent.inputs {
					same(t, "run id", input.RunID, d.agent.inputs[0].RunID)
				}
				same(t, "posts", d.deliveries(), []string{c.post})
				d.agent.does = nil
				d.asks("2", "and now?")
				same(t, "the next turn", d.outcomes(), append(c.want, turn.Answered))
				if len(c.want) > 0 && c.want[len(c.want)-1] == turn.Failed && strings.Contains(d.assembled(len(c.want)), "Sorry") {
					t.Error("the transcript contains the sentence to the thread")
				}
			})
		})
	}
}

// busy is the error of an agent whose server asks for a pause.
type busy time.Duration

func (busy) Error() string          { return "busy" }
func (b busy) Pause() time.Duration { return time.Duration(b) }

// TestAnAgentsPause checks that the next attempt waits for the pause that the agent's server
// asks for, and that a pause longer than a run may take ends the run.
func TestAnAgentsPause(t *testing.T) {
	inBubble(t, nil, func(d *fixture) {
		d.agent.does = []script{fails(busy(20 * time.Second)), answers("ok"), fails(busy(2 * time.Minute))}
		d.asks("1", "one")
		pass(30 * time.Second)
		if wait := d.agent.times[1].Sub(d.agent.times[0]); wait < 20*time.Second {
			t.Errorf("the second attempt followed after %v", wait)
		}
		d.asks("2", "two")
		same(t, "outcomes", d.outcomes(), []turn.Outcome{turn.Retried, turn.Answered, turn.Failed})
	})
}

// TestALaterAnswer checks that an agent that answers later is asked once, and that its answer
// ends the run.
func TestALaterAnswer(t *testing.T) {
	inBubble(t, nil, func(d *fixture) {
		d.agent.does = []script{fails(turn.ErrLater)}
		d.asks("1", "one")
		pass(time.Minute)
		d.asks("2", "two") // it waits for its own turn
		pass(time.Minute)
		same(t, "outcomes", d.outcomes(), []turn.Outcome{turn.Awaited})
		d.must(d.Runs.AnswerRun(d.Context(), d.agent.inputs[0].RunID, stream.Message{Type: stream.Answer, Text: "later"}))
		d.scheduler.Wake(work.Turns, "helper", d.thread)
		pass(time.Second)
		same(t, "outcomes", d.outcomes(), []turn.Outcome{turn.Awaited, turn.Answered, turn.Answered})
		same(t, "posts", d.deliveries(), []string{"later", "ok"})
		same(t, "requests", len(d.agent.inputs), 2)

		d.agent.does = []script{func(ctx context.Context, emit func(stream.Message) error) error {
			run := d.agent.inputs[len(d.agent.inputs)-1].RunID
			return errors.Join(d.Runs.AnswerRun(ctx, run, stream.Message{Type: stream.Answer, Text: "both"}), emit(stream.Message{Type: stream.Answer, Text: "twice"}))
		}}
		d.asks("both", "both?")
		pass(time.Second)
		all := d.all()
		same(t, "the answer that was acknowledged", all[len(all)-1].Content, "both")

		d.agent.does = []script{fails(turn.ErrLater), fails(turn.ErrLater)}
		d.asks("3", "three")
		pass(6 * time.Minute)
		same(t, "the end of the wait", d.outcomes()[5:], []turn.Outcome{turn.Awaited, turn.Failed})
		all = d.all()
		same(t, "its sentence", all[len(all)-1].Content, "Sorry, I couldn't answer this in time. Please ask again later.")
	})
}

// TestAMessageDoesNotShortenABackoff: the message waits and is not lost.
func TestAMessageDoesNotShortenABackoff(t *testing.T) {
	inBubble(t, nil, func(d *fixture) {
		d.agent.does = []script{fails(errors.New("one")), fails(errors.New("two"))}
		d.asks("1", "one")
		pass(1500 * time.Millisecond) // the second attempt has failed; the third is 4 s after it
		d.asks("2", "two")
		pass(10 * time.Second)
		same(t, "turns", d.agent.said(), [][]string{{"one"}, {"one"}, {"one"}, {"two"}})
		if wait := d.agent.times[2].Sub(d.agent.times[1]); wait < 4*time.Second {
			t.Errorf("the third attempt followed after %v", wait)
		}
	})
}

// TestStale checks the policies for a reply after a newer message.
func TestStale(t *testing.T) {
	for policy, c := range map[string]struct {
		outcomes []turn.Outcome
		posts    []string
	}{
		turn.StaleSend:  {[]turn.Outcome{turn.Answered}, []string{"first"}},
		turn.StaleRerun: {[]turn.Outcome{turn.Rerun, turn.Answered}, []string{"ok"}},
		turn.StaleDrop:  {[]turn.Outcome{turn.Dropped}, nil},
	} {
		t.Run(policy, func(t *testing.T) {
			inBubble(t, func(d *fixture) { d.settings.Stale = policy }, func(d *fixture) {
				d.agent.does = []script{thinks(5*time.Second, "first")}
				d.asks("1", "one")
				pass(time.Second) // the agent has been asked
				d.record(messages.TriggerPassive, human("2", "by the way"))
				pass(6 * time.Second)
				same(t, "outcomes", d.outcomes(), c.outcomes)
				same(t, "posts", d.deliveries(), c.posts)
			})
		})
	}
}

// TestAReplyDescribesItsRun checks its metadata and its freshness.
func TestAReplyDescribesItsRun(t *testing.T) {
	inBubble(t, nil, func(d *fixture) {
		d.agent.does = []script{thinks(1500*time.Millisecond, "done")}
		d.asks("1", "one")
		pass(2 * time.Second)
		reply := d.replies()[0]
		var got map[string]any
		d.must(json.Unmarshal(reply.Metadata, &got))
		same(t, "metadata", got, map[string]any{
			"source": "slack", "sender_id": "agent:helper", "sender_display_name": "helper", "sender_type": "bot",
			"run_id": reply.Run, "stage": "answer", "latency_ms": float64(1500), "message_id": reply.ExternalID,
		})
		same(t, "freshness", *reply.Freshness, messages.Freshness{Known: event.Known{BaseSeq: new(int64(1)), LatestSeenSeq: new(int64(1))}, ServerSeq: 1})
	})
}

// TestAReplyHasTheAgentsOwnKeys checks that they keep their values, and that none replaces a
// key of ours or makes the metadata large.
func TestAReplyHasTheAgentsOwnKeys(t *testing.T) {
	inBubble(t, func(d *fixture) { d.profile.MaxBytes = 1 << 20 }, func(d *fixture) {
		details := func(raw string) script {
			return func(_ context.Context, emit func(stream.Message) error) error {
				return emit(stream.Message{Type: stream.Answer, Text: "done", Details: []byte(raw)})
			}
		}
		d.agent.does = []script{
			details(`{"mood":{"n":null},"run_id":"x","sender_id":"x","files":[],"large":"` + strings.Repeat("x", 64<<10) + `","deep":` + strings.Repeat("[", 101) + strings.Repeat("]", 101) + `,"n":1.50}`),
			details(`["no object"]`), details(`{"a":1,"a":2}`),
		}
		for i, want := range []string{`,"mood":{"n":null},"deep":` + strings.Repeat("[", 99) + `"[[]]"` + strings.Repeat("]", 99) + `,"n":1.50}`, `}`, `}`} {
			d.asks(fmt.Sprint(i+1), "hi")
			pass(2 * time.Second)
			reply := d.replies()[i]
			_, got, _ := strings.Cut(string(reply.Metadata), `"message_id":"`+reply.ExternalID+`"`)
			same(t, "own keys", got, want)
		}
	})
}

// TestStreams: an ANSWER replaces the tokens, and a COMPLETE ends them.
func TestStreams(t *testing.T) {
	chunk := func(text string) stream.Message { return stream.Message{Type: stream.StreamingChunk, Text: text} }
	for name, c := range map[string]struct {
		says []stream.Message
		want string
	}{
		"tokens and an answer":                            {[]stream.Message{chunk("a"), chunk("b"), {Type: stream.Answer, Text: "the answer"}}, "the answer"},
		"tokens and a completion":                         {[]stream.Message{chunk("a"), chunk("b"), {Type: stream.Complete}}, "ab"},
		"a completion with words":                         {[]stream.Message{{Type: stream.Thought, Text: "hm"}, {Type: stream.Complete, Text: "all done"}}, "all done"},
		"an answer, completed":                            {[]stream.Message{{Type: stream.Answer, Text: "yes"}, {Type: stream.Complete, Text: "bye"}}, "yes"},
		"a later workstream":                              {[]stream.Message{{Type: stream.Answer, Text: "main"}, {Type: stream.Answer, Text: "aside", Workstream: "w2"}}, "main"},
		"tokens and an answer, each as long as it may be": {[]stream.Message{chunk(strings.Repeat("x", 600)), {Type: stream.Answer, Text: strings.Repeat("y", 600)}}, strings.Repeat("y", 600)},
		"a question":                                      {[]stream.Message{{Type: stream.RequestInput, Text: "so?"}}, "so?"},
		"a question without words":                        {[]stream.Message{{Type: stream.Answer, Text: "yes"}, {Type: stream.RequestInput}}, "yes"},
		"another workstream":                              {[]stream.Message{{Type: stream.Answer, Text: "aside", Workstream: "w2"}, {Type: stream.Answer, Text: "main"}}, "main"},
		"bytes that are no text":                          {[]stream.Message{{Type: stream.Answer, Text: "a\xffb\x00"}}, "a\uFFFDb\uFFFD"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(d *fixture) {
				d.agent.does = []script{func(_ context.Context, emit func(stream.Message) error) error {
					for _, m := range c.says {
						if err := emit(m); err != nil {
							return err
						}
					}
					return nil
				}}
				d.asks("1", "one")
				same(t, "outcomes", d.outcomes(), []turn.Outcome{turn.Answered})
				same(t, "reply", d.replies()[0].Content, c.want)
			})
		})
	}
}

// TestSaidIsInThePlatformsOrder, like the assembled messages.
func TestSaidIsInThePlatformsOrder(t *testing.T) {
	inBubble(t, coalescing, func(d *fixture) {
		later, earlier := human("2", "second"), human("1", "first")
		later.SentAt, earlier.SentAt = time.Now(), time.Now().Add(-time.Second)
		d.record(messages.TriggerRun, later)
		d.record(messages.TriggerRun, earlier)
		pass(time.Second)
		same(t, "turns", d.agent.said(), [][]string{{"first", "second"}})
		same(t, "assembled", d.assembled(0), "user: [Olivia]: first\nuser: [Olivia]: second\n")
	})
}

// TestAQuotedReplyOfOursIsNotShownTwice: the platform quotes our post by its own
// id, and the window contains the reply of that post.
func TestAQuotedReplyOfOursIsNotShownTwice(t *testing.T) {
	inBubble(t, nil, func(d *fixture) {
		d.agent.does = []script{answers("Yes.")}
		d.asks("1", "tomorrow?")
		same(t, "outcomes", d.outcomes(), []turn.Outcome{turn.Answered})
		d.deliveries()
		again := human("2", "really?")
		again.Quoted = &event.Quote{ExternalID: "C1/post1", Content: "Yes.", Own: true}
		d.record(messages.TriggerRun, again)
		d.outcomes()
		same(t, "assembled", d.assembled(1), "user: [Olivia]: tomorrow?\nassistant: Yes.\nuser: [Olivia]: really?\n")
	})
}

// TestAFormatterThatFailsIsTheRunsFailure, not the process's.
func TestAFormatterThatFailsIsTheRunsFailure(t *testing.T) {
	inBubble(t, func(d *fixture) {
		d.settings.MaxAttempts = 1
		d.format = func(string) ([]outbox.Post, error) { panic("a bug in the converter") }
	}, func(d *fixture) {
		d.asks("1", "one")
		same(t, "outcomes", d.outcomes(), []turn.Outcome{turn.Failed})
	})
}

// TestARunIsAskedOnce: if the intake is so slow between the commit and the hand-over of
// a run that a poll resumes the run from the store, the handed run is dropped.
func TestARunIsAskedOnce(t *testing.T) {
	for name, slow := range map[string]time.Duration{"fast": 0, "slow": 3 * time.Second} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(d *fixture) {
				d.recorded = func() { pass(slow) }
				d.accept(messages.TriggerRun, event.Event{Kind: event.KindMessage, Message: human("1", "one")})
				pass(10 * time.Second)
				same(t, "turns", d.agent.said(), [][]string{{"one"}})
				same(t, "outcomes", d.outcomes(), []turn.Outcome{turn.Answered})
			})
		})
	}
}

// TestAnAnswerWaitsForTheStore for a bounded time. Then the agent is asked again.
func TestAnAnswerWaitsForTheStore(t *testing.T) {
	for name, c := range map[string]struct {
		down     time.Duration
		outcomes []turn.Outcome
	}{"a minute": {time.Minute, []turn.Outcome{turn.Answered}}, "an hour": {time.Hour, []turn.Outcome{turn.LeftOff, turn.Answered}}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(d *fixture) {
				d.agent.does = []script{func(ctx context.Context, emit func(stream.Message) error) error {
					d.engine.down.Store(true)
					time.AfterFunc(c.down, func() { d.engine.down.Store(false) })
					return answers("ok")(ctx, emit)
				}}
				d.asks("1", "one")
				pass(c.down + 10*time.Second)
				same(t, "outcomes", d.outcomes(), c.outcomes)
				same(t, "posts", d.deliveries(), []string{"ok"})
			})
		})
	}
}

// TestARunThatEndsItsProcess becomes a suspect, which runs in the serial queue, and then
// fails for good.
func TestARunThatEndsItsProcess(t *testing.T) {
	inBubble(t, nil, func(d *fixture) {
		for range 6 {
			d.agent.does = append(d.agent.does, thinks(time.Hour, "never"))
		}
		d.asks("1", "one")
		for _, lives := range []time.Duration{1, 1, 1, 5, 5, 15, 5, 15} { // no suspect runs in the first ten seconds
			pass(lives * time.Second)
			d.kill()
			d.work()
		}
		pass(15 * time.Second)
		same(t, "asked in the serial queue", d.serials, []bool{false, false, false, true, true})
		got := d.outcomes()
		same(t, "last outcome", got[len(got)-1], turn.Failed)
		same(t, "posts", len(d.deliveries()), 1)
	})
}

// TestATurnThatWaitsIsNoSuspect: processes that end while a run waits for missed messages
// prove nothing about the run.
func TestATurnThatWaitsIsNoSuspect(t *testing.T) {
	history := &reading{}
	inBubble(t, func(d *fixture) { d.history = history }, func(d *fixture) {
		d.agent.does = []script{thinks(time.Hour, "never")}
		d.asks("1", "one")
		pass(time.Second) // the run has begun
		history.mu.Lock()
		history.lasts = time.Minute
		history.mu.Unlock()
		for range 6 {
			d.kill()
			d.work()
			pass(2 * time.Second)
		}
		pass(2 * time.Minute)
		same(t, "asked", len(d.agent.said()), 2)
		got := d.outcomes()
		same(t, "last outcome", got[len(got)-1], turn.Answered)
		same(t, "asked in the serial queue", d.serials, []bool{false, false})
	})
}

// TestARemovedAgent: its turns wait until it is configured again.
func TestARemovedAgent(t *testing.T) {
	inBubble(t, func(d *fixture) { d.gone = true }, func(d *fixture) {
		d.asks("1", "one")
		pass(10 * time.Second)
		synctest.Wait()
		same(t, "runs while it is gone", len(d.agent.said()), 0)
		d.mu.Lock()
		d.gone = false
		d.mu.Unlock()
		pass(2 * time.Second)
		same(t, "outcomes", d.outcomes(), []turn.Outcome{turn.Answered})
	})
}

// TestAStopLeavesTheRun: the next start resumes the run under the same id.
func TestAStopLeavesTheRun(t *testing.T) {
	inBubble(t, nil, func(d *fixture) {
		d.agent.does = []script{thinks(30*time.Second, "never")}
		d.asks("1", "one")
		pass(time.Second)
		d.stop()
		same(t, "at the stop", d.outcomes(), []turn.Outcome{turn.LeftOff})
		d.work()
		same(t, "after the start", d.outcomes(), []turn.Outcome{turn.LeftOff, turn.Answered})
		same(t, "run id", d.agent.inputs[1].RunID, d.agent.inputs[0].RunID)
	})
}

// TestTheFirstFilesOfAMessageAreCopied. Of the others, the agent sees the names.
func TestTheFirstFilesOfAMessageAreCopied(t *testing.T) {
	inBubble(t, nil, func(d *fixture) {
		m := human("1", "look")
		for i := range 12 {
			m.Attachments = append(m.Attachments, event.Attachment{ID: fmt.Sprint(i), Name: fmt.Sprint("file", i)})
		}
		d.record(messages.TriggerRun, m)
		d.outcomes()
		same(t, "copied", len(d.kept), 10)
		same(t, "named", len(d.agent.inputs[0].Said[0].Files), 12)
	})
}

// TestFilesThatHangLeaveTimeForTheRun: the agent sees their names.
func TestFilesThatHangLeaveTimeForTheRun(t *testing.T) {
	inBubble(t, nil, func(d *fixture) {
		d.keep = func(ctx context.Context) {
			select {
			case <-ctx.Done():
			case <-time.After(30 * time.Second):
			}
		}
		d.agent.does = []script{thinks(10*time.Second, "a list of names")}
		m := human("1", "look")
		for i := range 10 {
			m.Attachments = append(m.Attachments, event.Attachment{ID: fmt.Sprint(i), Name: fmt.Sprint("file", i)})
		}
		d.record(messages.TriggerRun, m)
		pass(time.Minute)
		same(t, "outcomes", d.outcomes(), []turn.Outcome{turn.Answered})
	})
}

// TestFilesOfEarlierTurnsAreCopied, those of the newest turn first, until one can't be copied.
func TestFilesOfEarlierTurnsAreCopied(t *testing.T) {
	for _, c := range []struct {
		state files.State
		own   []string // files of the current turn
		want  []string
	}{
		{files.Stored, []string{"own", "other"}, []string{"own", "other", "second", "more", "first"}},
		{files.Unavailable, []string{"own", "other"}, []string{"own", "other"}},
		{files.Pending, []string{"own", "other"}, []string{"own", "other"}},
		{files.Unavailable, nil, []string{"second"}},
	} {
		inBubble(t, nil, func(d *fixture) {
			asks := func(id string, files ...string) {
				m := human(id, "look")
				for _, name := range files {
					m.Attachments = append(m.Attachments, event.Attachment{ID: name, Name: name})
				}
				d.record(messages.TriggerRun, m)
				d.outcomes()
			}
			asks("1", "first")
			asks("2", "second", "more")
			d.kept, d.copied = nil, c.state
			asks("3", c.own...)
			same(t, "copied until "+string(c.state), d.kept, c.want)
		})
	}
}

// TestTextFilesAreRead into the input, in the fence that package assembly makes. Their message keeps
// its content.
func TestTextFilesAreRead(t *testing.T) {
	copies := map[string]string{
		"message.txt": "a long paste", "build.log": "it fails", "cat.png": "\x89PNG", "data": "\x00\x01", "big.txt": strings.Repeat("x", 100<<10+1),
		"plan.pdf": "%PDF-1.7", "marked.md": "\ufeff# Title",
	}
	types := map[string]string{"message.txt": "text/plain; charset=utf-8", "cat.png": "image/png", "plan.pdf": "application/pdf"}
	for files, want := range map[string]map[string]string{
		turn.FilesText:  {"message.txt": "a long paste", "build.log": "it fails", "marked.md": "# Title", "clip.m4a": "check the pump"},
		turn.FilesNames: {},
	} {
		inBubble(t, nil, func(d *fixture) {
			d.copies, d.profile.Files = copies, files
			d.settings.Window.Bytes = 1 << 20
			m := human("1", "")
			for name := range copies {
				m.Attachments = append(m.Attachments, event.Attachment{ID: name, Name: name, MimeType: types[name]})
			}
			m.Attachments = append(m.Attachments, event.Attachment{ID: "clip", Name: "clip.m4a", MimeType: "audio/mp4", Words: "check the pump"},
				event.Attachment{ID: "speech", Name: "speech.m4a", MimeType: "audio/mp4", Words: strings.Repeat("x", 100<<10+1)})
			d.record(messages.TriggerRun, m)
			d.outcomes()
			got, input := map[string]string{}, d.agent.inputs[0]
			for _, file := range input.Said[0].Files {
				if file.Words != "" {
					got[file.Name] = file.Words
				}
			}
			same(t, "words with files: "+files, got, want)
			same(t, "content", input.Said[0].Content, "")
			for _, words := range want {
				if !strings.Contains(input.Messages[0].Text(), words) {
					t.Errorf("the input has no %q: %q", words, input.Messages[0].Text())
				}
			}
		})
	}
}

// TestTextsOfOtherForms: a file that is a text by its name or its type has words in any form, other files
// only in UTF-8 and UTF-16.
func TestTextsOfOtherForms(t *testing.T) {
	for _, c := range []struct{ name, kind, content, want string }{
		{"build.log", "", "\x1b[1;31mit\x1b[0m fails\x07", "it fails"},
		{"build", "", "\x1b[1;31mit\x1b[0m fails", "it fails"},
		{"build", "", "it fails\x07", ""},
		{"notes.txt", "", "\xff\xfeG\x00r\x00\xfc\x00\xdf\x00e\x00", "Grüße"},
		{"notes", "", "\xfe\xff\x00H\x00i", "Hi"},
		{"table", "text/csv", "Gr\xfc\xdfe;1", "Gr\uFFFDe;1"},
		{"table", "", "Gr\xfc\xdfe;1", ""},
		{"notes.txt", "text/plain", "a\x00b", ""},
		{"index.ts", "video/mp2t", "let a = 1", "let a = 1"},
		{"film.ts", "video/mp2t", "G@\x00\x10", ""},
		{"voice.ogg", "audio/ogg", "text", ""},
	} {
		inBubble(t, nil, func(d *fixture) {
			d.copies = map[string]string{c.name: c.content}
			m := human("1", "")
			m.Attachments = []event.Attachment{{ID: c.name, Name: c.name, MimeType: c.kind}}
			d.record(messages.TriggerRun, m)
			d.outcomes()
			same(t, fmt.Sprintf("words of %s %q", c.name, c.content), d.agent.inputs[0].Said[0].Files[0].Words, c.want)
		})
	}
}

// TestWordsOfFilesAreWithinTheWindow, the newest first.
func TestWordsOfFilesAreWithinTheWindow(t *testing.T) {
	inBubble(t, nil, func(d *fixture) {
		d.copies = map[string]string{"old.txt": strings.Repeat("o", 60<<10), "new.txt": strings.Repeat("n", 60<<10)}
		for _, name := range []string{"old.txt", "new.txt"} {
			m := human(name, "look")
			m.Attachments = []event.Attachment{{ID: name, Name: name}}
			d.record(messages.TriggerRun, m)
			d.outcomes()
		}
		same(t, "the first input has its file", strings.Contains(d.agent.inputs[0].Messages[0].Text(), "ooo"), true)
		var all strings.Builder
		for _, m := range d.agent.inputs[1].Messages {
			all.WriteString(m.Text())
		}
		same(t, "the second has the newer one alone", [2]bool{strings.Contains(all.String(), "nnn"), strings.Contains(all.String(), "ooo")}, [2]bool{true, false})
	})
}

// TestCopiesThatHangLeaveTimeForTheRun: their files are named.
func TestCopiesThatHangLeaveTimeForTheRun(t *testing.T) {
	inBubble(t, nil, func(d *fixture) {
		d.hangs, d.copies = true, map[string]string{"a.txt": "a", "b.txt": "b"}
		d.agent.does = []script{thinks(10*time.Second, "a list of names")}
		m := human("1", "look")
		m.Attachments = []event.Attachment{{ID: "a", Name: "a.txt"}, {ID: "b", Name: "b.txt"}}
		d.record(messages.TriggerRun, m)
		pass(time.Minute)
		same(t, "outcomes", d.outcomes(), []turn.Outcome{turn.Answered})
	})
}
