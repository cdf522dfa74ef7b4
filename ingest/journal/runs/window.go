package runs

import (
	"context"
	"slices"

	"parley/ingest/journal/messages"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
)

// Turn is a run in a thread's transcript.
type Turn struct {
	// OpenedOn are the messages of another thread on which the thread was opened, by time: the
	// questions and the answer of a turn, or one message that is of no turn. It is empty except in
	// the thread's first turn.
	OpenedOn []messages.Message
	// Root is the thread's first message, if it belongs to the turn's block.
	Root *messages.Message
	// Context are the newest passive messages of the block without Root, newest first,
	// and then those that were read for it.
	Context []messages.Message
	// Earlier is the number of left-out messages, at most EarlierLimit.
	Earlier int
	// Gap means that further messages could not be read.
	Gap bool
	// Messages are the turn's messages, by time.
	Messages []messages.Message
	// Reply is the agent's answer; nil for none.
	Reply *messages.Message

	bytes int // of content that count against the window
}

// EarlierLimit bounds the count of left-out messages.
const EarlierLimit = 10_000

// shortThread is the number of messages up to which writes wait while a thread is read. In a
// longer one, the blocks of many passive messages take too long.
const shortThread = 200

// Window bounds the part of a thread that is read.
type Window struct {
	Turns   int // including the current one
	Bytes   int // of content: no further turn is read after that
	Context int // lines of one block, besides its root
}

// Transcript reads the run's turn and the turns before it, by time, as far as the window
// reaches. The run's turn is the last. The cost depends on the window, not on the thread.
func (r *Runs) Transcript(ctx context.Context, run *Run, window Window) ([]Turn, error) {
	turns, err := r.transcript(ctx, run, window)
	if err != nil {
		return nil, err
	}
	run.shown = &remembered{thread: run.Thread, changed: run.Changed, contextFrom: run.ContextFrom, upTo: run.BaseSeq, window: window, turns: slices.Clone(turns)}
	return turns, nil
}

func (r *Runs) transcript(ctx context.Context, run *Run, window Window) ([]Turn, error) {
	if run.alone() {
		return []Turn{ownTurn(run)}, nil
	}
	if turns, err := r.firstTurn(ctx, run); turns != nil || err != nil {
		return turns, err
	}
	if turns := r.windows.take(run, window); turns != nil {
		return turns, nil
	}
	from := storage.Read[[]Turn]
	if run.BaseSeq <= shortThread {
		from = storage.ReadRecent
	}
	turns, err := from(ctx, r.db, func(tx *storage.Txn) []Turn {
		t := transcript{Txn: tx, run: run, window: window}
		return t.read()
	})
	if err != nil {
		return nil, err
	}
	slices.Reverse(turns)
	run.sees(turns[len(turns)-1].Messages)
	return turns, nil
}

// alone reports whether the run's messages have not changed and are the only ones of its
// thread.
func (run *Run) alone() bool {
	return run.Fresh && run.ContextAfter == 0 && run.OpenedOn == "" && run.History == nil && run.BaseSeq == int64(len(run.Messages))
}

// ownTurn returns the turn of a run without a block.
func ownTurn(run *Run) Turn {
	turn := Turn{Messages: run.Messages, Gap: run.Gap}
	for i := range run.Messages {
		turn.bytes += len(run.Messages[i].Content)
	}
	return turn
}

type transcript struct {
	*storage.Txn
	run    *Run
	window Window
	past   bool // turns may have begun after the run's
	bytes  int
	// inSight are the thread_seqs of the messages and replies of the turns in the window.
	inSight []int64
}

// span is a turn's run and the bounds of its block.
type span struct {
	run         string
	after, upTo int64
	gap         bool
	messages    []messages.Message // and the reply
}

const (
	// turnsPerPage is the number of turns that one query reads. It bounds the reading beyond
	// the window's bytes.
	turnsPerPage = 10
	// maxHidden bounds the turns without messages that are read beside those of the window.
	maxHidden = 100
)

