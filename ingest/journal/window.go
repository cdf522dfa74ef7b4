package journal

import "context"

// Turn is a run as a thread's transcript shows it.
type Turn struct {
	// OpenedOn is the message of another thread on which the thread was opened,
	// in its first turn; nil elsewhere.
	OpenedOn *Message
	// Root is the thread's first message, where it belongs to the turn's block.
	Root *Message
	// Context are the newest passive messages of the block beside Root, newest first.
	Context []Message
	// Earlier is how many were left out, up to EarlierLimit.
	Earlier int
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
	var turns []Turn
	err := j.engine.Read(ctx, func(tx Tx) error {
		turns = nil
		t := transcript{tx: tx, run: run, window: window}
		current, err := t.turn(span{row: run.Row, after: run.ContextAfter, upTo: run.BaseSeq})
		if err != nil {
			return err
		}
		turns = append(turns, current)
		return t.history(&turns)
	})
	if err != nil {
		return nil, err
	}
	for i, k := 0, len(turns)-1; i < k; i, k = i+1, k-1 {
		turns[i], turns[k] = turns[k], turns[i]
	}
	return turns, nil
}

type transcript struct {
	tx     Tx
	run    *Run
	window Window
	bytes  int
}

// span is a run and the range of thread_seq of its block.
type span struct{ row, after, upTo int64 }

// history appends the turns before the current one, newest first.
func (t *transcript) history(turns *[]Turn) error {
	if t.run.ContextAfter == 0 || t.window.Turns <= 1 {
		return nil // no run had begun before, or none of them is wanted
	}
	var spans []span
	err := t.tx.Rows(func(scan func(...any) error) error {
		var s span
		err := scan(&s.row, &s.after, &s.upTo)
		spans = append(spans, s)
		return err
	}, `SELECT row, context_after, base_seq FROM runs WHERE thread = ? AND row <> ? AND state IN ('done', 'failed', 'dropped', 'canceled')
		ORDER BY first_seq DESC LIMIT CAST(? AS BIGINT)`, t.run.Thread, t.run.Row, int64(t.window.Turns-1))
	if err != nil {
		return err
	}
	for _, s := range spans {
		if t.bytes >= t.window.Bytes {
			return nil
		}
		turn, err := t.turn(s)
		if err != nil {
			return err
		}
		if len(turn.Messages) > 0 || turn.Reply != nil {
			*turns = append(*turns, turn)
		}
	}
	return nil
}

func (t *transcript) turn(s span) (Turn, error) {
	var turn Turn
	messages, err := manyMessages(t.tx, `run = ? AND deleted_at = 0 ORDER BY seq`, s.row)
	if err != nil {
		return turn, err
	}
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
	ranged := int64(0) // messages of the turn that are in the block's range
	for _, m := range turn.Messages {
		if m.Seq > s.after {
			ranged++
		}
	}
	if s.upTo-s.after > ranged || s.after == 0 {
		err = t.block(s, &turn)
	}
	return turn, err
}

// block reads the passive messages of a turn: the newest, and the thread's root.
func (t *transcript) block(s span, turn *Turn) (err error) {
	const passive = `thread = ? AND seq > ? AND seq <= ? AND trigger = 'passive' AND deleted_at = 0 AND (content <> '' OR files > 0 OR quotes <> '')`
	turn.Context, err = manyMessages(t.tx, passive+` ORDER BY seq DESC LIMIT CAST(? AS BIGINT)`, t.run.Thread, s.after, s.upTo, int64(t.window.Context))
	if err != nil {
		return err
	}
	for i := range turn.Context {
		t.bytes += len(turn.Context[i].Content)
	}
	if s.after == 0 {
		if err := t.opening(turn); err != nil {
			return err
		}
	}
	if len(turn.Context) < t.window.Context {
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

// opening reads what the thread began with: its own first message, or the one
// of another thread on which it was opened.
func (t *transcript) opening(turn *Turn) error {
	if n := len(turn.Context); n > 0 && turn.Context[n-1].Seq == 1 {
		turn.Root = &turn.Context[n-1]
		turn.Context = turn.Context[:n-1]
	} else if n == t.window.Context {
		root, err := oneMessage(t.tx, `thread = ? AND seq = 1 AND trigger = 'passive' AND deleted_at = 0
			AND (content <> '' OR files > 0 OR quotes <> '')`, t.run.Thread)
		if err != nil {
			return err
		}
		if turn.Root = root; root != nil {
			if err := root.load(t.tx); err != nil {
				return err
			}
		}
	}
	var openedOn string
	if _, err := t.tx.Row([]any{&openedOn}, `SELECT opened_on FROM threads WHERE id = ?`, t.run.Thread); err != nil || openedOn == "" {
		return err
	}
	opening, err := oneMessage(t.tx, `workspace = ? AND external_id = ? AND thread <> ? AND deleted_at = 0 AND seq IS NOT NULL`,
		t.run.Workspace, openedOn, t.run.Thread)
	if err != nil || opening == nil {
		return err
	}
	turn.OpenedOn = opening
	return opening.load(t.tx)
}
