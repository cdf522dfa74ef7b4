package journaltest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"parley/ingest/event"
	"parley/ingest/journal"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/storage"
)

func transcriptPromises() []promise {
	return []promise{
		{"a passive message is in the block of the first turn that began after it", blocks},
		{"a message recorded during a run is in the next turn's block", blockDuringRun},
		{"turns are in the order of their first thread_seq", turnOrder},
		{"a thread's first turn is shown even if a later turn began before it", raisedFirst},
		{"deleted messages are not shown, and edited ones in their current state", asItStands},
		{"a block holds the root, the newest lines and the number of omitted ones", blockWindow},
		{"empty messages are no lines unless they have files", emptyLines},
		{"a window without context lines shows the root alone", noContext},
		{"the window bounds the turns by number and by size", turnWindow},
		{"failed, stopped and dropped turns are shown, interrupted ones once", endedTurns},
		{"the context of failed turns whose messages were deleted is in the next turn's block", contextOfDeletedTurns},
		{"the context of deleted turns is in a small window, too", deletedTurnsInSmallWindow},
		{"a message whose turn was stopped before it began is in the next turn's block", stoppedTurn},
		{"the message on which a thread was opened comes first", openedOn},
		{"a reply of ours in another thread, on which a thread was opened, comes first, after its question", openedOnReply},
		{"a thread that was opened on a question begins with the question and its answer", openedOnQuestion},
		{"the next turn of a thread reads no message, unless one has changed or another came between", rememberedWindow},
		{"a remembered window has the messages that joined a run", rememberedJoin},
		{"a remembered window keeps to the bounds of the next one", rememberedBounds},
		{"the remembered windows have a bound", rememberedBytes},
		{"each message of a transcript has its UUID", uuids},
		{"the cost of a transcript does not depend on the thread", bounded},
	}
}

var wide = runs.Window{Turns: 50, Bytes: 100_000, Context: 20}

// transcript returns the run's transcript, one line for each message. The marks are "+"
// for the opening, "^" for the root, "#" for context, ">" for a message of the turn, "<"
// for the reply. A journal that remembers nothing must return the same, and PastInput too.
func (f *fixture) transcript(run *runs.Run, window runs.Window) []string {
	f.Helper()
	read := *run
	read.Fresh = false
	turns, err := journal.New(f.engine, journal.Options{}).Runs.Transcript(f.ctx, &read, window)
	f.must(err)
	want := marked(turns)
	turns, err = f.Runs.Transcript(f.ctx, run, window)
	f.must(err)
	same(f, "the transcript against one that was read", marked(turns), want)
	bounds := func(*runs.Run) runs.Window { return window }
	last, err := f.Runs.PastInput(f.ctx, run.ThreadID, "", bounds)
	if f.must(err); last.Run.ID == run.ID {
		same(f, "the input of the newest run", marked(last.Turns), want)
	}
	past, err := f.Runs.PastInput(f.ctx, run.ThreadID, run.ID, bounds)
	f.must(err)
	same(f, "the input of the run", marked(past.Turns), want)
	return want
}

func marked(turns []runs.Turn) []string {
	out := []string{}
	one := func(mark string, m *messages.Message) {
		if m != nil {
			out = append(out, mark+m.Content)
		}
	}
	for _, turn := range turns {
		for _, m := range turn.OpenedOn {
			one("+", &m)
		}
		one("^", turn.Root)
		if turn.Earlier > 0 {
			out = append(out, fmt.Sprint("...", turn.Earlier))
		}
		for _, m := range slices.Backward(turn.Context) {
			one("#", &m)
		}
		for _, m := range turn.Messages {
			one(">", &m)
		}
		one("<", turn.Reply)
	}
	return out
}

// say records a message whose id is its text.
func (f *fixture) say(text string, decide policy) {
	f.Helper()
	f.message(threadKey(1), said("C1/"+text, text), decide)
}

// ask records a message that triggers a run and answers it.
func (f *fixture) ask(text string) {
	f.Helper()
	f.exchange(threadKey(1), "C1/"+text, text, "re "+text)
}

