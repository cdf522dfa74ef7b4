package deliver_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
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
	"parley/ingest/journal/envelopes"
	"parley/ingest/journal/journaltest"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/record"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/sqlite"
	"parley/ingest/journal/storage"
	"parley/ingest/stream"
	"parley/ingest/trace"
	"parley/ingest/work"
)

// harness is an outbox on a board, with turns that show their answers there.
type harness struct {
	*testing.T
	board    *board
	platform deliver.Platform
	path     string
	thread   string
	nodes    int
	serial   int
	stale    string                     // the policy for a stale reply
	shows    func(messages string) bool // in state posts; nil for all
	behind   time.Duration              // how far the store's clock is behind this node's
	box      *deliver.Outbox

	engine    storage.Engine
	journal   *journal.Journal
	scheduler *work.Scheduler
	kill      func()       // kills the process
	show      func(func()) // starts a goroutine of a preview
	unread    error        // of a run's input; nil for none
	answer    func(ctx context.Context, run *runs.Run, s turn.LivePreview) (string, error)

	mu       sync.Mutex
	written  func() // called after each write of the store; nil for none
	attempts int
	observed []string                 // the kinds of the deliveries that have ended, and their states
	answered []time.Time              // when the questions of the answered runs were accepted
	entries  map[int64][]record.Entry // entries for the intake, by thread
}

// The errors of an answer.
var (
	errFailed      = errors.New("failed, retry")
	errHopeless    = errors.New("failed for good")
	errInterrupted = errors.New("interrupted by a newer message")
)

// withHarness runs a test in a bubble, on a board with streams.
func withHarness(t *testing.T, test func(h *harness)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := &harness{T: t, board: newBoard(), path: filepath.Join(journaltest.Dir(t), "journal.db"), thread: "t", stale: "send", entries: map[int64][]record.Entry{}}
		h.platform = deliver.Platform{Sender: h.board, Unknown: func(*outbox.Delivery) string { return "resend" }, Limits: adapters.Limits{
			Timeout: 10 * time.Second, Preview: adapters.PreviewStream, PreviewEvery: 1200 * time.Millisecond, Sign: true,
		}}
		h.start()
		test(h)
		h.kill()
		h.board.effects.Wait()
	})
}

// start starts a process on the harness's store.
func (h *harness) start() {
	h.Helper()
	store, err := sqlite.Open(h.Context(), h.path, sqlite.Options{})
	if err != nil {
		h.Fatal(err)
	}
	engine := observedEngine{store, h}
	h.engine = engine
	h.nodes++
	node, log := fmt.Sprint("node", h.nodes), slog.New(slog.DiscardHandler)
	now := func() time.Time { return time.Now().Add(-h.behind) }
	j := journal.New(engine, journal.Options{Node: node, Now: now, Shows: func(_, _, messages string) bool { return h.shows == nil || h.shows(messages) }})
	scheduler := work.New(engine, work.Options{Node: node, Now: now, Log: log})
	h.journal, h.scheduler = j, scheduler
	box := deliver.New(deliver.Parts{
		Deliveries: j.Outbox, Records: j.Recorder, Runs: j.Runs, Threads: j.Threads, Work: scheduler, Observer: h, Log: log, Now: now,
		Platform: func(string) (deliver.Platform, bool) { return h.platform, true },
	})
	h.box = box
	ctx, cancel := context.WithCancel(h.Context())
	var working sync.WaitGroup
	h.show = working.Go
	if err := scheduler.AdjustClock(ctx); err != nil {
		h.Fatal(err)
	}
	working.Go(func() { _ = scheduler.Run(ctx) })
	working.Go(func() { _ = box.Run(ctx, ctx) })
	working.Go(func() { _ = scheduler.Serve(ctx, work.Queue{Kind: work.Intake, Slots: 4, Do: h.intake}) })
	working.Go(func() {
		_ = scheduler.Serve(ctx, work.Queue{Kind: work.Turns, Agent: "helper", Slots: 4, Do: func(ctx context.Context, c *work.Claim) error {
			for ctx.Err() == nil {
				if more, err := h.turn(ctx, j, scheduler, box, c); err != nil || !more {
					return err
				}
			}
			return nil
		}})
	})
	h.kill = sync.OnceFunc(func() {
		_ = engine.Close() // nothing is written from now on
		cancel()
		working.Wait()
	})
}

// observedEngine is a store that calls the harness after each write, before the write returns.
type observedEngine struct {
	storage.Engine
	*harness
}

func (e observedEngine) Write(ctx context.Context, options storage.WriteOptions, fn func(tx storage.Tx) error) error {
	err := e.Engine.Write(ctx, options, fn)
	e.mu.Lock()
	written := e.written
	e.mu.Unlock()
	if written != nil {
		written()
	}
	return err
}

// Sending implements deliver.Observer.
func (h *harness) Sending(ctx context.Context, d *outbox.Delivery) context.Context {
	return trace.With(ctx, trace.Place{Trace: [16]byte{1}}.At(d.Key))
}

// Delivery implements deliver.Observer.
func (h *harness) Delivery(d *outbox.Delivery, state outbox.State) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.observed = append(h.observed, string(d.Kind)+" "+string(state))
}

// Answered implements deliver.Observer.
func (h *harness) Answered(_ string, asked time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answered = append(h.answered, asked)
}

