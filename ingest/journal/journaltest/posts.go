package journaltest

import (
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"parley/ingest/event"
	"parley/ingest/journal/listing"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/record"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/search"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
)

func postPromises() []promise {
	return []promise{
		{"a post is stored once, is a turn of its thread, and its deliveries are due", postStored},
		{"a post has the state of its parts", postState},
		{"posts for a person move behind the messages of their conversation", postsMove},
		{"posts of a thread with queues of their own wait for none of another queue", postsQueued},
		{"a reaction is stored once, and again if it has failed", reactionStored},
		{"a message that people are shown has a post above its answer, and so has what follows", messageShown},
		{"the copies of an answer are a queue of their own", answerCopied},
	}
}

// post stores a post of a program with two parts in the first thread.
func (f *fixture) post(id, content string) (thread int64, added bool) {
	f.Helper()
	thread, added, err := f.Recorder.AddPost(f.ctx, record.NewPost{
		ID: id, Thread: threads.Thread{Key: threadKey(1), ID: f.threadID(threadKey(1)), Workspace: workspace}, Platform: event.Slack, Channel: channel, Agent: agent,
		Content: content, Metadata: []byte("{}"), Posts: []outbox.Post{{Channel: channel, Text: content}, {Channel: channel, Text: "more"}},
	})
	f.must(err)
	return thread, added
}

func postStored(f *fixture) {
	f.message(threadKey(1), said("C1/1", "passive"), passive)
	id := uuid.NewString()
	thread, added := f.post(id, "RAIN")
	same(f, "added", added, true)
	again, added := f.post(id, "RAIN")
	same(f, "added again", added, false)
	same(f, "its thread", again, thread)
	f.message(threadKey(1), said("C1/2", "how much?"), triggers)
	same(f, "turns", f.turnsOf(f.begin(threadKey(1)), 50), []string{"passive||RAIN", "|how much?|"})
	same(f, "thread", f.lines(threadKey(1)), []string{"1 passive", "2 RAIN", "3 how much?"})
	d, err := f.Outbox.NextDelivery(f.ctx, thread)
	f.must(err)
	same(f, "its first part", d.Post.Text, "RAIN")
	same(f, "nobody asked", d.AskedAt.IsZero() && d.Begins(), true)
	_, err = f.Outbox.Sent(f.ctx, d, "C1/9")
	f.must(err)
	reply, err := f.Outbox.ReplyID(f.ctx, workspace, "C1/9")
	f.must(err)
	same(f, "the message of its post", reply, id)
}

func postState(f *fixture) {
	_, err := f.Recorder.PostOf(f.ctx, uuid.NewString())
	same(f, "an unknown post", errors.Is(err, storage.ErrNotFound), true)
	id := uuid.NewString()
	thread, _ := f.post(id, "RAIN")
	state := func(want outbox.State, platformID string) {
		f.Helper()
		p, err := f.Recorder.PostOf(f.ctx, id)
		f.must(err)
		same(f, "state", p.State, want)
		same(f, "the id of its first part", p.PlatformID, platformID)
		same(f, "its place", []any{p.Thread.Key, p.Channel}, []any{threadKey(1), channel})
	}
	state(outbox.Pending, "")
	for i, want := range []outbox.State{outbox.Sending, outbox.Unknown} {
		d, err := f.Outbox.NextDelivery(f.ctx, thread)
		f.must(err)
		if i == 0 {
			_, err = f.Outbox.Sent(f.ctx, d, "C1/9")
		} else {
			err = f.Outbox.GiveUp(f.ctx, d, outbox.Unknown, "nobody knows")
		}
		f.must(err)
		state(want, "C1/9")
	}
}

