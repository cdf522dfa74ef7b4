package deliver_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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
	thread   string
	nodes    int
	serial   int
	stale    string        // what becomes of a stale reply
	behind   time.Duration // of the store's clock behind this node's
	looks    func()        // called where the outbox looks for the platform; nil for nothing
	box      *deliver.Outbox

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
		h := &house{T: t, board: newBoard(), path: filepath.Join(t.TempDir(), "journal.db"), thread: "t", stale: "send"}
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
	now := func() time.Time { return time.Now().Add(-h.behind) }
	j := journal.New(engine, journal.Options{Node: fmt.Sprint("node", h.nodes), Now: now})
	h.journal, h.desk = j, journal.NewDesk(j, log)
	desk := h.desk
	box := deliver.New(deliver.Parts{
		Journal: j, Desk: desk, Observer: h, Log: log, Now: now,
		Platform: func(string) (deliver.Platform, bool) {
			if h.looks != nil {
				h.looks()
			}
			return h.platform, true
		},
	})
	h.box = box
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
		reply := journal.Reply{Content: text, Posts: posts, Stale: h.stale, Send: box.Bounds("acme"),
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
			if err != nil && !errors.Is(err, journal.ErrSettled) { // it was woken, too
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