// read makes the turns, newest first, until the window's bytes are used up.
func (t *transcript) read() []Turn {
	asked := t.run.Messages
	if !t.run.Fresh {
		asked = messages.Lines(t.Txn, t.run.ID) // in their current state
	}
	spans := []span{{run: t.run.ID, after: t.run.ContextAfter, upTo: t.run.BaseSeq, gap: t.run.Gap, messages: asked}}
	t.see(asked)
	var turns []Turn
	most := max(t.window.Turns, 1)
	// A turn's block reaches back to the turn before it, so that a page is read before
	// the last turn of the page before is made. The turn before the window's first one is read too.
	for i, behind, whole := 0, 0, t.run.ContextAfter == 0; i < min(len(spans), most); i++ {
		if i > 0 && t.bytes >= t.window.Bytes {
			break
		}
		for i == len(spans)-1 && !whole {
			limit := min(turnsPerPage, most+1-len(spans))
			page := t.page(behind, limit)
			behind, whole = behind+len(page), len(page) < limit || behind >= most+maxHidden
			spans = inherit(spans, page)
		}
		before := t.bytes
		turn := t.turn(spans[i])
		turn.bytes = t.bytes - before
		if i == 0 || len(turn.Messages) > 0 || turn.Reply != nil {
			turns = append(turns, turn)
		}
	}
	return turns
}

// inherit adds older spans. A turn that has neither a message nor a reply any more is not shown; the
// turn that began after it has its block.
func inherit(spans, older []span) []span {
	for _, s := range older {
		if len(s.messages) > 0 {
			spans = append(spans, s)
			continue
		}
		if i := slices.IndexFunc(spans, func(next span) bool { return next.after == s.upTo }); i >= 0 {
			spans[i].after, spans[i].gap = s.after, spans[i].gap || s.gap
		}
	}
	return spans
}

// see notes messages that are in the window.
func (t *transcript) see(messages []messages.Message) {
	for _, m := range messages {
		t.inSight = append(t.inSight, m.Seq)
	}
}

// page reads at most limit turns after the first behind ones before the run's, newest first, with
// their messages.
func (t *transcript) page(behind, limit int) (spans []span) {
	turns := messages.Turns{Thread: t.run.Thread, Except: t.run.ID, From: t.run.ContextFrom}
	if t.past {
		turns.Before = t.run.BaseSeq
	}
	for _, l := range turns.Lines(t.Txn, behind, limit) {
		if n := len(spans); n == 0 || spans[n-1].run != l.Run {
			spans = append(spans, span{run: l.Run, after: l.After, upTo: l.UpTo, gap: l.Gap})
		}
		if last := &spans[len(spans)-1]; l.Memory && l.DeletedAt.IsZero() {
			last.messages = append(last.messages, l.Message)
		}
	}
	for _, s := range spans {
		t.see(messages.Complete(t.Txn, s.messages))
	}
	return spans
}

func (t *transcript) turn(s span) Turn {
	turn := Turn{Gap: s.gap}
	for i := range s.messages {
		m := &s.messages[i]
		t.bytes += len(m.Content)
		if m.Author == messages.ByAgent {
			turn.Reply = m
		} else {
			turn.Messages = append(turn.Messages, *m)
		}
	}
	if len(s.messages) == 0 && s.run != t.run.ID {
		return turn
	}
	if s.after == 0 && t.run.OpenedOn != "" {
		turn.OpenedOn = messages.Opening(t.Txn, t.run.Thread, t.run.Workspace, t.run.OpenedOn)
	}
	if t.unseen(s) {
		t.block(s, &turn)
	}
	if t.run.History != nil && s.after == 0 {
		t.threadHistory(t.run.History, &turn)
	}
	return turn
}

