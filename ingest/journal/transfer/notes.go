package transfer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/google/uuid"

	"parley/ingest/journal"
)

// What a store says about itself stands in rows of cursors, of no workspace.
const (
	noteIdentity = "store/identity"    // a UUID, given to a store when it is first copied
	noteCopying  = journal.NoteCopying // the state of an unfinished copy
	noteCopied   = "store/copied"      // the identity of a complete copy's source
)

// note reads one of them; empty for none.
func note(tx journal.Tx, name string) (text string, err error) {
	_, err = tx.Row([]any{&text}, `SELECT position FROM cursors WHERE workspace = '' AND channel = ?`, name)
	return text, err
}

// identify returns the store's identity, which it gives it if need be.
func identify(ctx context.Context, engine journal.Engine) (identity string, err error) {
	fresh := uuid.NewString()
	err = engine.Write(ctx, func(tx journal.Tx) error {
		if _, err := tx.Exec(`INSERT INTO cursors (workspace, channel, position) VALUES ('', ?, ?)
			ON CONFLICT (workspace, channel) DO NOTHING`, noteIdentity, fresh); err != nil {
			return err
		}
		identity, err = note(tx, noteIdentity)
		return err
	})
	return identity, err
}

// state is how far a copy has come.
type state struct {
	From  string   `json:"from"`  // the source's identity
	Table string   `json:"table"` // those before it are copied
	After [][]byte `json:"after"` // the primary key of the last row that is copied
	Rows  int64    `json:"rows"`  // that are copied of the table

	// stored is the state as the copy has it, which may be of the table before.
	stored   string
	complete bool
}

// encoded is the state as it is stored.
func (s state) encoded() string {
	raw, _ := json.Marshal(s) // texts and numbers can always be
	return string(raw)
}

// moved is the state when a further batch has been written.
func (s state) moved(t table, b batch) state {
	s.Rows += int64(len(b.rows))
	s.After = nil
	for _, value := range b.last {
		switch value := value.(type) {
		case int64:
			s.After = append(s.After, strconv.AppendInt(nil, value, 10))
		case string:
			s.After = append(s.After, []byte(value))
		}
	}
	s.stored = s.encoded()
	return s
}

// after is the primary key that the copy of a table goes on behind.
func (s state) after(t table) (key row, err error) {
	if s.After == nil {
		return nil, nil
	}
	if len(s.After) != t.key {
		return nil, errors.New("the copy's note of where it stands can't be read")
	}
	for i, part := range s.After {
		var value any = string(part)
		if t.columns[i].kind == integer {
			if value, err = strconv.ParseInt(string(part), 10, 64); err != nil {
				return nil, fmt.Errorf("the copy's note of where it stands: %w", err)
			}
		}
		key = append(key, value)
	}
	return key, nil
}

var errRival = errors.New("somebody else is writing this copy")

// replace makes next the stored state. Where s is not stored any more, another
// call is at work on the same copy.
func (s state) replace(tx journal.Tx, next string) error {
	n, err := tx.Exec(`UPDATE cursors SET position = ? WHERE workspace = '' AND channel = ? AND position = ?`,
		next, noteCopying, s.stored)
	if err == nil && n == 0 {
		return errRival
	}
	return err
}

// begin finds out what the copy's place holds: nothing, a part of this source's
// copy, or all of it. Anything else is refused.
func (c *copier) begin(ctx context.Context, source string) (s state, err error) {
	if err := idle(ctx, c.to.engine); err != nil {
		return state{}, err
	}
	err = c.to.engine.Write(ctx, func(tx journal.Tx) error {
		s = state{From: source, Table: tables()[0].name}
		identity, err := note(tx, noteIdentity)
		if err == nil && identity == source {
			err = ErrSame
		}
		if err != nil {
			return err
		}
		copied, err := note(tx, noteCopied)
		if err != nil || copied != "" {
			s.complete = true
			return foreignUnless(copied == source, err)
		}
		copying, err := note(tx, noteCopying)
		if err != nil || copying != "" {
			return resumed(&s, copying, err)
		}
		s.stored = s.encoded()
		return first(tx, s)
	})
	return s, err
}

func foreignUnless(ours bool, err error) error {
	if err == nil && !ours {
		return ErrForeign
	}
	return err
}

// resumed reads the state of an unfinished copy.
func resumed(s *state, stored string, err error) error {
	if err != nil {
		return err
	}
	var begun state
	if err := json.Unmarshal([]byte(stored), &begun); err != nil {
		return fmt.Errorf("the copy's note of where it stands: %w", err)
	}
	if begun.From != s.From {
		return ErrForeign
	}
	begun.stored = stored
	*s = begun
	return nil
}

// first begins a copy in a store that has nothing yet.
func first(tx journal.Tx, s state) error {
	for _, t := range tables() {
		cond, _ := t.where(nil)
		var one int64
		found, err := tx.Row([]any{&one}, "SELECT 1 FROM "+t.name+cond+" LIMIT 1")
		if err != nil {
			return err
		}
		if found {
			return fmt.Errorf("%w (its table %s is not empty)", ErrForeign, t.name)
		}
	}
	_, err := tx.Exec(`INSERT INTO cursors (workspace, channel, position) VALUES ('', ?, ?)`, noteCopying, s.stored)
	return err
}

// complete makes the copy a store that a daemon may work on.
func (c *copier) complete(ctx context.Context, source string) error {
	err := c.to.engine.Write(ctx, func(tx journal.Tx) error {
		if _, err := tx.Exec(`DELETE FROM cursors WHERE workspace = '' AND channel = ?`, noteCopying); err != nil {
			return err
		}
		_, err := tx.Exec(`INSERT INTO cursors (workspace, channel, position) VALUES ('', ?, ?)`, noteCopied, source)
		return err
	})
	if err != nil {
		return fmt.Errorf("end the copy: %w", err)
	}
	return nil
}