func blocks(f *fixture) {
	f.say("still on?", passive)
	f.ask("tomorrow?")
	f.say("great", passive)
	f.say("remind us", triggers)
	run := f.begin(threadKey(1))
	want := []string{"^still on?", ">tomorrow?", "<re tomorrow?", "#great", ">remind us"}
	same(f, "transcript", f.transcript(run, wide), want)
	same(f, "repeated transcript", f.transcript(run, wide), want)
	same(f, "after a restart", f.transcript(f.successor("second").begin(threadKey(1)), wide), want)
}

// rememberedWindow looks at a third turn, with further events during the second one.
func rememberedWindow(f *fixture) {
	n := 0
	for name, c := range map[string]struct {
		event func(key event.ThreadKey, id string)
		used  int64
	}{
		"nothing":           {func(event.ThreadKey, string) {}, 2},
		"an edit":           {func(key event.ThreadKey, id string) { f.change(key, edited(id+"1", "new", "2"), triggers) }, 1},
		"a delete":          {func(key event.ThreadKey, id string) { f.change(key, deleted(id+"1"), nil) }, 1},
		"a passive message": {func(key event.ThreadKey, id string) { f.message(key, said(id+"p", "aside"), passive) }, 1},
		"a removal":         {func(_ event.ThreadKey, id string) { f.exec(`DELETE FROM messages WHERE external_id = $1`, id+"1") }, 1},
		"a new context":     {func(key event.ThreadKey, id string) { f.message(key, said(id+"n", "/new"), commands) }, 1},
	} {
		n++
		key, id, before := threadKey(n), fmt.Sprintf("C1/%d-", n), f.Runs.Remembered().Used
		for i := range 3 {
			f.message(key, said(fmt.Sprint(id, i), fmt.Sprint(i)), triggers)
			run := f.begin(key)
			f.transcript(run, wide)
			if i == 1 {
				c.event(key, id)
			}
			f.commit(run, answer(fmt.Sprint("re ", i)))
		}
		same(f, "windows that were used after "+name, f.Runs.Remembered().Used-before, c.used)
	}
}

// rememberedJoin has a message that came before the run began, and joined it later.
func rememberedJoin(f *fixture) {
	f.ask("a")
	f.say("b", triggers)
	f.say("c", triggers)
	run := f.mayBegin(threadKey(1), true)
	f.transcript(run, wide)
	waiting, err := f.Runs.Joinable(f.ctx, run)
	f.must(err)
	f.must(f.Runs.JoinRun(f.ctx, f.claim(run.Thread), run, &waiting[0]))
	f.commit(run, answer("re b"))
	f.say("d", triggers)
	same(f, "transcript", f.transcript(f.begin(threadKey(1)), wide), []string{">a", "<re a", ">b", ">c", "<re b", ">d"})
}

// rememberedBounds has more turns than fit into the window.
func rememberedBounds(f *fixture) {
	for n, window := range []runs.Window{{Turns: 3, Bytes: 1000}, {Turns: 50, Bytes: 12}} {
		key := threadKey(n + 1)
		for i := range 7 {
			f.message(key, said(fmt.Sprint("C1/", n, "-", i), fmt.Sprint(i)), triggers)
			run := f.begin(key)
			f.transcript(run, window)
			f.commit(run, answer(fmt.Sprint("re ", i)))
		}
	}
	same(f, "windows that were used", f.Runs.Remembered().Used, 12)
	f.message(threadKey(1), said("C1/wider", "wider"), triggers)
	f.transcript(f.begin(threadKey(1)), wide)
	same(f, "after a wider window", f.Runs.Remembered().Used, 12)
}

// rememberedBytes has windows that are larger than the memory for them. The first turn has no message but its own, and reads none.
func rememberedBytes(f *fixture) {
	f.Journal = journal.New(f.engine, journal.Options{Node: "first", Now: f.clock.Now, Remembered: 1000})
	for i := range 2 {
		f.message(threadKey(1), said(fmt.Sprint("C1/", i), strings.Repeat("a", 1000)), triggers)
		run := f.begin(threadKey(1))
		f.transcript(run, wide)
		f.commit(run, answer("re"))
	}
	same(f, "windows", f.Runs.Remembered(), runs.Remembered{Read: 1})
}

