package runs

import (
	"cmp"
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
		asked = messages.Lines(t.Txn, `m.run = $1 AND m.deleted_at = 0 ORDER BY m.sent_at, m.seq`, t.run.ID) // in their current state
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
	type line struct {
		span
		at, seq int64 // of the turn's first message
		messages.Message
	}
	before, args := ``, []any{t.run.Thread, t.run.ID, int64(limit), int64(behind), t.run.ContextFrom}
	if t.past {
		before, args = ` AND context_after < $6`, append(args, t.run.BaseSeq)
	}
	// SQLite would use an index of thread_seq for seq, and sort the whole thread; +seq has none.
	lines := storage.Rows(t.Txn, func(l *line) []any {
		return append([]any{&l.run, &l.after, &l.upTo, &l.gap, &l.at, &l.seq}, l.Line()...)
	}, `
		SELECT o.run, o.context_after, o.base_seq, o.gap, o.sent_at, o.seq, `+messages.LineColumns+`
		FROM (SELECT run, context_after, base_seq, gap, sent_at, seq FROM messages WHERE thread = $1 AND context_after IS NOT NULL AND run <> $2 AND +seq > $5`+before+`
			ORDER BY sent_at DESC, seq DESC LIMIT CAST($3 AS BIGINT) OFFSET CAST($4 AS BIGINT)) AS o
		JOIN messages m ON m.run = o.run AND `+messages.OfTurn, args...)
	// A store would write all columns of the lines once more to sort them.
	slices.SortFunc(lines, func(a, b line) int {
		return cmp.Or(cmp.Compare(b.at, a.at), cmp.Compare(b.seq, a.seq), a.SentAt.Compare(b.SentAt), cmp.Compare(a.Seq, b.Seq))
	})
	for _, l := range lines {
		if n := len(spans); n == 0 || spans[n-1].run != l.run {
			spans = append(spans, l.span)
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
		turn.OpenedOn = t.opening()
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

// passive is the condition on a row of messages that it belongs to the block of a turn: $1 is the
// thread, $2 and $3 are the block's bounds. A deleted message has no trigger.
const passive = `thread = $1 AND seq > $2 AND seq <= $3 AND (trigger = 'passive' OR ` + neverBegun + `) AND memory = 1 AND ` + notContext + `
	AND (content <> '' OR files > 0 OR quotes <> '')`

// neverBegun is the condition that a message asked for a run that was stopped before it began. Then
// no turn has the message.
const neverBegun = `trigger = 'run' AND run IS NOT NULL
	AND NOT EXISTS (SELECT 1 FROM messages AS turn WHERE turn.run = messages.run AND turn.context_after IS NOT NULL)`

// block reads the passive messages of a turn: the newest, and the thread's root. Only the
// messages that were recorded last are put in the order of time, so that the cost is bounded.
func (t *transcript) block(s span, turn *Turn) {
	most := int64(EarlierLimit + t.window.Context + 1)
	turn.Context = messages.Lines(t.Txn, `row IN (SELECT row FROM (SELECT row, sent_at, seq FROM messages WHERE `+passive+` ORDER BY seq DESC LIMIT CAST($5 AS BIGINT)) AS last
		ORDER BY sent_at DESC, seq DESC LIMIT CAST($4 AS BIGINT)) ORDER BY sent_at DESC, seq DESC`,
		t.run.Thread, s.after, s.upTo, int64(t.window.Context), most)
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
	var n int64
	t.Row([]any{&n}, `SELECT count(*) FROM (SELECT 1 FROM messages WHERE `+passive+` LIMIT CAST($4 AS BIGINT)) AS earlier`,
		t.run.Thread, s.after, s.upTo, most)
	if turn.Root != nil {
		n--
	}
	turn.Earlier = min(int(n)-len(turn.Context), EarlierLimit)
}

// root moves the thread's own first message to Root, if it belongs to the block.
func (t *transcript) root(turn *Turn, full bool) {
	if i := slices.IndexFunc(turn.Context, func(m messages.Message) bool { return m.Seq == 1 }); i >= 0 {
		root := turn.Context[i]
		turn.Root, turn.Context = &root, slices.Delete(turn.Context, i, i+1)
	} else if full {
		if root := messages.Lines(t.Txn, `row IN (SELECT row FROM messages WHERE `+passive+`)`, t.run.Thread, int64(0), int64(1)); len(root) > 0 {
			turn.Root = &root[0]
		}
	}
}

// opening reads the message of another thread on which this one was opened, by the
// platform's id, and the other messages of its turn. A reply of ours has the ids of its posts, and a message that a post of
// ours has shown to people has that of the post.
func (t *transcript) opening() []messages.Message {
	const elsewhere = ` AND thread <> $3 AND deleted_at = 0 AND seq IS NOT NULL`
	opening := messages.Find(t.Txn, `workspace = $1 AND external_id = $2`+elsewhere, t.run.Workspace, t.run.OpenedOn, t.run.Thread)
	if opening == nil {
		opening = messages.Find(t.Txn, messages.ReplyOf+`)`+elsewhere, t.run.Workspace, t.run.OpenedOn, t.run.Thread)
	}
	if opening == nil {
		opening = messages.Find(t.Txn, `id = (SELECT run FROM deliveries WHERE workspace = $1 AND platform_id = $2) AND author IN ('human', 'bot')`+elsewhere, t.run.Workspace, t.run.OpenedOn, t.run.Thread)
	}
	switch {
	case opening == nil:
		return nil
	case opening.Run != "":
		turn := messages.Lines(t.Txn, `m.run = $1 AND m.author <> 'system' AND m.memory = 1 AND m.deleted_at = 0 ORDER BY m.sent_at, m.seq`, opening.Run)
		return append(turn, t.goesOn(opening)...)
	}
	messages.LoadFiles(t.Txn, opening)
	return []messages.Message{*opening}
}

// mostBelow bounds the further messages of another thread that stand below its first post.
const mostBelow = 20

// goesOn reads the messages after the turn of an opening, up to the first message of a person. People see these messages below the opening, if only
// Parley and programs ask in that thread.
func (t *transcript) goesOn(opening *messages.Message) []messages.Message {
	const asked = ` AND m.author <> 'agent' AND m.reason <> 'schedule' AND m.author <> 'system' AND m.external_id NOT LIKE 'injected:%'`
	if t.Has(`SELECT 1 FROM messages m WHERE m.run = $1`+asked+` LIMIT 1`, opening.Run) {
		return nil
	}
	return messages.Lines(t.Txn, `m.thread = $1 AND m.seq > (SELECT max(seq) FROM messages WHERE run = $2) AND m.author <> 'system' AND m.memory = 1 AND m.deleted_at = 0
		AND m.seq < coalesce((SELECT min(m.seq) FROM messages m WHERE m.thread = $1 AND m.seq > (SELECT max(seq) FROM messages WHERE run = $2)`+asked+`), 9223372036854775807)
		ORDER BY m.seq LIMIT CAST($3 AS BIGINT)`, opening.Thread, opening.Run, int64(mostBelow))
}

// PastInput has the input of a run that has begun: the input that its agent got, if it is kept, and otherwise its
// turns as they are now.
type PastInput struct {
	Run   *Run
	Kept  string // the agent's input, a JSON list of messages; empty if it is not kept
	Turns []Turn // by time, the run's last; nil if the input is kept
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
	if past.Run = run; err != nil || past.Kept != "" {
		return past, err
	}
	past.Turns, err = storage.Read(ctx, r.db, func(tx *storage.Txn) []Turn {
		run.History = ThreadHistoryOf(tx, history)
		run.SetMessages(messages.Lines(tx, `m.run = $1 AND m.deleted_at = 0 AND m.author <> 'agent' AND `+messages.OfTurn+` ORDER BY m.sent_at, m.seq`, run.ID))
		run.Fresh = true
		t := transcript{Txn: tx, run: run, window: window(run), past: named != ""}
		return t.read()
	})
	slices.Reverse(past.Turns)
	return past, err
}
