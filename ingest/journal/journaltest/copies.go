package journaltest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal"
	"parley/ingest/journal/files"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/storage"
)

func copyPromises() []promise {
	return []promise{
		{"the copy of a deleted message's file is removed at once", copyRemoved},
		{"a copy of two messages stays until both are deleted", copyShared},
		{"the copy of a file that the platform removed is removed", copyOfGoneFile},
		{"a copy made during the delete of its message is removed", copyTooLate},
		{"a copy that is stored beside the delete of its message is removed within a day", copyBesideDelete},
		{"a copy that is stored during its removal is copied again", copyStoredMeanwhile},
		{"no other node can hold or remove a copy during its removal", copyHeldMeanwhile},
		{"a copy can be held again after a removal of unknown outcome", copyHeldLater},
		{"a delete during a removal checks the copy again", copyDeletedMeanwhile},
		{"a failed removal is repeated later, and stops no other", copyRemovalFails},
		{"the copy of an agent's file stays while a delivery names it", copyOfAgent},
		{"the copy of an agent's file is removed with its deleted post", copyOfDeletedReply},
		{"the copy of a file of a reply without posts stays", copyOfUnposted},
		{"a lost copy is copied again", copyLost},
		{"the bytes of a bucket are those of its copies, each once", copyBytes},
		{"the bytes of a sender's files have a bound for all nodes", senderBytes},
	}
}

const copyPath = "ab/cd"

// withCopy records a message with a file whose copy is stored.
func (f *fixture) withCopy(n int, id, path string) files.Attachment {
	f.Helper()
	m := said(id, "look")
	m.Attachments = []event.Attachment{{ID: "F-" + id, Name: "a.png"}}
	f.message(threadKey(n), m, passive)
	list := f.list(threadKey(n))
	file := list[len(list)-1].Attachments[0]
	f.stored(file, path)
	return file
}

// stored records that an attachment's copy is stored.
func (f *fixture) stored(file files.Attachment, path string) {
	f.Helper()
	file.State, file.Bucket, file.Path = files.Stored, "attachments", path
	f.must(f.Files.SetAttachment(f.ctx, file, "sum"))
}

// woken reports whether the remover has a signal.
func (f *fixture) woken() bool {
	select {
	case <-f.Files.UnusedCopies():
		return true
	default:
		return false
	}
}

// removed returns the paths of the copies that are removed now.
func (f *fixture) removed() (paths []string) {
	f.Helper()
	f.must(f.Files.RemoveCopies(f.ctx, func(_ context.Context, bucket, path string) error {
		same(f, "bucket", bucket, "attachments")
		paths = append(paths, path)
		return nil
	}))
	return paths
}

func copyRemoved(f *fixture) {
	f.withCopy(1, "C1/1", copyPath)
	same(f, "removed before", f.removed(), nil)
	same(f, "signal before", f.woken(), false)
	f.change(threadKey(1), deleted("C1/1"), nil)
	same(f, "signal", f.woken(), true)
	same(f, "removed", f.removed(), []string{copyPath})
	same(f, "rows", f.count("copies_to_check")+f.count("attachments"), 0)
	f.message(threadKey(1), said("C1/2", "no file"), passive)
	f.change(threadKey(1), deleted("C1/2"), nil)
	same(f, "signal of a message without files", f.woken(), false)
}

func copyShared(f *fixture) {
	f.withCopy(1, "C1/1", copyPath)
	f.withCopy(2, "C1/2", copyPath)
	f.withCopy(3, "C1/3", "aa/other")
	f.withCopy(4, "C1/4", copyPath)
	f.exec(`UPDATE attachments SET bucket = 'elsewhere' WHERE external_id = 'F-C1/4'`)
	f.must(f.Files.HoldCopy(f.ctx, "attachments", "aa/unused", day))
	f.change(threadKey(1), deleted("C1/1"), nil)
	same(f, "removed after the first delete", f.removed(), nil)
	f.change(threadKey(2), deleted("C1/2"), nil)
	same(f, "removed after the second delete", f.removed(), []string{copyPath})
	states := []files.State{f.list(threadKey(3))[0].Attachments[0].State, f.list(threadKey(4))[0].Attachments[0].State}
	same(f, "other copies", states, []files.State{files.Stored, files.Stored})
	f.clock.advance(day)
	same(f, "removed a day later", f.removed(), []string{"aa/unused"})
}

