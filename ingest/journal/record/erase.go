package record

import (
	"context"
	"maps"
	"slices"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal/envelopes"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
	"parley/ingest/journal/workstreams"
)

// Erased counts what has left the store.
type Erased struct {
	Messages int64 // of people, programs and Parley
	Answers  int64 // of agents
	Files    int64
	Changed  int64 // messages of others that have lost a quotation, a reaction or a name
}

// Add adds counts.
func (e *Erased) Add(other Erased) {
	e.Messages += other.Messages
	e.Answers += other.Answers
	e.Files += other.Files
	e.Changed += other.Changed
}

// eraseBatch bounds the messages of one transaction.
const eraseBatch = 50

// Erase empties messages as if their authors had deleted them, and takes the authors' names from them. What answers them
// goes too: the answers and the notices of their runs, what is stored of those runs, and the workstreams of those runs with their threads.
// The run that a thread works on ends without an answer if it has no other message; else its answer is erased by EraseAnswers.
func (s *Recorder) Erase(ctx context.Context, rows []messages.Placed) (all Erased, err error) {
	below := map[event.ThreadKey]bool{}
	each := func(thread int64, rows []int64) error {
		for batch := range slices.Chunk(rows, eraseBatch) {
			made, keys, err := s.change(ctx, thread, func(r *recordTx, e *eraser) {
				for _, row := range batch {
					e.erase(r, row)
				}
			})
			if all.Add(made); err != nil {
				return err
			}
			for _, key := range keys {
				if _, known := below[key]; !known {
					below[key] = true
				}
			}
		}
		return nil
	}
	byThread := map[int64][]int64{}
	for _, p := range rows {
		byThread[p.Thread] = append(byThread[p.Thread], p.Row)
	}
	for _, thread := range slices.Sorted(maps.Keys(byThread)) {
		if err := each(thread, byThread[thread]); err != nil {
			return all, err
		}
	}
	for left := true; left; {
		left = false
		for key, due := range below {
			if !due {
				continue
			}
			below[key], left = false, true
			thread, rows, err := messages.InThread(ctx, s.db, key)
			if err == nil && len(rows) > 0 {
				err = each(thread, rows)
			}
			if err != nil {
				return all, err
			}
		}
	}
	return all, nil
}

// EraseAnswers erases what answers the erased messages and was written since a time, because its run or its post was on its way.
func (s *Recorder) EraseAnswers(ctx context.Context, since time.Time) (made Erased, err error) {
	late, err := messages.Answering(ctx, s.db, since)
	if err == nil {
		made, err = s.Erase(ctx, late)
	}
	if err != nil {
		return made, err
	}
	posts, err := outbox.Deleted(ctx, s.db, since)
	if err != nil || len(posts) == 0 {
		return made, err
	}
	if err = s.db.Change(ctx, "", func(tx *storage.Txn) {
		for _, run := range posts {
			outbox.EmptyPosts(tx, run)
		}
	}); err == nil {
		s.files.CopiesChanged()
		s.db.Erased()
	}
	return made, err
}

// Rewrite changes messages of others in a thread: change returns whether it has changed one.
func (s *Recorder) Rewrite(ctx context.Context, thread int64, rows []int64, change func(m *messages.Message) bool) (all Erased, err error) {
	for batch := range slices.Chunk(rows, eraseBatch) {
		made, _, err := s.change(ctx, thread, func(r *recordTx, e *eraser) {
			for _, row := range batch {
				m := messages.At(r.Txn, row)
				if m == nil || m.Thread != thread || !change(m) {
					continue
				}
				messages.Rewrite(r.Txn, m)
				envelopes.EmptyBodies(r.Txn, m)
				e.made.Changed++
				r.out.Disposition, r.erased = event.Updated, true
			}
		})
		if all.Add(made); err != nil {
			return all, err
		}
	}
	return all, nil
}

// eraser is what one transaction of Erase does.
type eraser struct {
	made  Erased
	runs  map[string]bool   // whose words are removed
	below []event.ThreadKey // of their workstreams
}

// change runs a change of a thread's messages that no envelope asks for.
func (s *Recorder) change(ctx context.Context, thread int64, do func(*recordTx, *eraser)) (Erased, []event.ThreadKey, error) {
	e := &eraser{}
	r, err := storage.Write(ctx, s.db, storage.WriteOptions{}, func(tx *storage.Txn) *recordTx {
		*e = eraser{runs: map[string]bool{}}
		claim, found := threads.Held(tx, thread)
		if !found {
			return nil
		}
		r := s.begin(tx, &claim, Entry{Workspace: claim.Workspace})
		r.forgets = true
		r.thread = threads.Lock(tx, &claim)
		do(r, e)
		if r.erased {
			runs.ForgetSessions(tx, thread)
		}
		c := threads.Change{Thread: thread, Now: r.now, Deleted: r.deleted}
		c.Save(tx, &r.saved)
		return r
	})
	if err != nil || r == nil {
		return Erased{}, nil, err
	}
	_, err = s.committed(ctx, r)
	return e.made, e.below, err
}

// erase empties a message, if it is in the thread, and what answers it.
func (e *eraser) erase(r *recordTx, row int64) {
	m := messages.At(r.Txn, row)
	if m == nil || m.Thread != r.claim.Thread {
		return
	}
	e.blank(r, m)
	if m.Run != "" && m.Run != r.thread.Run && m.Author != messages.ByAgent {
		e.forgetRun(r, m.Run)
	}
}

// blank empties a message, and takes its author's name.
func (e *eraser) blank(r *recordTx, m *messages.Message) {
	if m.DeletedAt.IsZero() {
		if e.made.Files += m.FileCount; m.Author == messages.ByAgent {
			e.made.Answers++
		} else if m.Seq > 0 {
			e.made.Messages++
		}
		r.blank(m, m.ExternalID)
	}
	messages.EmptyName(r.Txn, m)
	r.erased = true
}

// forgetRun empties what the run of an erased message has written, and what is stored of the run.
func (e *eraser) forgetRun(r *recordTx, run string) {
	if e.runs[run] {
		return
	}
	e.runs[run] = true
	for _, post := range outbox.PostsOf(r.Txn, run) { // others may quote each of its posts
		r.dropWords(post, post)
	}
	for _, said := range messages.Said(r.Txn, r.claim.Thread, run) {
		e.blank(r, &said)
	}
	runs.Forget(r.Txn, run)
	outbox.EmptyPosts(r.Txn, run)
	r.copies = true
	e.below = append(e.below, workstreams.Forget(r.Txn, run)...)
}
