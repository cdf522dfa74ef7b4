package journaltest

import (
	"errors"
	"fmt"
	"math"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/storage"
)

func fencePromises() []promise {
	return []promise{
		{"every write under an old fence fails and changes nothing", oldFence},
	}
}

func oldFence(f *fixture) {
	f.message(threadKey(1), said("C1/1", "one"), triggers)
	f.exchange(threadKey(1), "C1/2", "two", "2", "2", "and 2")
	f.message(threadKey(1), said("C1/3", "three"), triggers)
	run := f.begin(threadKey(1))
	accepted := f.accept(f.envelope(event.KindMessage, threadKey(1), "C1/4"))
	delivery := f.delivery(threadKey(1))
	old := f.claim(accepted.Thread)
	f.successor("second").claim(accepted.Thread)
	before := f.dump()

	soon, cause := f.clock.Now().Add(time.Second), errors.New("cause")
	leave := func(u runs.Unanswered) error {
		_, err := f.Runs.EndAttempt(f.ctx, old, run, u)
		return err
	}
	for name, write := range map[string]func() error{
		"Record": func() error {
			_, err := f.Recorder.Record(f.ctx, old, entry(accepted.ID, event.Event{Kind: event.KindMessage, Message: said("C1/4", "four")}, triggers))
			return err
		},
		"Postpone": func() error { return f.Envelopes.Postpone(f.ctx, old, accepted.ID, soon, cause) },
		"Bury":     func() error { return f.Envelopes.Bury(f.ctx, old, accepted.ID, cause) },
		"BeginRun": func() error {
			_, err := f.Runs.BeginRun(f.ctx, old, agent, false, func(*runs.Run) bool { return false }, math.MaxInt64)
			return err
		},
		"CommitReply": func() error {
			_, err := f.Runs.CommitReply(f.ctx, old, run, answer("3", "3"))
			return err
		},
		"EndAttempt, canceled":    func() error { return leave(runs.Unanswered{State: runs.Canceled, Cause: "cause"}) },
		"EndAttempt, interrupted": func() error { return leave(runs.Unanswered{State: runs.Interrupted}) },
		"EndAttempt, failed once": func() error { return leave(runs.Unanswered{At: soon, Failed: true}) },
		"EndAttempt, taken":       func() error { return leave(runs.Unanswered{At: soon, Taken: true}) },
		"EndAttempt, failed": func() error {
			return leave(runs.Unanswered{State: runs.Failed, Cause: "cause", Notice: outbox.Notice{Text: "Sorry.", Posts: answer("", "Sorry.").Posts}})
		},
		"BeginSend": func() error {
			_, err := f.Outbox.BeginSend(f.ctx, old, delivery, outbox.Send{Timeout: time.Second, Every: time.Second})
			return err
		},
	} {
		f.fails(name, write(), storage.ErrFenced)
		same(f, "rows after "+name, f.dump(), before)
	}
}

// dump returns all state that a thread's work may change.
func (f *fixture) dump() []string {
	f.Helper()
	var out []string
	read := func(tx storage.Tx, columns int, query string) error {
		return tx.Rows(func(scan func(...any) error) error {
			values, dest := make([]string, columns), make([]any, columns)
			for i := range values {
				dest[i] = &values[i]
			}
			err := scan(dest...)
			out = append(out, fmt.Sprint(values))
			return err
		}, query)
	}
	f.must(f.engine.Read(f.ctx, func(tx storage.Tx) error {
		out = nil
		return errors.Join(
			read(tx, 3, `SELECT key, owner, agent || ' ' || CAST(fence AS TEXT) || ' ' || CAST(next_seq AS TEXT) || ' ' || CAST(begun_seq AS TEXT)
				|| ' ' || CAST(pending AS TEXT) || ' ' || CAST(coalesce(intake_at, 0) AS TEXT) || ' ' || CAST(coalesce(turn_at, 0) AS TEXT)
				|| ' ' || CAST(coalesce(turn_since, 0) AS TEXT) || ' ' || coalesce(run_id, '') || ' ' || CAST(run_attempts AS TEXT)
				FROM threads ORDER BY id`),
			read(tx, 3, `SELECT state, error, CAST(attempts AS TEXT) || ' ' || CAST(not_before AS TEXT) || ' ' || CAST(coalesce(message, 0) AS TEXT)
				FROM envelopes ORDER BY id`),
			read(tx, 2, `SELECT content, coalesce(run, '') FROM messages ORDER BY row`),
			read(tx, 3, `SELECT id, state, error FROM runs ORDER BY id`),
			read(tx, 3, `SELECT state, coalesce(platform_id, ''), error || ' ' || CAST(attempts AS TEXT) || ' ' || CAST(reserved_at AS TEXT)
				|| ' ' || CAST(due_at AS TEXT) FROM deliveries ORDER BY id`),
			read(tx, 2, `SELECT channel, CAST(next_at AS TEXT) FROM paces ORDER BY channel`),
		)
	}))
	return out
}
