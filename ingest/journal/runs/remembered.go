package runs

import (
	"container/list"
	"slices"
	"sync"

	"parley/ingest/event"
	"parley/ingest/journal/messages"
)

// messageBytes is the size of a remembered message without its texts.
const messageBytes = 800

// Remembered counts the windows that are remembered.
type Remembered struct {
	Bytes int64 // of memory, about
	Used  int64 // transcripts that read no message
	Read  int64 // transcripts that did
}

// windows remembers the transcripts of the last runs that ended here, each with its reply, so that
// the next turn of a thread reads no message. The least recent ones are forgotten first. It is safe
// for concurrent use. The zero value remembers none.
//
// The next run begins in a transaction that reads threads.changed. That number rises when a message
// changes, is removed, or gets another turn. So a window is valid if the number is the same, if the
// run's turn follows the window's last one, and if every thread_seq since belongs to the reply or to
// the run.
type windows struct {
	bound    int64 // of the bytes of all
	mu       sync.Mutex
	byThread map[int64]*list.Element // of recent
	recent   list.List               // of *remembered, the most recent first
	count    Remembered
}

// remembered is the window of a run that has ended.
type remembered struct {
	thread, changed   int64
	contextFrom, upTo int64 // ContextFrom and BaseSeq of the run
	window            Window
	turns             []Turn // by time
	bytes             int64
}

// Remembered returns the present counts.
func (r *Runs) Remembered() Remembered {
	r.windows.mu.Lock()
	defer r.windows.mu.Unlock()
	return r.windows.count
}

// take forgets the window of the run's thread and returns the run's transcript; nil if the window is
// not valid for the run.
func (w *windows) take(run *Run, window Window) []Turn {
	w.mu.Lock()
	defer w.mu.Unlock()
	turns := w.forget(run.Thread).followedBy(run, window)
	if turns == nil {
		w.count.Read++
	} else {
		w.count.Used++
	}
	return turns
}

// forget removes the window of a thread; nil for none. The caller holds the mutex.
func (w *windows) forget(thread int64) *remembered {
	at := w.byThread[thread]
	if at == nil {
		return nil
	}
	r := w.recent.Remove(at).(*remembered)
	w.count.Bytes -= r.bytes
	delete(w.byThread, thread)
	return r
}

// put remembers the window of a run that has ended with a reply, unless the next window may show it
// otherwise.
func (w *windows) put(run *Run, reply *messages.Message) {
	r := run.shown
	if r == nil || run.Reruns > 0 || len(reply.Attachments) > 0 {
		return
	}
	last := &r.turns[len(r.turns)-1]
	if len(last.Messages) == 0 || last.Messages[0].Seq <= r.contextFrom { // the next window does not reach back to it
		return
	}
	stored := *reply
	stored.Content = event.Text(reply.Content) // as the engine stores it
	last.Reply, last.bytes = &stored, last.bytes+len(stored.Content)
	for i := range r.turns {
		if !r.turns[i].stands() || i > 0 && !r.turns[i-1].isBefore(&r.turns[i]) {
			return
		}
		r.bytes += r.turns[i].size()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forget(r.thread)
	if w.byThread == nil {
		w.byThread = map[int64]*list.Element{}
	}
	w.byThread[r.thread] = w.recent.PushFront(r)
	for w.count.Bytes += r.bytes; w.count.Bytes > w.bound; {
		w.forget(w.recent.Back().Value.(*remembered).thread)
	}
}

// followedBy returns the transcript of the next run of the thread; nil if the window is not valid for
// it.
func (r *remembered) followedBy(run *Run, window Window) []Turn {
	if r == nil || !run.Fresh || r.changed != run.Changed || r.window != window || r.contextFrom != run.ContextFrom || r.upTo != run.ContextAfter {
		return nil
	}
	left := run.BaseSeq - r.upTo - 1 // without the reply
	for i := range run.Messages {
		if run.Messages[i].Seq > r.upTo {
			left--
		}
	}
	if left != 0 {
		return nil
	}
	turn := ownTurn(run)
	first, bytes := len(r.turns), turn.bytes
	for first > 0 && len(r.turns)-first+1 < max(window.Turns, 1) && bytes < window.Bytes {
		first--
		bytes += r.turns[first].bytes
	}
	return append(slices.Clone(r.turns[first:]), turn)
}

// isBefore reports whether a turn's messages are before those of another one.
func (t *Turn) isBefore(next *Turn) bool {
	a, b := &t.Messages[len(t.Messages)-1], &next.Messages[0]
	return a.SentAt.Before(b.SentAt) || a.SentAt.Equal(b.SentAt) && a.Seq < b.Seq
}

// stands reports whether only a change of the turn's own messages, and those alone, can make a later
// transcript show it otherwise.
func (t *Turn) stands() bool {
	return len(t.OpenedOn) == 0 && len(t.Messages) > 0 && t.each(func(m *messages.Message) bool {
		return m.Memory && m.FileCount == 0 && m.Quotes.Quoted == nil && m.DeletedAt.IsZero()
	})
}

// size returns the bytes of memory that the turn takes.
func (t *Turn) size() (bytes int64) {
	t.each(func(m *messages.Message) bool {
		bytes += int64(messageBytes + len(m.Content) + len(m.Metadata))
		return true
	})
	return bytes
}

// each calls f for the turn's messages and its reply, and for those of its block, until f returns
// false.
func (t *Turn) each(f func(*messages.Message) bool) bool {
	for _, list := range [][]messages.Message{t.Messages, t.Context} {
		for i := range list {
			if !f(&list[i]) {
				return false
			}
		}
	}
	return (t.Root == nil || f(t.Root)) && (t.Reply == nil || f(t.Reply))
}
