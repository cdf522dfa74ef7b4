package deliver_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/adapters"
	"parley/adapters/deliver"
	"parley/assembly/turn"
	"parley/ingest/event"
	"parley/ingest/journal"
	"parley/ingest/journal/sqlite"
)

// house is an outbox on a board, with the turns that show their answers there.
type house struct {
	*testing.T
	board    *board
	platform deliver.Platform
	path     string
	nodes    int
	serial   int

	journal *journal.Journal
	desk    *journal.Desk
	kill    func() // ends the process in no order
	answer  func(ctx context.Context, run *journal.Run, s turn.Showing) (string, error)

	mu       sync.Mutex
	attempts int
}

// errors of an answer.
var (
	errFailed      = errors.New("it failed, and is tried again")
	errHopeless    = errors.New("it failed for good")
	errInterrupted = errors.New("a newer message begins it again")
)

// inHouse runs a test in a bubble, on a board that is streamed to.
func inHouse(t *testing.T, test func(h *house)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := &house{T: t, board: newBoard(), path: filepath.Join(t.TempDir(), "journal.db")}
		h.platform = deliver.Platform{Sender: h.board, Unknown: func(string) string { return "resend" }, Limits: adapters.Limits{
			Timeout: 10 * time.Second, Preview: adapters.PreviewStream, PreviewEvery: 1200 * time.Millisecond, StreamAge: 270 * time.Second, Sign: true,
		}}
		h.start()
		test(h)
		h.kill()
		h.board.effects.Wait()
	})
}

// start runs a process on the house's store.
func (h *house) start() {
	h.Helper()
	engine, err := sqlite.Open(h.Context(), h.path)
	if err != nil {
		h.Fatal(err)
	}
	h.nodes++
	log := slog.New(slog.DiscardHandler)
	j := journal.New(engine, journal.Options{Node: fmt.Sprint("node", h.nodes)})
	h.journal, h.desk = j, journal.NewDesk(j, log)
	desk := h.desk
	box := deliver.New(deliver.Parts{
		Journal: j, Desk: desk, Observer: h, Log: log, Now: time.Now,
		Platform: func(string) (deliver.Platform, bool) { return h.platform, true },
	})
	ctx, cancel := context.WithCancel(h.Context())
	var working sync.WaitGroup
	working.Go(func() { _ = box.Run(ctx, ctx) })
	working.Go(func() {
		_ = desk.Serve(ctx, journal.Lane{Work: journal.Turns, Agent: "helper", Slots: 4}, func(_ context.Context, lease *journal.Lease) {
			for ctx.Err() == nil && h.turn(ctx, j, desk, box, lease) {
				continue
			}
		})
	})
	h.kill = sync.OnceFunc(func() {
		_ = j.Close() // from now on nothing is written
		cancel()
		working.Wait()
	})
}

// Delivery implements deliver.Observer.
func (h *house) Delivery(string, journal.DeliveryState) {}

// turn takes a turn as a turn.Runner does.
func (h *house) turn(ctx context.Context, j *journal.Journal, desk *journal.Desk, box *deliver.Outbox, lease *journal.Lease) bool {
	run, err := j.BeginRun(ctx, lease, "helper", func(string, string) bool { return false })
	if err != nil || run == nil {
		return false
	}
	h.mu.Lock()
	h.attempts++
	h.mu.Unlock()
	showing, err := box.Show(ctx, lease, run, nil)
	if err != nil {
		h.Error(err)
		return false
	}
	text, err := h.answer(ctx, run, showing)
	showing.Stop()
	if ctx.Err() != nil {
		return false
	}
	posts := showing.Format(text, nil)
	switch {
	case errors.Is(err, errFailed):
		at := time.Now().Add(time.Second)
		err = j.RetryRun(ctx, lease, run, at, err)
		desk.WakeAt(journal.Turns, "helper", at)
	case errors.Is(err, errHopeless):
		notice, _ := box.Notice(run, "Sorry.")
		err = j.FailRun(ctx, lease, run, err, notice, nil)
		box.Posted(lease.Thread, nil)
	case errors.Is(err, errInterrupted):
		err = j.InterruptRun(ctx, lease, run)
		box.Posted(lease.Thread, nil)
	default:
		reply := journal.Reply{Content: text, Posts: posts, Stale: "send", Send: box.Bounds("acme"),
			Metadata: func(string, time.Duration) ([]byte, error) { return []byte("{}"), nil }}
		var ended journal.Ended
		if ended, err = j.CommitReply(ctx, lease, run, reply); err == nil {
			box.Posted(lease.Thread, ended.Begun)
		}
	}
	return err == nil
}