// uuids compares the messages of a transcript with those of the list of messages.
func uuids(f *fixture) {
	f.ask("a")
	f.say("b", passive)
	f.say("c", triggers)
	turns, err := f.Runs.Transcript(f.ctx, f.begin(threadKey(1)), wide)
	f.must(err)
	id := func(m messages.Message) string { return m.UUID }
	var got []string
	for _, turn := range turns {
		got = append(append(got, each(turn.Context, id)...), each(turn.Messages, id)...)
		if turn.Reply != nil {
			got = append(got, turn.Reply.UUID)
		}
	}
	same(f, "UUIDs", got, each(f.list(threadKey(1)), func(m messages.Listed) string { return m.UUID }))
}

func blockDuringRun(f *fixture) {
	f.say("a", triggers)
	run := f.begin(threadKey(1))
	f.say("b", passive)
	same(f, "first turn", f.transcript(run, wide), []string{">a"})
	f.commit(run, answer("re a"))
	f.say("c", triggers)
	same(f, "second turn", f.transcript(f.begin(threadKey(1)), wide), []string{">a", "<re a", "#b", ">c"})
}

func turnOrder(f *fixture) {
	f.say("a", passive)
	f.ask("b")
	f.ask("c")
	f.message(threadKey(1), said("C1/a", "a"), triggers) // a second payload raises its trigger
	run := f.begin(threadKey(1))
	same(f, "the current turn is last", f.transcript(run, wide), []string{">b", "<re b", ">c", "<re c", ">a"})
	f.commit(run, answer("re a"))
	f.say("d", triggers)
	same(f, "order", f.transcript(f.begin(threadKey(1)), wide), []string{">a", "<re a", ">b", "<re b", ">c", "<re c", ">d"})
}

func raisedFirst(f *fixture) {
	f.say("a", passive)
	f.ask("b")
	f.say("c", passive)
	f.message(threadKey(1), said("C1/a", "a"), triggers)
	same(f, "transcript", f.transcript(f.begin(threadKey(1)), wide), []string{">b", "<re b", "#c", ">a"})
}

func asItStands(f *fixture) {
	f.say("a", passive)
	f.say("b", passive)
	f.say("c", triggers)
	f.say("d", triggers)
	f.commit(f.begin(threadKey(1)), answer("re c"))
	f.say("e", triggers)
	f.say("f", triggers)
	run := f.begin(threadKey(1))
	f.change(threadKey(1), deleted("C1/f"), nil)
	f.change(threadKey(1), deleted("C1/a"), nil)
	f.change(threadKey(1), deleted("C1/c"), nil)
	f.change(threadKey(1), edited("C1/b", "B", "2"), passive)
	f.change(threadKey(1), edited("C1/e", "E", "2"), triggers)
	run.Fresh = false // its worker knows of the changes
	same(f, "transcript", f.transcript(run, wide), []string{"#B", ">d", "<re c", ">E"})
}

func blockWindow(f *fixture) {
	for i := range 10 {
		f.say(fmt.Sprint("p", i), passive)
	}
	f.say("q", triggers)
	run := f.begin(threadKey(1))
	narrow := runs.Window{Turns: 50, Bytes: 1000, Context: 3}
	same(f, "transcript", f.transcript(run, narrow), []string{"^p0", "...6", "#p7", "#p8", "#p9", ">q"})
	f.change(threadKey(1), deleted("C1/p4"), nil)
	same(f, "without one", f.transcript(run, narrow), []string{"^p0", "...5", "#p7", "#p8", "#p9", ">q"})
	f.change(threadKey(1), deleted("C1/p0"), nil)
	same(f, "without the root", f.transcript(run, narrow), []string{"...5", "#p7", "#p8", "#p9", ">q"})
	all := runs.Window{Turns: 50, Bytes: 1000, Context: 8}
	same(f, "all messages", f.transcript(run, all)[0], "#p1")
	f.commit(run, answer("r"))
	for i := range 4 {
		f.say(fmt.Sprint("s", i), passive)
	}
	f.say("t", triggers)
	same(f, "a later block has no root", f.transcript(f.begin(threadKey(1)), narrow)[6:], []string{"...1", "#s1", "#s2", "#s3", ">t"})
}