// turn works on a turn like a turn.Runner.
func (h *harness) turn(ctx context.Context, j *journal.Journal, scheduler *work.Scheduler, box *deliver.Outbox, c *work.Claim) (bool, error) {
	run, err := j.Runs.BeginRun(ctx, &c.Claim, "helper", false, func(*runs.Run) bool { return false }, math.MaxInt64)
	if err != nil || run == nil {
		return false, err
	}
	h.mu.Lock()
	h.attempts++
	h.mu.Unlock()
	box.Expect(ctx, c, run)
	if h.unread != nil { // its input cannot be assembled
		_, err := j.Runs.EndAttempt(ctx, &c.Claim, run, runs.Unanswered{State: runs.Failed, Notice: outbox.Notice{Text: "Sorry.", Posts: box.Notice(run, "Sorry.")}, Cause: h.unread.Error()})
		box.Posted(c, nil)
		return true, err
	}
	preview, err := box.Show(ctx, c, run, turn.Mentions{}, h.show)
	if err != nil {
		h.Error(err)
		return false, err
	}
	text, err := h.answer(ctx, run, preview)
	preview.Stop()
	if ctx.Err() != nil {
		return false, nil
	}
	posts, send := preview.Format(text, stream.Ask{}, nil, nil)
	switch {
	case errors.Is(err, errFailed):
		at := time.Now().Add(time.Second)
		scheduler.WakeAt(work.Turns, "helper", at)
		_, err = j.Runs.EndAttempt(ctx, &c.Claim, run, runs.Unanswered{At: at, Failed: true})
	case errors.Is(err, errHopeless):
		notice := box.Notice(run, "Sorry.")
		_, err = j.Runs.EndAttempt(ctx, &c.Claim, run, runs.Unanswered{
			State: runs.Failed, Cause: err.Error(), Notice: outbox.Notice{Text: "Sorry.", Posts: notice},
		})
		box.Posted(c, nil)
	case errors.Is(err, errInterrupted):
		_, err = j.Runs.EndAttempt(ctx, &c.Claim, run, runs.Unanswered{State: runs.Interrupted})
		box.Posted(c, nil)
	default:
		var ended runs.EndResult
		if ended, err = j.Runs.CommitReply(ctx, &c.Claim, run, runs.Reply{Content: text, Posts: posts, Stale: h.stale, Send: send,
			Metadata: func(string, time.Duration) []byte { return []byte("{}") }}); err == nil {
			box.Posted(c, ended.Begun)
		}
	}
	return true, err
}

// intake records the thread's questions.
func (h *harness) intake(ctx context.Context, c *work.Claim) error {
	h.mu.Lock()
	entries := h.entries[c.Thread]
	delete(h.entries, c.Thread)
	h.mu.Unlock()
	for _, entry := range entries {
		if _, err := h.journal.Recorder.Record(ctx, &c.Claim, entry); err != nil {
			h.Error(err)
		}
	}
	return nil
}

// ask records a question in a thread.
func (h *harness) ask(thread string) {
	h.Helper()
	h.serial++
	id := fmt.Sprint("question", h.serial)
	accepted, err := h.journal.Envelopes.Accept(h.Context(), envelopes.AcceptRequest{
		Envelope: event.Envelope{Workspace: "acme", Platform: event.Slack},
		Keys:     event.Keys{Kind: event.KindMessage, Dedupe: id, Thread: event.ThreadKey(thread), Channel: event.Channel{ID: "C1"}},
	})
	if err != nil {
		h.Fatal(err)
	}
	h.mu.Lock()
	h.entries[accepted.Thread] = append(h.entries[accepted.Thread], record.Entry{
		Envelope: accepted.ID, Workspace: "acme", Agent: "helper",
		Event: event.Event{Kind: event.KindMessage, Message: &event.Message{
			ExternalID: id, Content: "?", Metadata: event.Metadata{SenderID: "slack:U1", SenderType: event.Human}}},
		Decide: func(*event.Message, record.Look) record.Decision {
			return record.Decision{Trigger: messages.TriggerRun, Metadata: []byte("{}")}
		},
	})
	h.mu.Unlock()
	h.scheduler.Wake(work.Intake, "", accepted.Thread)
	synctest.Wait()
	h.scheduler.Wake(work.Turns, "helper", accepted.Thread)
}

// steal ends the claim of a thread, like another node.
func (h *harness) steal(thread int64) error {
	return h.engine.Write(h.Context(), storage.WriteOptions{}, func(tx storage.Tx) error {
		_, err := tx.Exec(`UPDATE threads SET fence = fence + 1 WHERE id = $1`, thread)
		return err
	})
}

// settles waits, and checks that the board shows these posts and nothing else.
func (h *harness) settles(want ...string) {
	h.Helper()
	advance(3 * time.Minute)
	synctest.Wait()
	texts, wrong := h.board.stands()
	if diff := cmp.Diff(want, texts); diff != "" {
		h.Errorf("posts (-want +got):\n%s\ncalls:\n%s", diff, strings.Join(h.board.did(""), "\n"))
	}
	if len(wrong) > 0 {
		h.Errorf("leftovers: %q\ncalls:\n%s", wrong, strings.Join(h.board.did(""), "\n"))
	}
}

// says returns an answer that grows by one chunk at a time.
func says(every time.Duration, chunks ...string) func(context.Context, *runs.Run, turn.LivePreview) (string, error) {
	return func(ctx context.Context, _ *runs.Run, s turn.LivePreview) (string, error) {
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
