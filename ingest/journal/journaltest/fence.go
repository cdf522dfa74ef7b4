package journaltest

import (
	"errors"
	"fmt"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal"
)

func fencePromises() []promise {
	return []promise{
		{"a thread is claimed by one process at a time", oneOwner},
		{"a lease is given back by who has it alone", release},
		{"work that somebody else may do is not offered", dueForOthers},
		{"who claims what is free waits for nobody, and counts nothing of what is not", claimWaitsForNobody},
		{"work of a workspace that the node does not know is left to others", dueElsewhere},
		{"every write under an old fence fails and changes nothing", oldFence},
	}
}

func oneOwner(f *fixture) {
	thread := f.accept(f.envelope(event.KindMessage, threadKey(1), "C1/1")).Thread
	a := process(f.failing, f.ctx, f.engine, f.clock, "a", time.Minute)
	b := process(f.failing, f.ctx, f.engine, f.clock, "b", time.Minute)
	first := a.claim(thread)
	lease, err := b.Claim(f.ctx, thread, journal.Intake)
	f.must(err)
	same(f, "while the other has it", lease, nil)
	f.clock.advance(time.Minute)
	second := b.claim(thread)
	same(f, "fence", second.Fence, first.Fence+1)
	_, err = a.Claim(f.ctx, 4711, journal.Intake)
	f.must(err)
}

func release(f *fixture) {
	thread := f.accept(f.envelope(event.KindMessage, threadKey(1), "C1/1")).Thread
	a := process(f.failing, f.ctx, f.engine, f.clock, "a", time.Minute)
	b := process(f.failing, f.ctx, f.engine, f.clock, "b", time.Minute)
	old := *a.claim(thread)
	f.clock.advance(time.Minute)
	held := b.claim(thread)
	f.must(a.Release(f.ctx, []journal.Lease{old}))
	lease, err := a.Claim(f.ctx, thread, journal.Intake)
	f.must(err)
	same(f, "after a release by who had it before", lease, nil)
	f.must(b.Release(f.ctx, []journal.Lease{*held}))
	lease, err = a.Claim(f.ctx, thread, journal.Intake)
	f.must(err)
	same(f, "after its release", lease != nil, true)
}

func dueForOthers(f *fixture) {
	mine := f.accept(f.envelope(event.KindMessage, threadKey(1), "C1/1")).Thread
	a := process(f.failing, f.ctx, f.engine, f.clock, "a", time.Minute)
	b := process(f.failing, f.ctx, f.engine, f.clock, "b", time.Minute)
	a.claim(mine)
	f.clock.advance(time.Millisecond)
	free := f.accept(f.envelope(event.KindMessage, threadKey(2), "C1/2")).Thread
	limited, err := b.Due(f.ctx, journal.Intake, "", 1)
	f.must(err)
	same(f, "due for the other", limited, []int64{free})
	same(f, "due for the owner", a.due(journal.Intake), []int64{mine, free})
	f.clock.advance(time.Minute)
	same(f, "due after its lease", b.due(journal.Intake), []int64{mine, free})
}

func claimWaitsForNobody(f *fixture) {
	custody := f.accept(f.envelope(event.KindMessage, threadKey(1), "C1/1"))
	node := process(f.failing, f.ctx, f.engine, f.clock, "node", time.Minute)
	node.claim(custody.Thread)
	f.clock.advance(time.Minute)
	var claimed []journal.Lease
	waited := f.beside(func(tx journal.Tx) error { // as its own work, which goes on under the old lease
		if _, err := tx.Exec(`UPDATE threads SET next_seq = next_seq WHERE id = ?`, custody.Thread); err != nil {
			return err
		}
		_, err := tx.Exec(`UPDATE envelopes SET attempts = attempts WHERE id = ?`, custody.ID)
		return err
	}, func(journal.Tx) error { return nil }, func() (err error) {
		claimed, err = node.ClaimAll(f.ctx, []int64{custody.Thread}, journal.Intake)
		return err
	})
	if f.onShared() {
		same(f, "waits", waited, false)
		same(f, "claimed", claimed, []journal.Lease{})
		same(f, "claims", f.next(custody.Thread)[0].Claims, 1)
	}
}

func dueElsewhere(f *fixture) {
	other := f.envelope(event.KindMessage, threadKey(1), "C1/1")
	other.Envelope.Workspace = workspace + "-2"
	theirs := f.accept(other).Thread
	f.clock.advance(time.Millisecond)
	ours := f.accept(f.envelope(event.KindMessage, threadKey(2), "C1/2")).Thread
	same(f, "due before it was told", f.due(journal.Intake), []int64{theirs, ours})
	f.Serve([]string{"home", workspace})
	same(f, "due", f.due(journal.Intake), []int64{ours})
	f.Serve([]string{workspace, workspace + "-2"})
	same(f, "due once it knows both", f.due(journal.Intake), []int64{theirs, ours})
}