func emptyLines(f *fixture) {
	f.message(threadKey(1), said("C1/1", ""), passive)
	f.message(threadKey(1), said("C1/2", "a"), passive)
	for i := range 3 {
		f.message(threadKey(1), said(fmt.Sprint("C1/e", i), ""), passive)
	}
	file := said("C1/3", "")
	file.Attachments = []event.Attachment{{ID: "F1", Name: "f"}}
	f.message(threadKey(1), file, passive)
	f.message(threadKey(1), said("C1/4", "q"), triggers)
	run := f.begin(threadKey(1))
	turns, err := f.Runs.Transcript(f.ctx, run, runs.Window{Turns: 1, Bytes: 1, Context: 2})
	f.must(err)
	same(f, "lines", contents(turns[0].Context), []string{"", "a"})
	same(f, "files", len(turns[0].Context[0].Attachments), 1)
	same(f, "earlier", turns[0].Earlier, 0)
	same(f, "root", turns[0].Root == nil, true)
}

func noContext(f *fixture) {
	f.say("a", passive)
	f.say("b", passive)
	f.say("c", triggers)
	same(f, "transcript", f.transcript(f.begin(threadKey(1)), runs.Window{Turns: 1}), []string{"^a", "...1", ">c"})
}

func turnWindow(f *fixture) {
	for _, text := range []string{"a", "b", "c"} {
		f.ask(text)
	}
	f.say("d", triggers)
	run := f.begin(threadKey(1))
	same(f, "two turns", f.transcript(run, runs.Window{Turns: 2, Bytes: 1000, Context: 20}), []string{">c", "<re c", ">d"})
	same(f, "one turn", f.transcript(run, runs.Window{Turns: 1, Bytes: 1000, Context: 20}), []string{">d"})
	same(f, "the zero window", f.transcript(run, runs.Window{}), []string{">d"})
	same(f, "six bytes", f.transcript(run, runs.Window{Turns: 50, Bytes: 6, Context: 20}), []string{">c", "<re c", ">d"})
	same(f, "seven bytes", f.transcript(run, runs.Window{Turns: 50, Bytes: 7, Context: 20})[0], ">b")
}

func endedTurns(f *fixture) {
	f.say("a", triggers)
	f.fail(f.begin(threadKey(1)), "Sorry.")
	f.say("b", passive)
	f.say("c", triggers)
	stopped := f.begin(threadKey(1))
	f.leaves(stopped, runs.Unanswered{State: runs.Canceled, Cause: "stopped"})
	f.say("d", triggers)
	run := f.begin(threadKey(1))
	f.say("e", passive)
	late := answer("late")
	late.Stale = "drop"
	f.commit(run, late)
	f.say("f", triggers)
	run = f.begin(threadKey(1))
	f.say("g", triggers)
	f.leaves(run, runs.Unanswered{State: runs.Interrupted})
	same(f, "transcript", f.transcript(f.begin(threadKey(1)), wide), []string{">a", "#b", ">c", ">d", "#e", ">f", ">g"})
}

func openedOnReply(f *fixture) {
	f.exchange(threadKey(2), "C1/command-1", "/ask", "re ask", "re ", "ask")
	f.deliver(threadKey(2), "C1/8")
	f.deliver(threadKey(2), "C1/9")
	m := said("C1/a", "a")
	m.OpenedOn = "C1/8"
	f.message(threadKey(1), m, triggers)
	same(f, "transcript", f.transcript(f.begin(threadKey(1)), wide), []string{"+/ask", "+re ask", ">a"})
	m = said("C1/b", "b")
	m.OpenedOn = "C1/8"
	f.message(threadKey(2), m, triggers)
	same(f, "in its own thread", f.transcript(f.begin(threadKey(2)), wide), []string{">/ask", "<re ask", ">b"})
}