func copyOfGoneFile(f *fixture) {
	f.withCopy(1, "C1/1", copyPath)
	e := edited("C1/1", "look", "2")
	e.Message.Attachments = []event.Attachment{{ID: "F-C1/1", Gone: true}}
	f.change(threadKey(1), e, passive)
	same(f, "signal", f.woken(), true)
	same(f, "removed", f.removed(), []string{copyPath})
}

func copyTooLate(f *fixture) {
	m := said("C1/1", "look")
	m.Attachments = []event.Attachment{{ID: "F1", Name: "secret.pdf"}}
	f.message(threadKey(1), m, passive)
	old := f.list(threadKey(1))[0].Attachments[0]
	f.change(threadKey(1), deleted("C1/1"), nil)
	same(f, "removed before", f.removed(), nil)
	m = said("C1/2", "mine")
	m.Attachments = []event.Attachment{{ID: "F2", Name: "cat.png"}}
	f.message(threadKey(2), m, passive)
	f.woken()
	f.stored(old, copyPath)
	same(f, "file of the other message", f.list(threadKey(2))[0].Attachments[0].State, files.Pending)
	old.ID, old.Row = "F1", f.list(threadKey(2))[0].Attachments[0].Row // as if the row's id were reused
	f.stored(old, copyPath)
	same(f, "file of the other message", f.list(threadKey(2))[0].Attachments[0].State, files.Pending)
	same(f, "signal", f.woken(), true)
	same(f, "removed", f.removed(), []string{copyPath})
}

// within is an engine whose writes are part of an open transaction.
type within struct {
	storage.Engine
	tx storage.Tx
}

func (w within) Write(_ context.Context, _ storage.WriteOptions, fn func(storage.Tx) error) error {
	return fn(w.tx)
}

// copyBesideDelete stores the copy on another node after the delete has looked for copies.
func copyBesideDelete(f *fixture) {
	m := said("C1/1", "look")
	m.Attachments = []event.Attachment{{ID: "F1", Name: "secret.pdf"}}
	f.message(threadKey(1), m, passive)
	file := f.list(threadKey(1))[0].Attachments[0]
	file.State, file.Bucket, file.Path = files.Stored, "attachments", copyPath
	accepted := f.accept(f.envelope(event.KindDelete, threadKey(1), "C1/1"))
	claim := f.claim(accepted.Thread)
	f.beside(func(tx storage.Tx) error {
		_, err := tx.Exec(`UPDATE attachments SET name = name WHERE id = $1`, file.Row) // the delete waits for this row
		return err
	}, func(tx storage.Tx) error {
		return journal.New(within{f.engine, tx}, journal.Options{Now: f.clock.Now}).Files.SetAttachment(f.ctx, file, "sum")
	}, func() error {
		_, err := f.Recorder.Record(f.ctx, claim, entry(accepted.ID, deleted("C1/1"), nil))
		return err
	})
	same(f, "attachments", f.count("attachments"), 0)
	f.clock.advance(day)
	same(f, "removed", f.removed(), []string{copyPath})
}

func copyStoredMeanwhile(f *fixture) {
	f.withCopy(1, "C1/1", copyPath)
	f.change(threadKey(1), deleted("C1/1"), nil)
	f.must(f.Files.RemoveCopies(f.ctx, func(context.Context, string, string) error {
		f.withCopy(2, "C1/2", copyPath)
		return nil
	}))
	file := f.list(threadKey(2))[0].Attachments[0]
	same(f, "file", []string{string(file.State), file.Bucket, file.Path}, []string{string(files.Pending), "", ""})
	f.stored(file, copyPath)
	same(f, "state", f.list(threadKey(2))[0].Attachments[0].State, files.Stored)
}

