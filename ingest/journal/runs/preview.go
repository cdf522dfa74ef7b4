package runs

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"

	"parley/ingest/journal/outbox"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
	"parley/ingest/journal/workstreams"
	"parley/ingest/stream"
)

// BeginPreview marks a preview of an unfinished run as sending, if no delivery of its thread is
// open and its channel's pace has room for it now. Otherwise it returns nil and the time of the
// next attempt. at is the number of the run's previews before this one. If an earlier attempt of
// the run, or a call with an unclear outcome, has made it, BeginPreview returns that one with its
// PlatformID: the text of its post is unknown. BeginPreview fails with ErrFenced if the run is no
// longer the thread's.
func (r *Runs) BeginPreview(ctx context.Context, claim *threads.Claim, run *Run, at int64, post outbox.Post, stream bool, send outbox.Send) (*outbox.Delivery, time.Time, error) {
	type result struct {
		begun *outbox.Delivery
		again time.Time
	}
	made, err := storage.Write(ctx, r.db, storage.WriteOptions{Thread: claim.Key}, func(tx *storage.Txn) result {
		now := r.db.Now()
		switch earlier := earlierPreview(tx, run, at); {
		case earlier != nil && earlier.PlatformID == "":
			return result{again: now.Add(unclearFor)}
		case earlier != nil:
			earlier.Workspace, earlier.Post.Asker = run.Workspace, post.Asker
			return result{begun: earlier}
		}
		if again := admitPreview(tx, claim, run, post.Channel, storage.Millis(now), send); !again.IsZero() {
			return result{again: again}
		}
		d := run.delivery(outbox.KindPreview, post, now)
		// run.Previews does not count a preview that a call with an unclear outcome has made.
		d.Key, d.Stream = outbox.Key(uuid.Must(uuid.NewV7()).String(), outbox.NoPart), stream
		d.State, d.Attempts, d.SendBy = outbox.Sending, 1, now.Add(send.Timeout)
		outbox.Add(tx, d, outbox.NoPart, false) // due at SendBy, unless its result is recorded before
		return result{begun: d}
	})
	if made.begun != nil && made.begun.PlatformID == "" {
		run.Previews++
	}
	return made.begun, made.again, err
}

// earlierPreview returns the run's preview with a number of previews before it; nil for none.
func earlierPreview(tx *storage.Txn, run *Run, at int64) *outbox.Delivery {
	if run.Previews > at {
		if list := outbox.Previews(tx, run.ID); int64(len(list)) > at {
			return &list[at]
		}
	}
	return nil
}

// busyFor is how long a preview waits for open deliveries of its thread.
const busyFor = 250 * time.Millisecond

// unclearFor is how long a preview waits while the outbox asks the platform whether an earlier
// call for it took effect.
const unclearFor = 2 * time.Second

// admitPreview returns the time of the next attempt; zero if the preview may be shown
// now.
func admitPreview(tx *storage.Txn, claim *threads.Claim, run *Run, channel string, now int64, send outbox.Send) time.Time {
	lockRun(tx, claim, run, []any{new(int64)}, `id`)
	if outbox.IsOpen(tx, run.Thread) {
		return storage.Instant(now).Add(busyFor)
	}
	return outbox.Spare(tx, run.Workspace, channel, now, send.Every)
}

// ChangePreview marks the post of a preview as changing, if its channel's pace has room
// for that now. Otherwise it returns the time of the next attempt.
func (r *Runs) ChangePreview(ctx context.Context, claim *threads.Claim, run *Run, d *outbox.Delivery, send outbox.Send) (outbox.Slot, error) {
	return storage.Write(ctx, r.db, storage.WriteOptions{Thread: claim.Key}, func(tx *storage.Txn) outbox.Slot {
		now := r.db.Now()
		if again := admitPreview(tx, claim, run, d.Post.Channel, storage.Millis(now), send); !again.IsZero() {
			return outbox.Slot{Wait: again}
		}
		sendBy := now.Add(send.Timeout)
		outbox.MarkChanging(tx, d, sendBy)
		return outbox.Slot{SendBy: sendBy}
	})
}