func postsQueued(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hello"), passive)
	post := func(queue event.ThreadKey, content string) (string, int64) {
		f.Helper()
		id := uuid.NewString()
		n := record.NewPost{
			ID: id, Thread: threads.Thread{Key: threadKey(1), ID: f.threadID(threadKey(1)), Workspace: workspace}, Platform: event.Slack, Channel: channel, Agent: agent,
			Content: content, Metadata: []byte("{}"), Posts: []outbox.Post{{Channel: channel, Text: content}},
		}
		n.Queue = threads.Thread{Key: queue, ID: f.threadID(queue), Workspace: workspace}
		row, added, err := f.Recorder.AddPost(f.ctx, n)
		f.must(err)
		again, twice, err := f.Recorder.AddPost(f.ctx, n)
		f.must(err)
		same(f, "added once, in one queue", []any{added, twice, again}, []any{true, false, row})
		return id, row
	}
	first, ours := post(threadKey(8), "RAIN")
	post(threadKey(8), "SUN")
	_, theirs := post(threadKey(9), "WIND")
	same(f, "lines", f.lines(threadKey(1)), []string{"1 hello", "2 RAIN", "3 SUN", "4 WIND"})
	same(f, "due", f.due(deliveries), []int64{ours, theirs})
	d := f.delivery(threadKey(8))
	f.sending(d)
	f.must(f.Outbox.AwaitReadBack(f.ctx, d, f.clock.Now().Add(time.Minute), "the outcome is unclear"))
	same(f, "due beside a post with an unclear result", f.due(deliveries), []int64{theirs})
	same(f, "the first one of its queue", f.delivery(threadKey(8)).Run, first)
	same(f, "another one's", f.deliver(threadKey(9), "C1/9").Post.Text, "WIND")
	f.clock.advance(time.Minute)
	same(f, "due after it", f.due(deliveries), []int64{ours})
	same(f, "in the order of the queue", []string{f.deliver(threadKey(8), "C1/8").Post.Text, f.deliver(threadKey(8), "C1/10").Post.Text}, []string{"RAIN", "SUN"})
	p, err := f.Recorder.PostOf(f.ctx, first)
	f.must(err)
	same(f, "its state and place", []any{p.State, p.Thread.Key, p.Channel, p.PlatformID}, []any{outbox.Sent, threadKey(1), channel, "C1/8"})
	listed, _, err := f.Listing.AllThreads(f.ctx, listing.ThreadFilter{Workspaces: []string{workspace}, Limit: 10})
	f.must(err)
	same(f, "listed threads", len(listed), 1)
}

func postsMove(f *fixture) {
	f.message(threadKey(1), said("C1/1", "passive"), passive)
	waiting := event.PersonThread(workspace, "U7")
	post := func(content string) (id string, thread int64) {
		id = uuid.NewString()
		thread, _, err := f.Recorder.AddPost(f.ctx, record.NewPost{
			ID: id, Thread: threads.Thread{Key: waiting, ID: f.threadID(waiting), Workspace: workspace}, Platform: event.Slack, Channel: "U7", Agent: agent,
			Content: content, Metadata: []byte("{}"), Posts: []outbox.Post{{Channel: "U7", Text: content}},
		})
		f.must(err)
		return id, thread
	}
	first, thread := post("RAIN")
	second, _ := post("SUN")
	same(f, "the lines that wait", f.lines(waiting), []string{"1 RAIN", "2 SUN"})
	to := threads.Thread{Key: threadKey(1), ID: f.threadID(threadKey(1)), Workspace: workspace}
	move := func(claim *threads.Claim) (int64, error) {
		return f.Recorder.MovePosts(f.ctx, claim, to, event.Slack, event.Channel{ID: channel, Type: event.ChannelDirect}, outbox.Post{Channel: channel, Place: "p"})
	}
	found := func() []string {
		f.fill()
		return f.searchFor(search.Query{Workspace: workspace, Thread: f.threadID(threadKey(1)), Text: "rain", Limit: 9})
	}
	same(f, "found before", found(), []string{})
	claim := f.claim(thread)
	_, err := move(&threads.Claim{Thread: thread, Fence: claim.Fence + 1, Key: waiting})
	same(f, "without the claim", errors.Is(err, storage.ErrFenced), true)
	moved, err := move(claim)
	f.must(err)
	same(f, "the lines that are left", f.lines(waiting), []string{})
	same(f, "the lines of the conversation", f.lines(threadKey(1)), []string{"1 passive", "2 RAIN", "3 SUN"})
	same(f, "found in the conversation", found(), []string{"RAIN"})
	f.message(threadKey(1), said("C1/2", "how much?"), triggers)
	same(f, "turns", f.turnsOf(f.begin(threadKey(1)), 50), []string{"passive||RAIN", "||SUN", "|how much?|"})
	for i, id := range []string{first, second} {
		d, err := f.Outbox.NextDelivery(f.ctx, moved)
		f.must(err)
		same(f, "its delivery", []any{d.Run, d.Post.Channel, d.Post.Place}, []any{id, channel, "p"})
		_, err = f.Outbox.Sent(f.ctx, d, []string{"C1/8", "C1/9"}[i])
		f.must(err)
	}
	p, err := f.Recorder.PostOf(f.ctx, second)
	f.must(err)
	same(f, "its state and place", []any{p.State, p.Thread.Key, p.Channel, p.PlatformID}, []any{outbox.Sent, threadKey(1), channel, "C1/9"})
}