func openedOnQuestion(f *fixture) {
	f.message(threadKey(2), said("C1/7", "earlier"), passive)
	f.message(threadKey(2), said("C1/8", "a flat?"), triggers)
	f.message(threadKey(2), said("C1/9", "a big one"), triggers)
	f.commit(f.begin(threadKey(2)), answer("At the river."))
	m := said("C1/a", "which?")
	m.OpenedOn = "C1/9"
	f.message(threadKey(1), m, triggers)
	run := f.begin(threadKey(1))
	same(f, "transcript", f.transcript(run, wide), []string{"+a flat?", "+a big one", "+At the river.", ">which?"})
	f.change(threadKey(2), deleted("C1/8"), nil)
	same(f, "after a delete", f.transcript(run, wide), []string{"+a big one", "+At the river.", ">which?"})
}

func deletedTurnsInSmallWindow(f *fixture) {
	f.ask("a")
	f.say("after a", passive)
	const hidden = 12 // more than one page
	for i := range hidden {
		question := fmt.Sprint("b", i)
		f.say(question, triggers)
		f.fail(f.begin(threadKey(1)), "Sorry.")
		f.change(threadKey(1), deleted("C1/"+question), nil)
	}
	f.say("after b", passive)
	f.say("c", triggers)
	run := f.begin(threadKey(1))
	for turns, want := range map[int][]string{1: {"#after a", "#after b", ">c"}, 2: {">a", "<re a", "#after a", "#after b", ">c"}} {
		same(f, fmt.Sprint("a window of ", turns), f.transcript(run, runs.Window{Turns: turns, Bytes: 1000, Context: 20}), want)
	}
}

func contextOfDeletedTurns(f *fixture) {
	f.say("root", passive)
	for _, question := range []string{"b", "c"} {
		f.say(question, triggers)
		f.fail(f.begin(threadKey(1)), "Sorry.")
		f.say("after "+question, passive)
	}
	f.ask("d")
	f.say("e", triggers)
	run := f.begin(threadKey(1))
	same(f, "before", f.transcript(run, wide), []string{"^root", ">b", "#after b", ">c", "#after c", ">d", "<re d", ">e"})
	f.change(threadKey(1), deleted("C1/b"), nil)
	f.change(threadKey(1), deleted("C1/c"), nil)
	same(f, "after their deletes", f.transcript(run, wide), []string{"^root", "#after b", "#after c", ">d", "<re d", ">e"})
	f.change(threadKey(1), deleted("C1/d"), nil)
	same(f, "the reply is left", f.transcript(run, wide), []string{"^root", "#after b", "#after c", "<re d", ">e"})
}

func stoppedTurn(f *fixture) {
	f.say("root", passive)
	f.say("b", triggers)
	f.say("c", triggers)
	f.message(threadKey(1), said("C1/stop", "/stop"), commands)
	f.say("d", triggers)
	run := f.begin(threadKey(1))
	want := []string{"^root", "#b", "#c", ">d"}
	same(f, "the next turn", f.transcript(run, wide), want)
	f.commit(run, answer("re d"))
	f.say("e", triggers)
	run = f.begin(threadKey(1))
	same(f, "the turn after it", f.transcript(run, wide), append(want, "<re d", ">e"))
	f.change(threadKey(1), deleted("C1/b"), nil)
	same(f, "after a delete", f.transcript(run, wide), []string{"^root", "#c", ">d", "<re d", ">e"})
}

func openedOn(f *fixture) {
	f.message(threadKey(2), said("C1/root", "shall we?"), passive)
	m := said("C1/1", "first")
	m.OpenedOn = "C1/root"
	f.message(threadKey(1), m, passive)
	f.ask("b")
	f.say("c", triggers)
	want := []string{"+shall we?", "^first", ">b", "<re b", ">c"}
	run := f.begin(threadKey(1))
	same(f, "transcript", f.transcript(run, wide), want)
	f.change(threadKey(2), deleted("C1/root"), nil)
	same(f, "after its delete", f.transcript(run, wide), want[1:])
}