// MarkSigned notes, before the call that shows it, that a message has the sign of work
// for the duration of the run: a held delivery will remove the sign when the run ends.
// The text of sign is the external id of the message; empty if no message shows the sign.
func (r *Runs) MarkSigned(ctx context.Context, claim *threads.Claim, run *Run, sign outbox.Post, timeout time.Duration) error {
	err := r.db.Change(ctx, claim.Key, func(tx *storage.Txn) {
		lockRun(tx, claim, run, []any{new(int64)}, `id`)
		outbox.HoldUnsign(tx, run.Thread, run.ID, run.Workspace, sign, r.db.Now(), timeout)
	})
	if err == nil || errors.Is(err, storage.ErrUnclear) { // the run's end must not leave the row
		run.Signed, run.Sign = true, sign.Text
	}
	return err
}

// stating are the types of the messages that a state post shows.
var stating = []stream.Type{stream.Plan, stream.BatchProgress, stream.Warning, stream.Error, stream.System}

// IsStated reports whether a state post shows messages of a type.
func IsStated(t stream.Type) bool { return slices.Contains(stating, t) }

// states reports whether a run may have a state post: those of most runs do not, and their end costs nothing more.
func (r *Runs) states(run *Run) bool {
	return r.db.Shows != nil && (r.db.Shows(run.Workspace, run.Agent, "plan") || r.db.Shows(run.Workspace, run.Agent, "workstream"))
}

// maxNotes bounds the warnings, errors and system messages that a state post shows.
const maxNotes = 5

// Stated has the parts of a run that its state post shows.
type Stated struct {
	Agent string
	// State is the state of the run, which is empty while the run goes on.
	State State
	Error string
	// Plan and Batch are the newest messages of these types; nil for none.
	Plan, Batch *stream.Message
	Notes       []stream.Message // warnings, errors and system messages, the oldest first
	Children    []workstreams.Workstream
	// Answers is the external id of the last message that the run answers and that the platform knows; empty for none.
	Answers string
}

// StateOf returns what a state post shows of a run. It fails with ErrNotFound if there is no such run any more.
func (r *Runs) StateOf(ctx context.Context, run string) (*Stated, error) {
	return storage.Read(ctx, r.db, func(tx *storage.Txn) *Stated {
		s := &Stated{}
		if !tx.Row([]any{&s.Agent, (*string)(&s.State), &s.Error}, `SELECT agent, '', '' FROM threads WHERE run_id = $1
			UNION ALL SELECT agent, state, error FROM runs WHERE id = $1`, run) {
			tx.Fail(storage.ErrNotFound)
			return s
		}
		newest := func(types string, most int64) []stream.Message {
			return storage.Rows(tx, func(m *stream.Message) []any { return []any{(*int64)(&m.Type), &m.Text, (*[]byte)(&m.Details)} },
				`SELECT type, text, details FROM run_events WHERE run = $1 AND type IN (`+types+`) AND workstream IN ('', 'main')
				ORDER BY seq DESC LIMIT CAST($2 AS BIGINT)`, run, most)
		}
		first := func(list []stream.Message) *stream.Message {
			if len(list) == 0 {
				return nil
			}
			return &list[0]
		}
		s.Plan, s.Batch = first(newest(numbers(stating[:1]), 1)), first(newest(numbers(stating[1:2]), 1))
		s.Notes = newest(numbers(stating[2:]), maxNotes)
		slices.Reverse(s.Notes)
		s.Children = workstreams.Of(tx, run)
		tx.Row([]any{&s.Answers}, `SELECT external_id FROM messages WHERE run = $1 AND author IN ('human', 'bot') ORDER BY sent_at DESC, seq DESC LIMIT 1`, run)
		return s
	})
}