func reactionStored(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hello"), passive)
	message := f.list(threadKey(1))[0].UUID
	_, err := f.Recorder.TargetOf(f.ctx, "elsewhere", message)
	same(f, "of another workspace", errors.Is(err, storage.ErrNotFound), true)
	target, err := f.Recorder.TargetOf(f.ctx, workspace, message)
	f.must(err)
	same(f, "target", []any{target.PlatformID, target.Channel, target.Thread.Key}, []any{"C1/1", channel, threadKey(1)})
	id, post := uuid.NewString(), outbox.Post{Channel: channel, Text: "eyes C1/1"}
	react := func() (state outbox.State) {
		state, err := f.Recorder.AddReaction(f.ctx, &target, id, post)
		f.must(err)
		return state
	}
	same(f, "states", []outbox.State{react(), react()}, []outbox.State{outbox.Pending, outbox.Pending})
	same(f, "deliveries", f.count("deliveries WHERE kind = 'react'"), 1)
	d, err := f.Outbox.NextDelivery(f.ctx, target.Thread.Row)
	f.must(err)
	same(f, "delivery", []any{d.Kind, d.Post, d.Begins(), d.Puts()}, []any{outbox.KindReact, post, false, false})
	f.must(f.Outbox.GiveUp(f.ctx, d, outbox.Failed, "no"))
	same(f, "after a failure", react(), outbox.Pending)
	d, err = f.Outbox.NextDelivery(f.ctx, target.Thread.Row)
	f.must(err)
	_, err = f.Outbox.Sent(f.ctx, d, "")
	f.must(err)
	same(f, "at the end", react(), outbox.Sent)
	reply := uuid.NewString()
	_, added := f.post(reply, "MEET")
	same(f, "added", added, true)
	target, err = f.Recorder.TargetOf(f.ctx, workspace, reply)
	f.must(err)
	same(f, "a post that was not sent", target.PlatformID, "")
}

