package journaltest

import (
	"strconv"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/record"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
)

func threadPromises() []promise {
	return []promise{
		{"a client makes a thread once, and it belongs to the first", threadMadeOnce},
		{"a client's threads are listed, the newest first", threadsOfClient},
		{"clients take part in a thread until they leave it", participantsOfThread},
		{"an actor learns of its threads and mentions, in order", newsOfActors},
		{"a thread's mode decides about its messages", modeOfThread},
		{"readers of a thread are woken by its messages and their changes", readersOfThread},
		{"edits and deletes of a thread are read in the order of their times", changesOfThread},
		{"the senders of a thread are listed, those of the newest messages last", sendersOfThread},
		{"an agent's message says how much of its thread the agent knew", knownByAgent},
	}
}

// at returns a pointer to a thread_seq.
func at(seq int64) *int64 { return &seq }

const olivia, ash = "user:1", "user:2"

// make makes the test's nth thread for a client.
func (f *fixture) make(n int, madeBy string, mode threads.ThreadMode) (threads.Thread, bool) {
	f.Helper()
	t, made, err := f.Threads.MakeThread(f.ctx, event.Web, channel, threads.Thread{Workspace: workspace, Key: threadKey(n), Mode: mode, MadeBy: madeBy})
	f.must(err)
	return t, made
}

func threadMadeOnce(f *fixture) {
	first, made := f.make(1, olivia, threads.ModeInvocationOnly)
	same(f, "made", made, true)
	same(f, "its owner, mode and newest message", [3]any{first.MadeBy, first.Mode, first.Newest}, [3]any{olivia, threads.ModeInvocationOnly, int64(0)})
	same(f, "its time", first.CreatedAt, f.clock.Now())
	f.clock.advance(time.Second)
	f.message(threadKey(1), said("C1/1", "hi"), passive)
	second, made := f.make(1, ash, threads.ModeOpen)
	same(f, "made again", made, false)
	same(f, "the owner of the first", second.MadeBy, olivia)
	same(f, "its time", second.CreatedAt, first.CreatedAt)
	same(f, "its newest message", second.Newest, 1)

	f.message(threadKey(2), said("C1/2", "hi"), passive)
	other, err := f.Threads.Thread(f.ctx, workspace, f.threadID(threadKey(2)))
	f.must(err)
	same(f, "a thread that its first message made", [3]any{other.MadeBy, other.Mode, other.CreatedAt}, [3]any{"", threads.ModeOpen, f.clock.Now()})
	_, err = f.Threads.Thread(f.ctx, "other", other.ID)
	f.fails("a thread of another workspace", err, storage.ErrNotFound)
}

func threadsOfClient(f *fixture) {
	for i := range 3 {
		f.make(i+1, olivia, threads.ModeOpen)
		f.clock.advance(time.Second)
	}
	f.make(4, ash, threads.ModeOpen)
	f.message(threadKey(5), said("C1/5", "nobody's"), passive)
	f.clock.advance(time.Second)
	private, _, err := f.Threads.MakeThread(f.ctx, event.Web, channel, threads.Thread{Workspace: workspace, Key: threadKey(6), Mode: threads.ModeOpen, MadeBy: ash, Closed: true}, olivia)
	f.must(err)
	page := func(actor string, open bool, before string) ([]string, string) {
		list, err := f.Threads.ThreadsOf(f.ctx, workspace, actor, open, before, 2)
		f.must(err)
		return each(list, func(t threads.Thread) string { return string(t.Key) }), list[len(list)-1].Cursor()
	}
	got, next := page(olivia, false, "")
	same(f, "the first page", got, []string{string(threadKey(6)), string(threadKey(3))})
	got, _ = page(olivia, false, next)
	same(f, "the second page", got, []string{string(threadKey(2)), string(threadKey(1))})
	const agent = "agent:7"
	got, next = page(agent, true, "")
	same(f, "those that are open to an agent", got, []string{string(threadKey(4)), string(threadKey(3))})
	got, next = page(agent, true, next)
	same(f, "the rest of them", got, []string{string(threadKey(2)), string(threadKey(1))})
	none, err := f.Threads.ThreadsOf(f.ctx, workspace, agent, true, next, 2)
	f.must(err)
	same(f, "behind the last", len(none), 0)
	_, err = f.Threads.AddParticipant(f.ctx, &private, agent)
	f.must(err)
	got, _ = page(agent, true, "")
	same(f, "with the one that is closed to others", got, []string{string(threadKey(6)), string(threadKey(4))})
	_, err = f.Threads.ThreadsOf(f.ctx, workspace, olivia, false, "yesterday", 2)
	if _, ok := err.(event.FieldErrors); !ok {
		f.Fatalf("a position that is none: %v", err)
	}
	active := func(what string, want event.ThreadKey) {
		f.Helper()
		last, err := f.Threads.LastActive(f.ctx, workspace, olivia)
		f.must(err)
		same(f, what, last.Key, want)
	}
	active("without messages, the newest in which a client takes part", threadKey(6))
	f.clock.advance(time.Second)
	f.message(threadKey(2), said("C1/2", "again here"), passive)
	active("that with the newest message", threadKey(2))
	f.clock.advance(time.Second)
	f.message(threadKey(5), said("C1/6", "elsewhere"), passive)
	active("of those in which it takes part", threadKey(2))
	_, err = f.Threads.LastActive(f.ctx, workspace, "user:9")
	f.fails("of a client without threads", err, storage.ErrNotFound)
}

