package ingest

import (
	"context"
	"encoding/json"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/ingest/event"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/record"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/storage"
)

// format notes that an adapter formats a text. Every commit of the store would wait for that inside a transaction.
func (h *harness) format(text string) string {
	callers := make([]uintptr, 100)
	frames := runtime.CallersFrames(callers[:runtime.Callers(1, callers)])
	for frame, more := frames.Next(); more; frame, more = frames.Next() {
		if strings.HasPrefix(frame.Function, "parley/ingest/journal/storage.") {
			h.Errorf("%q is formatted inside a transaction, by %s", text, frame.Function)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.formatted = append(h.formatted, text)
	return text
}

// Notice implements Notifier.
func (h *harness) Notice(run *runs.Run, text string) []outbox.Post {
	if h.mute.Load() {
		return nil // the platform's adapter is broken
	}
	post := outbox.Post{Channel: "C1", Place: "t", Text: h.format(text)}
	if n := len(run.Messages); n > 0 {
		post.Asker, post.Alone = run.Messages[n-1].SenderID, true
	}
	return []outbox.Post{post}
}

// Announce implements Notifier.
func (h *harness) Announce(_ *runs.Run, m *event.Message) []outbox.Post {
	return []outbox.Post{{Channel: "C1", Place: "t", Text: h.format(m.Metadata.SenderDisplayName + ": " + m.Content)}}
}

// Clear implements Notifier.
func (h *harness) Clear(run *runs.Run) []outbox.Post {
	return []outbox.Post{{Channel: "C1", Text: h.format(run.Messages[0].ExternalID), Clears: true}}
}

// Above implements Notifier.
func (h *harness) Above(context.Context, string, string) (event.ThreadKey, error) { return "", nil }

// injected returns the envelope of a message that a program injects in the thread t.
func (h *harness) injected(id string, m event.Injected) event.Envelope {
	h.Helper()
	m.ID, m.Thread, m.Channel, m.Mentioned = event.InjectedID("acme/a", id), "slack:acme:t", "C1", true
	metadata := event.Metadata{Source: "crm", SenderID: "crm:nora", SenderDisplayName: "Nora", SenderType: event.Human, ChannelExternalID: "C1"}
	m.Metadata = string(metadata.Bytes())
	body, err := json.Marshal(m)
	if err != nil {
		h.Fatal(err)
	}
	return event.Envelope{Workspace: "acme", Platform: event.Slack, Transport: event.ByProgram, ReceivedAt: time.Now(), Body: body}
}

// TestNoTransactionWaitsForAFormat: what Parley says about a message is formatted once, outside the transaction that stores it with
// the message. Nothing is formatted for other messages.
func TestNoTransactionWaitsForAFormat(t *testing.T) {
	inBubble(t, func(h *harness) {
		h.settings.Prefix = "/"
		h.settings.Limits.RunsPerUser = Rate{Runs: 1, Per: time.Hour}
		h.work()
		says := func(id, text string) func() record.Result {
			return func() record.Result { return h.send(payload{ID: id, Text: text, Mention: true}) }
		}
		injects := func(id string, announced bool) func() record.Result {
			return func() record.Result {
				receipt, err := h.Accept(h.Context(), h.injected(id, event.Injected{Content: "it rains", Announce: announced}))
				if err != nil {
					h.Fatal(err)
				}
				return h.result(receipt.ID)
			}
		}
		for _, c := range []struct {
			name      string
			record    func() record.Result
			formatted []string // and posted
		}{
			{"a question", says("a", "hi"), nil},
			{"a command", says("b", "/status"), []string{"helper has nothing to do here. One message waits for an answer.\nThe next question gets no answer: " + spentText(time.Time{})}},
			{"a stop of a message that waits", says("c", "/stop"), []string{"Stopped.", "c"}},
			{"a question over the limit", says("d", "hi"), []string{limitText}},
			{"another one", says("e", "hi"), nil},
			{"an announced message", injects("f", true), []string{"Nora: it rains"}},
			{"a message that is not announced", injects("g", false), nil},
		} {
			before := h.posts()
			h.formatted = nil
			out := c.record()
			if diff := cmp.Diff(c.formatted, h.formatted); diff != "" || out.Told != (c.formatted != nil) {
				t.Errorf("%s: %+v, told %v, formatted (-want +got):\n%s", c.name, out.Result, out.Told, diff)
			}
			if n := h.posts() - before; n != len(c.formatted) {
				t.Errorf("%s: %d posts are stored", c.name, n)
			}
		}
	})
}

// posts counts the stored posts.
func (h *harness) posts() (n int) {
	h.Helper()
	var count int64
	if err := h.engine.Engine.ReadOne(h.Context(), func(tx storage.Tx) error {
		_, err := tx.Row([]any{&count}, `SELECT count(*) FROM deliveries`)
		return err
	}); err != nil {
		h.Fatal(err)
	}
	return int(count)
}

// TestPrivateNotices: a notice that nobody else may read has no post for the room.
func TestPrivateNotices(t *testing.T) {
	inBubble(t, func(h *harness) {
		w := h.Ingest.workspace(event.Slack, "acme")
		for sender, want := range map[string]int{"slack:U1": 1, "": 0} { // without a sender, the stub's posts are for the room
			n := h.told(w.at("slack:acme:t", "m", sender), defaultGate(), record.Tell{Text: goneText, Private: true})
			if len(n.Posts) != want || n.Text != goneText {
				t.Errorf("to %q: %+v", sender, n)
			}
		}
	})
}

// TestAPausedMessageIsNotAnnounced: no agent will answer what people would see.
func TestAPausedMessageIsNotAnnounced(t *testing.T) {
	inBubble(t, func(h *harness) {
		h.Pauses = NewPauses(h.journal.Threads, time.Now)
		if err := h.Pauses.Begin(h.Context(), Pause{Scope: "acme"}); err != nil {
			t.Fatal(err)
		}
		h.work()
		receipt, err := h.Accept(h.Context(), h.injected("a", event.Injected{Content: "it rains", Announce: true}))
		if err != nil {
			t.Fatal(err)
		}
		if out := h.result(receipt.ID); out.Reason != event.ReasonPaused || h.posts() != 0 {
			t.Errorf("%+v, %d posts", out.Result, h.posts())
		}
	})
}
