package journal

import (
	"context"
	"slices"
)

// Turn is a run as a thread's transcript shows it.
type Turn struct {
	// OpenedOn is the message of another thread on which the thread was opened,
	// in its first turn; nil elsewhere.
	OpenedOn *Message
	// Root is the thread's first message, where it belongs to the turn's block.
	Root *Message
	// Context are the newest passive messages of the block beside Root, newest first,
	// and then those that were read for it.
	Context []Message
	// Earlier is how many were left out, up to EarlierLimit.
	Earlier int
	// Gap says that further ones could not be read.
	Gap bool
	// Messages are what was asked, in their order.
	Messages []Message
	// Reply is what the agent answered; nil for none.
	Reply *Message
}

// EarlierLimit bounds how many left-out messages are counted.
const EarlierLimit = 10_000

// Window bounds what is read of a thread.
type Window struct {
	Turns   int // the current one among them
	Bytes   int // of content: no further turn is read once so much is there
	Context int // lines of one block, beside its root
}

// Transcript reads the run's turn and those before it, oldest first, as far as
// the window reaches. What it costs depends on the window, not on the thread.
func (j *Journal) Transcript(ctx context.Context, run *Run, window Window) ([]Turn, error) {
	if run.alone() {
		return []Turn{{Messages: run.Messages}}, nil
	}
	var turns []Turn
	err := j.engine.Read(ctx, func(tx Tx) (err error) {
		t := transcript{tx: tx, run: run, window: window}
		turns, err = t.read()
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.Reverse(turns)
	return turns, nil
}

// alone says that the run's messages are as they are known, and all that its thread
// holds.
func (run *Run) alone() bool {
	return run.Fresh && run.ContextAfter == 0 && run.OpenedOn == "" && run.Preface == nil && run.BaseSeq == int64(len(run.Messages))
}

type transcript struct {
	tx     Tx
	run    *Run
	window Window
	bytes  int
	// inSight are the thread_seqs of what was asked and answered in the window.
	inSight []int64
}

// span is a run and the range of thread_seq of its block.
type span struct {
	row, after, upTo, firstSeq int64
	preface                    *Preface // of a thread's first turn
}

// read makes the turns, newest first, until the window's bytes are used up.
func (t *transcript) read() ([]Turn, error) {
	asked := t.run.Messages
	if !t.run.Fresh {
		var err error
		if asked, err = manyLines(t.tx, `run = ? AND deleted_at = 0 ORDER BY seq`, t.run.Row); err != nil { // as they stand now
			return nil, err
		}
		t.run.sees(asked)
	}
	t.see(asked)
	spans, err := t.spans()
	if err != nil {
		return nil, err
	}
	// A turn's range reaches back to the reply before it, so that it is told
	// apart once the turns before have been read.
	byRun := map[int64][]Message{t.run.Row: asked}
	spans = append([]span{{row: t.run.Row, after: t.run.ContextAfter, upTo: t.run.BaseSeq, preface: t.run.Preface}}, spans...)
	var turns []Turn
	for i, s := range spans {
		if i > 0 && t.bytes >= t.window.Bytes {
			break
		}
		if i%spansAtOnce == 0 {
			if err := t.messages(spans[i+1:min(i+1+spansAtOnce, len(spans))], byRun); err != nil {
				return nil, err
			}
		}
		turn, err := t.turn(s, byRun[s.row])
		if err != nil {
			return nil, err
		}
		if i == 0 || len(turn.Messages) > 0 || turn.Reply != nil {
			turns = append(turns, turn)
		}
	}
	return turns, nil
}

// spansAtOnce is how many turns are read by one query. What is read beyond the
// window's bytes is bounded by it.
const spansAtOnce = 10

// see notes messages that are in the window.
func (t *transcript) see(messages []Message) {
	for _, m := range messages {
		t.inSight = append(t.inSight, m.Seq)
	}
}

// spans finds the runs before the current one, newest first.
func (t *transcript) spans() (spans []span, err error) {
	if t.run.ContextAfter == 0 || t.window.Turns <= 1 {
		return nil, nil // no run had begun before, or none of them is wanted
	}
	err = t.tx.Rows(func(scan func(...any) error) error {
		var s span
		var preface string
		err := scan(&s.row, &s.after, &s.upTo, &s.firstSeq, &preface)
		if err == nil {
			s.preface, err = readPreface(preface)
		}
		spans = append(spans, s)
		return err
	}, `SELECT row, context_after, base_seq, first_seq,
			CASE WHEN context_after = 0 THEN (SELECT preface FROM threads WHERE threads.id = runs.thread) ELSE '' END FROM runs
		WHERE thread = ? AND row <> ? AND state IN ('done', 'failed', 'dropped', 'canceled')
		ORDER BY first_seq DESC LIMIT CAST(? AS BIGINT)`, t.run.Thread, t.run.Row, int64(t.window.Turns-1))
	return spans, err
}

// messages reads what was asked and answered in some spans, which follow one
// another, into byRun.
func (t *transcript) messages(spans []span, byRun map[int64][]Message) error {
	if len(spans) == 0 {
		return nil
	}
	all, err := manyLines(t.tx, `deleted_at = 0 AND run IN (
			SELECT row FROM runs WHERE thread = ? AND first_seq BETWEEN ? AND ? AND row <> ?
			AND state IN ('done', 'failed', 'dropped', 'canceled')) ORDER BY run, seq`,
		t.run.Thread, spans[len(spans)-1].firstSeq, spans[0].firstSeq, t.run.Row)
	t.see(all)
	for first := 0; first < len(all); {
		end := first + 1
		for end < len(all) && all[end].Run == all[first].Run {
			end++
		}
		byRun[all[first].Run] = all[first:end:end]
		first = end
	}
	return err
}

func (t *transcript) turn(s span, messages []Message) (Turn, error) {
	var turn Turn
	for i := range messages {
		t.bytes += len(messages[i].Content)
		if messages[i].Author == ByAgent {
			turn.Reply = &messages[i]
		} else {
			turn.Messages = append(turn.Messages, messages[i])
		}
	}
	if len(messages) == 0 && s.row != t.run.Row {
		return turn, nil
	}
	if s.after == 0 && t.run.OpenedOn != "" {
		if err := t.opening(&turn); err != nil {
			return turn, err
		}
	}
	if t.unseen(s) {
		if err := t.block(s, &turn); err != nil {
			return turn, err
		}
	}
	if s.preface != nil && s.after == 0 {
		return turn, t.preface(s.preface, &turn)
	}
	return turn, nil
}

// unseen says whether a span's range may hold messages beside those that were
// asked or answered in the window: such as passive ones.
func (t *transcript) unseen(s span) bool {
	left := s.upTo - s.after
	for _, seq := range t.inSight {
		if seq > s.after && seq <= s.upTo {
			left--
		}
	}
	return left > 0
}

// block reads the passive messages of a turn: the newest, and the thread's root.
func (t *transcript) block(s span, turn *Turn) (err error) {
	const passive = `thread = ? AND seq > ? AND seq <= ? AND trigger = 'passive' AND deleted_at = 0 AND ` + notContext + `
		AND (content <> '' OR files > 0 OR quotes <> '')`
	turn.Context, err = manyLines(t.tx, passive+` ORDER BY seq DESC LIMIT CAST(? AS BIGINT)`,
		t.run.Thread, s.after, s.upTo, int64(t.window.Context))
	if err != nil {
		return err
	}
	for i := range turn.Context {
		t.bytes += len(turn.Context[i].Content)
	}
	full := len(turn.Context) >= t.window.Context
	if s.after == 0 && s.preface == nil {
		if err := t.root(turn); err != nil {
			return err
		}
	}
	if !full {
		return nil
	}
	after, upTo := s.after, s.upTo
	if turn.Root != nil {
		after = max(after, turn.Root.Seq)
	}
	if n := len(turn.Context); n > 0 {
		upTo = turn.Context[n-1].Seq - 1
	}
	var n int64
	_, err = t.tx.Row([]any{&n}, `SELECT count(*) FROM (SELECT 1 FROM messages WHERE `+passive+` LIMIT CAST(? AS BIGINT)) AS earlier`,
		t.run.Thread, after, upTo, int64(EarlierLimit))
	turn.Earlier = int(n)
	return err
}

// root sets the thread's own first message apart, where it belongs to the block.
func (t *transcript) root(turn *Turn) error {
	if n := len(turn.Context); n > 0 && turn.Context[n-1].Seq == 1 {
		turn.Root = &turn.Context[n-1]
		turn.Context = turn.Context[:n-1]
		return nil
	}
	if len(turn.Context) < t.window.Context {
		return nil
	}
	root, err := oneMessage(t.tx, `thread = ? AND seq = 1 AND trigger = 'passive' AND deleted_at = 0
		AND (content <> '' OR files > 0 OR quotes <> '')`, t.run.Thread)
	if turn.Root = root; err != nil || root == nil {
		return err
	}
	return root.load(t.tx)
}

// opening reads the message of another thread on which this one was opened: as the
// platform knows it, a reply of ours by its posts.
func (t *transcript) opening(turn *Turn) error {
	const elsewhere = ` AND thread <> ? AND deleted_at = 0 AND seq IS NOT NULL`
	opening, err := oneMessage(t.tx, `workspace = ? AND external_id = ?`+elsewhere, t.run.Workspace, t.run.OpenedOn, t.run.Thread)
	if err == nil && opening == nil {
		opening, err = oneMessage(t.tx, `author = 'agent' AND run = (SELECT run FROM deliveries WHERE workspace = ? AND platform_id = ?)`+elsewhere,
			t.run.Workspace, t.run.OpenedOn, t.run.Thread)
	}
	if err != nil || opening == nil {
		return err
	}
	turn.OpenedOn = opening
	return opening.load(t.tx)
}