func copyHeldMeanwhile(f *fixture) {
	f.must(f.Files.HoldCopy(f.ctx, "attachments", copyPath, day))
	f.clock.advance(day)
	other := f.successor("other")
	calls := 0
	f.must(f.Files.RemoveCopies(f.ctx, func(ctx context.Context, _, path string) error {
		if calls++; calls > 1 {
			return nil
		}
		f.fails("hold", other.Files.HoldCopy(ctx, "attachments", path, day), storage.ErrUnavailable)
		f.must(f.Files.HoldCopy(ctx, "elsewhere", path, day))
		f.exec(`UPDATE copies_to_check SET check_at = 0 WHERE bucket = 'attachments'`) // as a delete does
		return other.Files.RemoveCopies(ctx, func(context.Context, string, string) error { return errors.New("a second removal") })
	}))
	same(f, "checks of other copies", f.count("copies_to_check"), 1)
	f.must(other.Files.HoldCopy(f.ctx, "attachments", copyPath, day))
}

func copyHeldLater(f *fixture) {
	f.must(f.Files.HoldCopy(f.ctx, "attachments", copyPath, 0))
	refuse := errors.New("the connection broke")
	f.fails("removal", f.Files.RemoveCopies(f.ctx, func(context.Context, string, string) error { return refuse }), refuse)
	f.fails("at once", f.Files.HoldCopy(f.ctx, "attachments", copyPath, day), storage.ErrUnavailable)
	f.clock.advance(4 * time.Minute)
	f.must(f.Files.HoldCopy(f.ctx, "attachments", copyPath, day))
}

func copyDeletedMeanwhile(f *fixture) {
	f.withCopy(1, "C1/1", copyPath)
	f.change(threadKey(1), deleted("C1/1"), nil)
	calls := 0
	f.must(f.Files.RemoveCopies(f.ctx, func(context.Context, string, string) error {
		if calls++; calls == 1 {
			f.withCopy(2, "C1/2", copyPath)
			f.change(threadKey(2), deleted("C1/2"), nil)
		}
		return nil
	}))
	same(f, "removals", calls, 2)
}

func copyRemovalFails(f *fixture) {
	f.withCopy(1, "C1/1", "aa/1")
	f.withCopy(1, "C1/2", "aa/2")
	f.change(threadKey(1), deleted("C1/1"), nil)
	f.change(threadKey(1), deleted("C1/2"), nil)
	refuse := errors.New("the bucket refuses")
	calls := 0
	err := f.Files.RemoveCopies(f.ctx, func(context.Context, string, string) error {
		if calls++; calls == 1 {
			return refuse
		}
		return nil
	})
	f.fails("the first removal", err, refuse)
	same(f, "removals", calls, 2)
	same(f, "at once", len(f.removed()), 0)
	f.clock.advance(time.Hour)
	same(f, "an hour later", len(f.removed()), 1)
	same(f, "rows", f.count("copies_to_check"), 0)
}

// agentFile commits a reply with a file of the agent, and returns the post of the file.
func (f *fixture) agentFile(path string) *outbox.Delivery {
	f.Helper()
	f.must(f.Files.HoldCopy(f.ctx, "attachments", path, day))
	f.message(threadKey(1), said("C1/1", "draw"), triggers)
	reply := answer("Here.", "Here.")
	reply.Posts[0].File = &outbox.File{Name: "a.png", Bucket: "attachments", Path: path}
	f.commit(f.begin(threadKey(1)), reply)
	return f.deliver(threadKey(1), "C1/2")
}