// bounded compares a thread of a thousand messages with one twenty times as long: the
// number of queries and of returned rows is the same.
func bounded(f *fixture) {
	cost := func(key event.ThreadKey, messages int) tally {
		f.message(key, said(string(key)+"0", "0"), passive)
		f.grow(key, messages/2)
		f.exchange(key, string(key)+"q", "q", "r")
		f.grow(key, messages/2)
		f.message(key, said(string(key)+"p", "p"), triggers)
		run := f.begin(key)
		counting := &counter{Engine: f.engine}
		turns, err := journal.New(counting, journal.Options{}).Runs.Transcript(f.ctx, run, wide)
		f.must(err)
		same(f, "turns", len(turns), 2)
		same(f, "lines", len(turns[1].Context), 20)
		same(f, "earlier", turns[1].Earlier, min(messages/2-20, runs.EarlierLimit))
		return counting.tally
	}
	small, large := cost(threadKey(1), 1_000), cost(threadKey(2), 20_000)
	same(f, "cost of 20,000 messages against 1,000", large, small)
	if small.Queries > 20 || small.Rows > 100 {
		f.Fatalf("a window of two turns costs %+v", small)
	}
}

// grow adds passive messages to a thread like intake.
func (f *fixture) grow(key event.ThreadKey, n int) {
	f.Helper()
	thread := f.thread(key)
	f.must(f.engine.Write(f.ctx, storage.WriteOptions{}, func(tx storage.Tx) error {
		var seq int64
		if _, err := tx.Row([]any{&seq}, `SELECT next_seq FROM threads WHERE id = $1`, thread); err != nil {
			return err
		}
		if _, err := tx.Exec(`INSERT INTO messages (id, thread, seq, workspace, external_id, sender_id, author, trigger, content,
				metadata, version, origin, sent_at, created_at)
			WITH RECURSIVE n (seq) AS (SELECT CAST($1 AS BIGINT) UNION ALL SELECT seq + 1 FROM n WHERE seq + 1 < $2)
			SELECT $5 || CAST(seq AS TEXT), CAST($3 AS BIGINT), seq, $4, $5 || CAST(seq AS TEXT), 'slack:U1', 'human', 'passive', 'x',
				(SELECT metadata FROM messages WHERE thread = $3 AND seq = 1), 1, 'live', 1, 1 FROM n`,
			seq, seq+int64(n), thread, workspace, string(key)+"/"); err != nil {
			return err
		}
		_, err := tx.Exec(`UPDATE threads SET next_seq = $1 WHERE id = $2`, seq+int64(n), thread)
		return err
	}))
}

// tally counts the reads.
type tally struct{ Queries, Rows int }

// counter is an engine that counts reads, and refuses a query without a bound.
type counter struct {
	storage.Engine
	bound string // words that bound a query besides those of a transcript; may be empty
	tally tally
}

func (c *counter) Read(ctx context.Context, fn func(storage.Tx) error) error {
	return c.Engine.Read(ctx, func(tx storage.Tx) error { return fn(counted{tx, c}) })
}

type counted struct {
	storage.Tx
	*counter
}

func (c counted) Row(dest []any, query string, args ...any) (bool, error) {
	c.tally.Queries++
	c.tally.Rows++
	return c.Tx.Row(dest, query, args...)
}

func (c counted) Rows(visit func(func(...any) error) error, query string, args ...any) error {
	c.tally.Queries++
	bounds := []string{"LIMIT", "run = $1", "message = $1", cmp.Or(c.bound, "LIMIT")}
	if !slices.ContainsFunc(bounds, func(bound string) bool { return strings.Contains(query, bound) }) {
		return fmt.Errorf("no bound in %s", query)
	}
	return c.Tx.Rows(func(scan func(...any) error) error {
		c.tally.Rows++
		return visit(scan)
	}, query, args...)
}