func oldFence(f *fixture) {
	f.message(threadKey(1), said("C1/1", "one"), runs)
	f.exchange(threadKey(1), "C1/2", "two", "2", "2", "and 2")
	f.message(threadKey(1), said("C1/3", "three"), runs)
	run := f.begin(threadKey(1))
	custody := f.accept(f.envelope(event.KindMessage, threadKey(1), "C1/4"))
	delivery := f.delivery(threadKey(1))
	old := f.claim(custody.Thread)
	f.successor("second").claim(custody.Thread)
	before := f.dump()

	soon, cause := f.clock.Now().Add(time.Second), errors.New("cause")
	for name, write := range map[string]func() error{
		"Record": func() error {
			_, err := f.Record(f.ctx, old, entry(custody.ID, event.Event{Kind: event.KindMessage, Message: said("C1/4", "four")}, runs))
			return err
		},
		"Postpone": func() error { return f.Postpone(f.ctx, old, custody.ID, soon, cause) },
		"Bury":     func() error { return f.Bury(f.ctx, old, custody.ID, cause) },
		"BeginRun": func() error {
			_, err := f.BeginRun(f.ctx, old, agent, func(string, string) bool { return false })
			return err
		},
		"CommitReply": func() error {
			_, err := f.CommitReply(f.ctx, old, run, answer("3", "3"))
			return err
		},
		"CancelRun":    func() error { return f.CancelRun(f.ctx, old, run, "cause") },
		"InterruptRun": func() error { return f.InterruptRun(f.ctx, old, run) },
		"RetryRun":     func() error { return f.RetryRun(f.ctx, old, run, soon, cause) },
		"FailRun":      func() error { return f.FailRun(f.ctx, old, run, cause, answer("", "Sorry.").Posts, nil) },
		"BeginSend": func() error {
			_, err := f.BeginSend(f.ctx, old, delivery, journal.Send{Timeout: time.Second, Every: time.Second})
			return err
		},
		"Sent": func() error {
			_, err := f.Sent(f.ctx, old, delivery, "C1/9")
			return err
		},
		"Resend":        func() error { return f.Resend(f.ctx, old, delivery, soon, "cause", true) },
		"AwaitReadBack": func() error { return f.AwaitReadBack(f.ctx, old, delivery, soon, "cause") },
		"GiveUp": func() error {
			_, err := f.GiveUp(f.ctx, old, delivery, journal.DeliveryFailed, "cause")
			return err
		},
		"Release": func() error {
			if err := f.Release(f.ctx, []journal.Lease{*old}); err != nil {
				return err
			}
			return journal.ErrFenced // it has nothing to say to who is not the owner
		},
	} {
		f.fails(name, write(), journal.ErrFenced)
		same(f, "rows after "+name, f.dump(), before)
	}
}

// dump is all that a thread's work may change.
func (f *fixture) dump() []string {
	f.Helper()
	var out []string
	read := func(tx journal.Tx, columns int, query string) error {
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
	f.must(f.engine.Read(f.ctx, func(tx journal.Tx) error {
		out = nil
		return errors.Join(
			read(tx, 3, `SELECT key, owner, agent || ' ' || CAST(fence AS TEXT) || ' ' || CAST(next_seq AS TEXT) || ' ' || CAST(begun_seq AS TEXT)
				|| ' ' || CAST(pending AS TEXT) || ' ' || CAST(coalesce(intake_at, 0) AS TEXT) || ' ' || CAST(coalesce(turn_at, 0) AS TEXT)
				|| ' ' || CAST(coalesce(turn_since, 0) AS TEXT) || ' ' || CAST(run AS TEXT) || ' ' || CAST(coalesce(deliver_at, 0) AS TEXT)
				FROM threads ORDER BY id`),
			read(tx, 3, `SELECT state, error, CAST(attempts AS TEXT) || ' ' || CAST(not_before AS TEXT) || ' ' || CAST(coalesce(message, 0) AS TEXT)
				FROM envelopes ORDER BY id`),
			read(tx, 2, `SELECT content, CAST(coalesce(run, 0) AS TEXT) FROM messages ORDER BY id`),
			read(tx, 3, `SELECT id, state, error || ' ' || CAST(attempts AS TEXT) || ' ' || CAST(claims AS TEXT) FROM runs ORDER BY row`),
			read(tx, 3, `SELECT state, coalesce(platform_id, ''), error || ' ' || CAST(attempts AS TEXT) || ' ' || CAST(reserved_at AS TEXT)
				|| ' ' || CAST(not_before AS TEXT) FROM deliveries ORDER BY id`),
			read(tx, 2, `SELECT channel, CAST(next_at AS TEXT) FROM paces ORDER BY channel`),
		)
	}))
	return out
}