func participantsOfThread(f *fixture) {
	thread, _ := f.make(1, olivia, threads.ModeOpen)
	takesPart := func(actor string) bool {
		yes, err := f.Threads.TakesPart(f.ctx, &thread, actor)
		f.must(err)
		return yes
	}
	same(f, "the client that made it, and another", [2]bool{takesPart(olivia), takesPart(ash)}, [2]bool{true, false})
	for _, want := range []bool{true, false} {
		added, err := f.Threads.AddParticipant(f.ctx, &thread, ash)
		f.must(err)
		same(f, "added", added, want)
	}
	all, err := f.Threads.Participants(f.ctx, &thread)
	f.must(err)
	same(f, "all", all, []string{olivia, ash})
	f.must(f.Threads.RemoveParticipant(f.ctx, &thread, ash))
	same(f, "removed", takesPart(ash), false)
	f.fails("removed again", f.Threads.RemoveParticipant(f.ctx, &thread, ash), storage.ErrNotFound)
	f.must(f.Threads.SetThreadMode(f.ctx, &thread, threads.ModeInvocationOnly))
	thread, err = f.Threads.Thread(f.ctx, workspace, thread.ID)
	f.must(err)
	same(f, "the new mode", thread.Mode, threads.ModeInvocationOnly)
}

func newsOfActors(f *fixture) {
	changed, stop := f.Threads.FollowNews(workspace, ash)
	defer stop()
	woken := func(what string, want bool) {
		f.Helper()
		same(f, what, len(changed) > 0, want)
		if want {
			<-changed
		}
	}
	news := func(actor string, open bool, after int64) []string {
		f.Helper()
		list, err := f.Messages.NewsOf(f.ctx, workspace, actor, open, after, 9)
		f.must(err)
		return each(list, func(n messages.News) string {
			words := strconv.FormatInt(n.Seq, 10) + " " + string(n.Thread.Key)
			switch {
			case n.Void:
				return words + " void"
			case n.Message != nil:
				return words + " " + n.Message.Content
			}
			return words
		})
	}
	thread, _ := f.make(1, olivia, threads.ModeOpen)
	woken("a thread of others", false)
	_, err := f.Threads.AddParticipant(f.ctx, &thread, ash)
	f.must(err)
	woken("a thread", true)
	m := said("C1/1", "Ash?")
	m.Mentions = []string{"agent:7", ash}
	f.message(threadKey(1), m, passive)
	woken("a mention", true)
	f.message(threadKey(1), m, passive)
	woken("the same message", false)
	f.message(threadKey(1), said("C1/2", "hi"), passive)
	woken("a message to others", false)
	key := string(threadKey(1))
	same(f, "the news", news(ash, false, 0), []string{"1 " + key, "2 " + key + " Ash?"})
	same(f, "later ones", news(ash, false, 1), []string{"2 " + key + " Ash?"})
	same(f, "those of an agent outside", news("agent:7", true, 0), []string{"1 " + key + " Ash?"})
	same(f, "those of the client that made it", news(olivia, false, 0), []string{"1 " + key})
	f.change(threadKey(1), deleted("C1/1"), nil)
	same(f, "of a deleted message", news(ash, false, 1), []string{"2 " + key + " void"})
	f.must(f.Threads.RemoveParticipant(f.ctx, &thread, ash))
	same(f, "of an actor that was removed", news(ash, false, 0), []string{"1 " + key + " void", "2 " + key + " void"})
	same(f, "its words are ours", f.Heard("news "+workspace+" "+ash), true)
	woken("words of another node", true)
}

func modeOfThread(f *fixture) {
	f.make(1, olivia, threads.ModeInvocationOnly)
	invoked := func(m *event.Message, look record.Look) record.Decision {
		if look.InvocationOnly() {
			return passive(m, look)
		}
		return triggers(m, look)
	}
	same(f, "the thread that a client made", f.message(threadKey(1), said("C1/1", "hi"), invoked).Trigger, messages.TriggerPassive)
	same(f, "any other", f.message(threadKey(2), said("C1/2", "hi"), invoked).Trigger, messages.TriggerRun)
}