func messageShown(f *fixture) {
	announced := func(id string) (thread int64, uuid string) {
		accepted := f.accept(f.envelope(event.KindMessage, threadKey(1), id))
		e := entry(accepted.ID, event.Event{Kind: event.KindMessage, Message: said(id, "is it dry?")}, triggers)
		e.Announce = []outbox.Post{{Channel: channel, Text: "Nora: is it dry?"}}
		result, err := f.Recorder.Record(f.ctx, f.claim(accepted.Thread), e)
		f.must(err)
		same(f, "told", result.Told, true)
		return accepted.Thread, result.Message.UUID
	}
	shown := func(id string, want string, on bool) {
		f.Helper()
		post, is, err := f.Outbox.Shown(f.ctx, id)
		f.must(err)
		same(f, "the post that shows it", []any{post, is}, []any{want, on})
	}
	thread, id := announced("injected:a:1")
	run := f.begin(threadKey(1))
	shown(id, "", true)
	f.commit(run, answer("Yes.", "Yes."))
	d := f.delivery(threadKey(1))
	same(f, "the first post", d.Post.Text, "Nora: is it dry?")
	_, err := f.Outbox.Sent(f.ctx, d, "C1/9")
	f.must(err)
	shown(id, "C1/9", true)
	above, err := f.Outbox.ShownAbove(f.ctx, run.ID)
	f.must(err)
	same(f, "the post above the answer", above, "C1/9")
	first, of, err := f.Outbox.FirstPostIn(f.ctx, thread)
	f.must(err)
	same(f, "the first post of the thread", []string{first, of}, []string{"C1/9", id})
	d = f.delivery(threadKey(1))
	d.Post.Place = "9"
	_, err = f.Outbox.BeginSend(f.ctx, f.claim(thread), d, outbox.Send{Timeout: time.Second})
	f.must(err)
	same(f, "its place", f.delivery(threadKey(1)).Post.Place, "9")
	d = f.delivery(threadKey(1))
	_, err = f.Outbox.Sent(f.ctx, d, "C1/a")
	f.must(err)
	to := threads.Thread{Key: threadKey(2), ID: f.threadID(threadKey(2)), Workspace: workspace}
	f.must(f.Recorder.OpenUnder(f.ctx, to, event.Slack, channel, "C1/9", threadKey(1)))
	_, later := announced("injected:a:2")
	f.commit(f.begin(threadKey(1)), answer("Still."))
	f.message(threadKey(2), said("C1/b", "what?"), triggers)
	same(f, "the thread under the post", f.transcript(f.begin(threadKey(2)), wide), []string{"+is it dry?", "+Yes.", "+is it dry?", "+Still.", ">what?"})
	d = f.delivery(threadKey(1))
	f.must(f.Outbox.GiveUp(f.ctx, d, outbox.Failed, "no"))
	shown(later, "", false)
}

func answerCopied(f *fixture) {
	f.message(threadKey(1), said("C1/1", "is it dry?"), triggers)
	run := f.begin(threadKey(1))
	reply := answer("Yes.", "Yes.")
	queue := threads.Thread{Workspace: "ours", Key: event.CopiesTo("ours/crm"), ID: f.threadID(event.CopiesTo("ours/crm"))}
	reply.Copies = []runs.Copy{{Queue: queue, To: "ours/crm", Of: run.Messages[0].UUID, Text: func(state runs.State, m *messages.Message, _ string) string {
		return string(state) + m.UUID + m.Content
	}}}
	ended := f.commit(run, reply)
	same(f, "queues", ended.Copied, []int64{f.thread(queue.Key)})
	d, err := f.Outbox.NextDelivery(f.ctx, f.thread(queue.Key))
	f.must(err)
	same(f, "the copy", []any{d.Kind, d.Workspace, d.Post.Channel, d.Post.Text}, []any{outbox.KindCopy, "ours", "ours/crm", "done" + ended.Message.UUID + "Yes."})
	same(f, "the thread's own", f.delivery(threadKey(1)).Kind, outbox.KindPost)
	listed, err := f.Messages.Threads(f.ctx, "ours", "", 10)
	f.must(err)
	same(f, "listed threads", len(listed), 0)

	f.deliver(queue.Key, "")
	ends := func(id string, u runs.Unanswered) *runs.Run {
		f.message(threadKey(2), said(id, "and now?"), triggers)
		run := f.begin(threadKey(2))
		u.Copies = []runs.Copy{{Queue: queue, To: "ours/crm", Of: run.Messages[0].UUID, Text: func(state runs.State, m *messages.Message, failure string) string {
			return fmt.Sprintf("%s %t %s", state, m != nil, failure)
		}}}
		f.leaves(run, u)
		return run
	}
	run = ends("C1/2", runs.Unanswered{State: runs.Failed, Notice: outbox.Notice{Text: "Sorry.", Metadata: []byte(`{}`)}})
	same(f, "queues of a failed run", run.Copied, []int64{f.thread(queue.Key)})
	same(f, "of a failed run", f.deliver(queue.Key, "").Post.Text, "failed false Sorry.")
	ends("C1/3", runs.Unanswered{State: runs.Quiet})
	same(f, "of a quiet run", f.deliver(queue.Key, "").Post.Text, "quiet false ")
	same(f, "of an attempt", len(ends("C1/4", runs.Unanswered{At: f.clock.Now(), Failed: true}).Copied), 0)
}