func copyOfAgent(f *fixture) {
	f.must(f.Files.HoldCopy(f.ctx, "attachments", "aa/unused", day))
	f.agentFile(copyPath)
	same(f, "at once", f.removed(), nil)
	f.clock.advance(day)
	same(f, "after a day", f.removed(), []string{"aa/unused"})
	same(f, "a check a day later", f.count(fmt.Sprintf("copies_to_check WHERE check_at = %d", f.clock.Now().Add(day).UnixMilli())), 1)
	f.withCopy(2, "C1/3", copyPath)
	f.change(threadKey(2), deleted("C1/3"), nil)
	same(f, "with a deleted other message", f.removed(), nil)
	f.clock.advance(8 * day)
	f.prune()
	same(f, "after the payload is emptied", f.removed(), []string{copyPath})
}

func copyOfDeletedReply(f *fixture) {
	f.must(f.Files.HoldCopy(f.ctx, "attachments", "aa/new", day))
	f.agentFile(copyPath)
	f.change(threadKey(1), deleted("C1/2"), nil)
	same(f, "signal", f.woken(), true)
	same(f, "removed", f.removed(), []string{copyPath})
}

func copyOfUnposted(f *fixture) {
	f.must(f.Files.HoldCopy(f.ctx, "attachments", copyPath, day))
	f.message(threadKey(1), said("C1/1", "plot it"), triggers)
	reply := answer("here")
	reply.Files = []event.Attachment{{Name: "plot.png", Copy: &event.Copy{Bucket: "attachments", Path: copyPath}}}
	f.commit(f.begin(threadKey(1)), reply)
	f.clock.advance(2 * day)
	same(f, "removed", f.removed(), nil)
	same(f, "the reply's file", f.list(threadKey(1))[1].Attachments[0].Path, copyPath)
}

func copyLost(f *fixture) {
	f.withCopy(1, "C1/1", copyPath)
	f.withCopy(1, "C1/2", "aa/other")
	f.must(f.Files.CopyLost(f.ctx, "attachments", copyPath))
	states := each(f.list(threadKey(1)), func(m messages.Listed) files.State { return m.Attachments[0].State })
	same(f, "states", states, []files.State{files.Pending, files.Stored})
}

func copyBytes(f *fixture) {
	bytes := func(bucket string) int64 {
		n, err := f.Files.CopyBytes(f.ctx, bucket)
		f.must(err)
		return n
	}
	same(f, "without a copy", bytes("attachments"), 0)
	for i, path := range []string{copyPath, copyPath, "ab/other"} {
		m := said(fmt.Sprint("C1/", i), "look")
		m.Attachments = []event.Attachment{{ID: "F", Name: "a.png", Size: 100}}
		f.message(threadKey(i), m, passive)
		f.stored(f.list(threadKey(i))[0].Attachments[0], path)
	}
	same(f, "two copies of three files", bytes("attachments"), 200)
	same(f, "another bucket", bytes("other"), 0)
}

func senderBytes(f *fixture) {
	other := f.node("other")
	spend := func(node *fixture, sender string, bytes int64) bool {
		fits, err := node.Budgets.SpendBytes(f.ctx, sender, bytes, 250, time.Hour)
		f.must(err)
		return fits
	}
	same(f, "a file larger than the bound", spend(f, "olivia", 251), false)
	same(f, "at first", spend(f, "olivia", 100), true)
	same(f, "too many on another node", spend(other, "olivia", 151), false)
	same(f, "the rest on another node", spend(other, "olivia", 150), true)
	f.clock.advance(time.Hour - time.Millisecond)
	same(f, "within the hour", spend(f, "olivia", 1), false)
	same(f, "another sender", spend(f, "ash", 250), true)
	f.clock.advance(time.Millisecond)
	same(f, "after the hour", spend(f, "olivia", 250), true)
	f.clock.advance(-2 * time.Hour)
	same(f, "after the clock went back", spend(f, "olivia", 250), true)
}