func readersOfThread(f *fixture) {
	thread, _ := f.make(1, olivia, threads.ModeOpen)
	changed, stop := f.Threads.FollowThread(&thread)
	woken := func(what string, want bool) {
		f.Helper()
		select {
		case <-changed:
			same(f, what, true, want)
		default:
			same(f, what, false, want)
		}
	}
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	woken("a message", true)
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	woken("the same message", false)
	f.message(threadKey(2), said("C1/2", "hi"), triggers)
	woken("a message elsewhere", false)
	f.change(threadKey(1), edited("C1/1", "ho", "1"), triggers)
	woken("an edit", true)
	run := f.begin(threadKey(1))
	woken("a run that begins", true)
	f.commit(run, answer("Hello."))
	woken("a reply", true)
	f.change(threadKey(1), deleted("C1/1"), nil)
	woken("a delete", true)
	f.fail(f.asked(), "sorry")
	woken("a notice", true)
	f.Missed()
	woken("lost words", true)
	stop()
	f.Missed()
	woken("stopped", false)
}

func changesOfThread(f *fixture) {
	thread, _ := f.make(1, olivia, threads.ModeOpen)
	for _, id := range []string{"C1/1", "C1/2", "C1/3", "C1/4"} {
		f.message(threadKey(1), said(id, id), passive)
	}
	begun := f.clock.Now()
	changes := func(upTo int64, since time.Time, limit int) []string {
		list, err := f.Messages.ThreadChanges(f.ctx, &thread, upTo, since, limit)
		f.must(err)
		return each(list, func(m messages.Listed) string { return m.ExternalID + " " + m.Content })
	}
	same(f, "before a change", changes(4, time.Time{}, 9), []string{})
	for i, id := range []string{"C1/3", "C1/1", "C1/4"} {
		f.clock.advance(time.Second)
		f.change(threadKey(1), edited(id, "edited", string(rune('1'+i))), passive)
	}
	f.clock.advance(time.Second)
	f.change(threadKey(1), deleted("C1/2"), nil)
	same(f, "all changes", changes(4, begun, 9), []string{"C1/3 edited", "C1/1 edited", "C1/4 edited", "C1/2 "})
	same(f, "a page", changes(4, begun, 2), []string{"C1/3 edited", "C1/1 edited"})
	same(f, "the changes since a time", changes(4, begun.Add(3*time.Second), 9), []string{"C1/4 edited", "C1/2 "})
	same(f, "none since a later time", changes(4, begun.Add(5*time.Second), 9), []string{})
	same(f, "those of older messages", changes(2, begun, 9), []string{"C1/1 edited", "C1/2 "})
}

func sendersOfThread(f *fixture) {
	by := func(id, sender, name string) *event.Message {
		m := said(id, "hi")
		m.Metadata.SenderID, m.Metadata.SenderDisplayName = sender, name
		return m
	}
	f.message(threadKey(1), by("C1/1", olivia, "Liv"), passive)
	f.message(threadKey(1), by("C1/2", ash, "Ash"), passive)
	f.message(threadKey(1), by("C1/3", olivia, "Olivia"), passive)
	thread, err := f.Threads.Thread(f.ctx, workspace, f.threadID(threadKey(1)))
	f.must(err)
	senders, err := f.Messages.Senders(f.ctx, &thread)
	f.must(err)
	same(f, "senders with their newest names", each(senders, func(s messages.Sender) string {
		m, err := event.ReadMetadata(s.Metadata)
		f.must(err)
		return s.ID + " " + m.SenderDisplayName
	}), []string{ash + " Ash", olivia + " Olivia"})
}

func knownByAgent(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), passive)
	f.message(threadKey(1), said("C1/2", "ho"), passive)
	m := said("C1/3", "Hello.")
	m.Metadata.SenderID, m.Metadata.SenderType, m.Known = "agent:7", event.Bot, &event.Known{BaseSeq: at(1), LatestSeenSeq: at(2)}
	f.message(threadKey(1), m, passive)
	silent := said("C1/4", "Asking the other agent.")
	silent.Metadata.SenderType, silent.Known = event.Bot, new(event.Known)
	f.message(threadKey(1), silent, triggers)
	f.begin(threadKey(1))
	list := f.list(threadKey(1))
	same(f, "a person's", list[0].Freshness, nil)
	same(f, "an agent's", list[2].Freshness, &messages.Freshness{Known: *m.Known, ServerSeq: 2})
	same(f, "one that says nothing, also in a run", list[3].Freshness, &messages.Freshness{ServerSeq: 3})
}