// ask records a question in a thread.
func (h *house) ask(thread string) {
	h.Helper()
	h.serial++
	id := fmt.Sprint("question", h.serial)
	custody, err := h.journal.Accept(h.Context(), journal.Acceptance{
		Envelope: event.Envelope{Workspace: "acme", Platform: event.Slack},
		Keys:     event.Keys{Kind: event.KindMessage, Dedupe: id, Thread: event.ThreadKey(thread), Channel: event.Channel{ID: "C1"}},
	})
	if err != nil {
		h.Fatal(err)
	}
	served, stop := context.WithCancel(h.Context())
	var intake sync.WaitGroup
	intake.Go(func() {
		_ = h.desk.Serve(served, journal.Lane{Work: journal.Intake, Slots: 1}, func(_ context.Context, lease *journal.Lease) {
			_, err := h.journal.Record(h.Context(), lease, journal.Entry{
				Envelope: custody.ID, Workspace: "acme", Agent: "helper",
				Event: event.Event{Kind: event.KindMessage, Message: &event.Message{
					ExternalID: id, Content: "?", Metadata: event.Metadata{SenderID: "slack:U1", SenderType: event.Human}}},
				Decide: func(*event.Message, journal.Look) (journal.Decision, error) {
					return journal.Decision{Trigger: journal.TriggerRun, Metadata: []byte("{}")}, nil
				},
			})
			if err != nil {
				h.Error(err)
			}
		})
	})
	h.desk.Wake(journal.Intake, "", custody.Thread)
	synctest.Wait()
	stop()
	intake.Wait()
	h.desk.Wake(journal.Turns, "helper", custody.Thread)
}

// settles waits until a reply is on the board, and nothing else.
func (h *house) settles(want ...string) {
	h.Helper()
	pass(3 * time.Minute)
	synctest.Wait()
	texts, wrong := h.board.stands()
	if diff := cmp.Diff(want, texts); diff != "" {
		h.Errorf("on the board:\n%s\ncalls:\n%s", diff, strings.Join(h.board.did(""), "\n"))
	}
	if len(wrong) > 0 {
		h.Errorf("left: %q\ncalls:\n%s", wrong, strings.Join(h.board.did(""), "\n"))
	}
}

// says lets an answer grow by so much every so often.
func says(every time.Duration, chunks ...string) func(context.Context, *journal.Run, turn.Showing) (string, error) {
	return func(ctx context.Context, _ *journal.Run, s turn.Showing) (string, error) {
		for _, chunk := range chunks {
			s.Grow(chunk)
			select {
			case <-ctx.Done():
				return "", ctx.Err()
			case <-time.After(every):
			}
		}
		return strings.Join(chunks, ""), nil
	}
}

// TestAnAnswerIsShownWhileItGrows, and its end ends the stream: one post, no text twice.
func TestAnAnswerIsShownWhileItGrows(t *testing.T) {
	inHouse(t, func(h *house) {
		h.answer = says(2*time.Second, "one ", "two ", "three")
		h.ask("t")
		h.settles("one two three")
		want := []string{"begin one", "sign", "append two", "append three", "end", "unsign"}
		if diff := cmp.Diff(want, h.board.did("")); diff != "" {
			t.Error(diff)
		}
	})
}