// unseen reports whether the range of a turn's block may hold messages that belong to no
// turn in the window, such as passive ones.
func (t *transcript) unseen(s span) bool {
	left := s.upTo - s.after
	for _, seq := range t.inSight {
		if seq > s.after && seq <= s.upTo {
			left--
		}
	}
	return left > 0
}

// block reads the passive messages of a turn: the newest, and the thread's root. Only the
// messages that were recorded last are put in the order of time, so that the cost is bounded.
func (t *transcript) block(s span, turn *Turn) {
	most, block := EarlierLimit+t.window.Context+1, messages.Block{Thread: t.run.Thread, After: s.after, UpTo: s.upTo}
	turn.Context = block.Newest(t.Txn, t.window.Context, most)
	for i := range turn.Context {
		t.bytes += len(turn.Context[i].Content)
	}
	full := len(turn.Context) >= t.window.Context
	if s.after == 0 && t.run.History == nil {
		t.root(turn, full)
	}
	if !full {
		return
	}
	n := block.Count(t.Txn, most)
	if turn.Root != nil {
		n--
	}
	turn.Earlier = min(n-len(turn.Context), EarlierLimit)
}

// root moves the thread's own first message to Root, if it belongs to the block.
func (t *transcript) root(turn *Turn, full bool) {
	if i := slices.IndexFunc(turn.Context, func(m messages.Message) bool { return m.Seq == 1 }); i >= 0 {
		root := turn.Context[i]
		turn.Root, turn.Context = &root, slices.Delete(turn.Context, i, i+1)
	} else if full {
		turn.Root = messages.Root(t.Txn, t.run.Thread)
	}
}

// PastInput has the input of a run that has begun: the input that its agent got, if it is kept, and its turns as they
// are now.
type PastInput struct {
	Run   *Run
	Kept  string // the agent's input, a JSON list of messages; empty if it is not kept
	Turns []Turn // by time, the run's last
}

// PastInput returns what a run of a thread is made from, by the thread's UUID; an empty run is the thread's newest.
// The window bounds the turns. It changes nothing and fails with ErrNotFound if the thread has no such run.
func (r *Runs) PastInput(ctx context.Context, thread, named string, window func(*Run) Window) (PastInput, error) {
	var past PastInput
	run := &Run{Place: threads.Place{ThreadID: thread}}
	var history string
	which, args := `ORDER BY m.sent_at DESC, m.seq DESC LIMIT 1`, []any{thread}
	if named != "" {
		which, args = `AND m.run = $2`, append(args, named)
	}
	err := r.db.One(ctx, []any{&run.Thread, (*string)(&run.ThreadKey), &run.Workspace, (*string)(&run.Platform), &run.Channel, &run.Parent, &run.OpenedOn, &history,
		&run.ID, &run.ContextAfter, &run.BaseSeq, &run.Gap, &run.ContextFrom, &run.Agent, &past.Kept},
		`SELECT t.id, t.key, t.workspace, t.platform, t.channel, t.parent, t.opened_on, t.history, m.run, m.context_after, m.base_seq, m.gap,
			CASE WHEN t.run_id = m.run THEN t.run_context_from WHEN t.context_from <= m.base_seq THEN t.context_from ELSE 0 END,
			coalesce((SELECT agent FROM runs WHERE id = m.run), t.agent), coalesce((SELECT input FROM run_inputs WHERE run = m.run ORDER BY n DESC LIMIT 1), '')
		FROM threads t JOIN messages m ON m.thread = t.id AND m.context_after IS NOT NULL
		WHERE t.uuid = $1 `+which, args...)
	if past.Run = run; err != nil {
		return past, err
	}
	past.Turns, err = storage.Read(ctx, r.db, func(tx *storage.Txn) []Turn {
		run.History = ThreadHistoryOf(tx, history)
		run.SetMessages(messages.Questions(tx, run.ID))
		run.Fresh = true
		t := transcript{Txn: tx, run: run, window: window(run), past: named != ""}
		return t.read()
	})
	slices.Reverse(past.Turns)
	return past, err
}