// TestWithoutStreamsThePostIsEdited: where the platform has none, and where that is
// what is configured.
func TestWithoutStreamsThePostIsEdited(t *testing.T) {
	for name, set := range map[string]func(*house){
		"refused":    func(h *house) { h.board.faults["begin"] = []fault{permanent} },
		"configured": func(h *house) { h.platform.Limits.Preview = adapters.PreviewEdit },
	} {
		t.Run(name, func(t *testing.T) {
			inHouse(t, func(h *house) {
				set(h)
				h.answer = says(2*time.Second, "one ", "two ", "three")
				h.ask("t")
				h.settles("one two three")
				if diff := cmp.Diff([]string{"send one"}, h.board.did("send")); diff != "" {
					t.Error(diff)
				}
				if diff := cmp.Diff([]string{"edit one two", "edit one two three"}, h.board.did("edit")); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// TestNothingIsShown of an answer that comes whole, and where that is configured.
func TestNothingIsShown(t *testing.T) {
	for name, set := range map[string]func(*house){
		"whole": func(h *house) {
			h.answer = func(context.Context, *journal.Run, turn.Showing) (string, error) { return "at once", nil }
		},
		"off": func(h *house) {
			h.platform.Limits.Preview, h.platform.Limits.Sign = adapters.PreviewOff, false
			h.answer = says(2*time.Second, "at ", "once")
		},
	} {
		t.Run(name, func(t *testing.T) {
			inHouse(t, func(h *house) {
				set(h)
				h.ask("t")
				h.settles("at once")
				if diff := cmp.Diff([]string{"send at once"}, h.board.did("")); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// TestTheFinalTextWins over what was shown.
func TestTheFinalTextWins(t *testing.T) {
	inHouse(t, func(h *house) {
		h.answer = func(ctx context.Context, run *journal.Run, s turn.Showing) (string, error) {
			_, err := says(2*time.Second, strings.Repeat("a draft\n", 20), "that is ", "dropped")(ctx, run, s)
			return "the answer", err
		}
		h.ask("t")
		h.settles("the answer")
	})
}

// TestALongAnswer goes on in a further post.
func TestALongAnswer(t *testing.T) {
	inHouse(t, func(h *house) {
		var lines []string
		for i := range 40 {
			lines = append(lines, fmt.Sprintf("line %d\n", i))
		}
		h.answer = says(time.Second, lines...)
		h.ask("t")
		whole := strings.Join(lines, "")
		h.settles(h.board.Format(whole, nil)...)
		if edits := h.board.did("edit"); len(edits) > 0 {
			t.Errorf("what stood there was stated again: %q", edits)
		}
	})
}

// TestAnOldStreamIsEndedBeforeThePlatformDoes: at a line's end where there is one in
// time, and the text goes on in another one.
func TestAnOldStreamIsEndedBeforeThePlatformDoes(t *testing.T) {
	inHouse(t, func(h *house) {
		h.board.closes, h.board.limit = 300*time.Second, 10_000
		chunks := []string{"begin "}
		for i := range 50 {
			chunks = append(chunks, fmt.Sprintf("%d ", i), "\n")
		}
		h.answer = says(10*time.Second, chunks...)
		h.ask("t")
		pass(18 * time.Minute)
		texts, _ := h.board.stands()
		h.settles(texts...)
		if got := strings.Join(texts, ""); got != strings.Join(chunks, "") || len(texts) != 4 {
			t.Errorf("%d posts: %q", len(texts), texts)
		}
		if edits := h.board.did("edit"); len(edits) > 0 || !strings.HasSuffix(texts[0], "\n") {
			t.Errorf("edits %q, the first post is %q", edits, texts[0])
		}
	})
}

// TestWhereEditsAreRefused the text is posted anew, and the preview is taken away.
func TestWhereEditsAreRefused(t *testing.T) {
	inHouse(t, func(h *house) {
		h.board.chance = func(does string) fault {
			if does == "edit" {
				return permanent
			}
			return none
		}
		h.board.faults["append"] = []fault{lost}
		h.answer = says(2*time.Second, strings.Repeat("line of it\n", 15), "two ", "three")
		h.ask("t")
		h.settles(h.board.Format(strings.Repeat("line of it\n", 15)+"two three", nil)...)
	})
}

// TestARunWithoutAnAnswerLeavesNothing of what it has shown.
func TestARunWithoutAnAnswerLeavesNothing(t *testing.T) {
	for _, end := range []error{errHopeless, errInterrupted, errFailed} {
		t.Run(end.Error(), func(t *testing.T) {
			inHouse(t, func(h *house) {
				first := true
				h.answer = func(ctx context.Context, run *journal.Run, s turn.Showing) (string, error) {
					if first {
						first = false
						_, _ = says(2*time.Second, "a beginning ", "of it")(ctx, run, s)
						return "", end
					}
					return says(2*time.Second, "the ", "answer")(ctx, run, s)
				}
				h.ask("t")
				if errors.Is(end, errHopeless) {
					h.settles()
					if diff := cmp.Diff([]string{"U1: Sorry."}, h.board.told); diff != "" {
						t.Error(diff)
					}
					return
				}
				h.settles("the answer")
			})
		})
	}
}

// TestARetryTakesOverThePost of the attempt before.
func TestARetryTakesOverThePost(t *testing.T) {
	inHouse(t, func(h *house) {
		h.answer = func(ctx context.Context, run *journal.Run, s turn.Showing) (string, error) {
			if run.Attempts == 0 {
				_, _ = says(2*time.Second, "a beginning ", "of it")(ctx, run, s)
				return "", errFailed
			}
			return says(20*time.Second, "the ", "answer")(ctx, run, s)
		}
		h.ask("t")
		h.settles("the answer")
		if n := len(h.board.did("begin")) + len(h.board.did("send")); n != 1 {
			t.Errorf("%d posts were made: %q", n, h.board.did(""))
		}
	})
}

// TestFinalsGoFirst: what grows gives way to what is whole, in one pace for both.
func TestFinalsGoFirst(t *testing.T) {
	inHouse(t, func(h *house) {
		h.platform.Limits.PostRate, h.platform.Limits.Sign = 0.1, false // a post every 10 s
		h.answer = func(ctx context.Context, run *journal.Run, s turn.Showing) (string, error) {
			if run.ThreadKey == "slow" {
				return says(time.Second, strings.Split(strings.Repeat("word ", 60), "")...)(ctx, run, s)
			}
			return "whole in " + string(run.ThreadKey), nil
		}
		h.ask("slow")
		pass(time.Second)
		for i := range 5 {
			h.ask(fmt.Sprint("t", i))
		}
		pass(62 * time.Second)
		texts, _ := h.board.stands()
		if len(texts) != 6 {
			t.Errorf("a minute later there are %q\n%s", texts, strings.Join(h.board.did(""), "\n"))
		}
	})
}

// TestAnyTroubleEndsInTheAnswer: whatever fails, and whenever the process is killed,
// the board shows the last attempt's answer and nothing else.
func TestAnyTroubleEndsInTheAnswer(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			inHouse(t, func(h *house) { h.trouble(rand.New(rand.NewPCG(seed, 7))) })
		})
	}
}

func (h *house) trouble(random *rand.Rand) {
	var mu sync.Mutex // of random
	h.board.closes = []time.Duration{0, 30 * time.Second}[random.IntN(2)]
	h.platform.Limits.StreamAge = []time.Duration{0, 40 * time.Second, 25 * time.Second}[random.IntN(3)]
	h.platform.Limits.PostRate = []float64{0, 1}[random.IntN(2)]
	if random.IntN(3) == 0 {
		h.platform.Limits.Preview = adapters.PreviewEdit
	}
	refuses := random.IntN(8) == 0
	troubled := true
	h.board.chance = func(does string) fault {
		mu.Lock()
		defer mu.Unlock()
		if refuses && does == "edit" {
			return permanent
		}
		if !troubled || random.IntN(4) > 0 {
			return none
		}
		faults := []fault{lost, arrived, {failure: adapters.Unclear, effect: 4 * time.Second}, notSent,
			{failure: adapters.RateLimited, after: 2 * time.Second}, {failure: none.failure, takes: 3 * time.Second}}
		return faults[random.IntN(len(faults))]
	}
	var answer string
	h.answer = func(ctx context.Context, run *journal.Run, s turn.Showing) (string, error) {
		mu.Lock()
		var chunks []string
		for range random.IntN(30) {
			chunks = append(chunks, fmt.Sprintf("%d%s", random.IntN(1000), []string{" ", "\n", " and more "}[random.IntN(3)]))
		}
		chunks = append(chunks, "end")
		every := time.Duration(random.IntN(3000)) * time.Millisecond
		fails := random.IntN(5) == 0 && troubled
		mu.Unlock()
		text, err := says(every, chunks...)(ctx, run, s)
		if fails && err == nil {
			err = errFailed
		}
		if err == nil {
			answer = text
		}
		return text, err
	}
	h.ask("t")
	for range random.IntN(4) {
		pass(time.Duration(random.IntN(40_000)) * time.Millisecond)
		h.kill()
		h.start()
	}
	pass(time.Minute)
	mu.Lock()
	troubled = false
	mu.Unlock()
	pass(20 * time.Minute)
	texts, _ := h.board.stands()
	if got := strings.Join(texts, ""); got != answer || answer == "" {
		h.Errorf("on the board:\n%q\nthe answer:\n%q\ncalls:\n%s", texts, answer, strings.Join(h.board.did(""), "\n"))
	}
	h.settles(texts...)
}

// TestALateChangeIsAwaited before the final text is stated: else it would stand over it.
func TestALateChangeIsAwaited(t *testing.T) {
	inHouse(t, func(h *house) {
		h.platform.Limits.Preview = adapters.PreviewEdit
		h.board.faults["edit"] = []fault{{failure: adapters.Unclear, effect: 12 * time.Second}}
		h.answer = says(2*time.Second, "one ", "two ", "three")
		h.ask("t")
		h.settles("one two three")
	})
}

// TestALateStreamIsFound, though it has no key: no delivery knows it.
func TestALateStreamIsFound(t *testing.T) {
	inHouse(t, func(h *house) {
		h.board.faults["begin"] = []fault{{failure: adapters.Unclear, effect: 8 * time.Second}}
		h.answer = says(2*time.Second, "one ", "two ", "three")
		h.ask("t")
		h.settles("one two three")
		if n := len(h.board.did("begin")) + len(h.board.did("send")); n != 1 {
			t.Errorf("%d posts were made: %q", n, h.board.did(""))
		}
	})
}

// TestAKilledProcessIsFollowed: what it has shown is taken over by the next one, which
// waits for what may still be on its way.
func TestAKilledProcessIsFollowed(t *testing.T) {
	for _, preview := range []adapters.Preview{adapters.PreviewStream, adapters.PreviewEdit} {
		t.Run(string(preview), func(t *testing.T) {
			inHouse(t, func(h *house) {
				h.platform.Limits.Preview = preview
				late := fault{failure: adapters.Unclear, effect: 12 * time.Second}
				h.board.faults["append"], h.board.faults["edit"] = []fault{late}, []fault{late}
				h.answer = says(2*time.Second, "a draft ", "of it, ", "and more")
				h.ask("t")
				pass(2500 * time.Millisecond)
				h.kill()
				h.answer = says(time.Second, "the ", "answer")
				h.start()
				h.settles("the answer")
				if n := len(h.board.did("begin")) + len(h.board.did("send")); n != 1 {
					t.Errorf("%d posts were made: %q", n, h.board.did(""))
				}
			})
		})
	}
}
