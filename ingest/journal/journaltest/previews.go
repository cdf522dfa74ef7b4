package journaltest

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"parley/ingest/journal"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/storage"
)

func previewPromises() []promise {
	return []promise{
		{"a preview waits for its thread's deliveries", previewWaits},
		{"a preview whose node died is due again", previewOrphan},
		{"a preview that was given up is neither changed nor taken over", previewGivenUp},
		{"a preview that an unclear call made, and that never arrived, is begun again", previewMadeUnclearly},
		{"a run that has ended shows no further preview", previewFenced},
		{"a reply takes over the posts of its previews, and the others are removed", previewsReplaced},
		{"neither a preview nor a reply waits for the removal of a sign of work", unsignLast},
		{"a run without a reply removes its previews and its sign of work", previewsCleared},
		{"a retried run keeps its previews and its sign of work", previewsKept},
		{"the end of a run removes a sign of work that an unclear call recorded", unclearSign},
		{"a sign of work that no message has is removed", bareSign},
		{"a post that cannot be changed is posted again, and so are the posts after it", reposted},
		{"after a failed part, the previews of the rest are removed", restCleared},
		{"the id of a preview's post leads to the reply", takenOver},
		{"a preview yields its place in the pace to a post", previewGivesWay},
	}
}

var sending = outbox.Send{Timeout: 10 * time.Second}

// sign is the sign of work on a message. Every post has its address.
var sign = outbox.Post{Channel: channel, Place: "1", Text: "C1/2"}

// preview begins a preview of a run. It returns nil if the preview may not be shown yet.
func (f *fixture) preview(run *runs.Run, text string) (*outbox.Delivery, time.Time) {
	f.Helper()
	d, again, err := f.Runs.BeginPreview(f.ctx, f.claim(run.Thread), run, run.Previews, outbox.Post{Channel: channel, Place: sign.Place, Text: text}, true, sending)
	f.must(err)
	return d, again
}

// shows begins a preview that arrives.
func (f *fixture) shows(run *runs.Run, text, platformID string) *outbox.Delivery {
	f.Helper()
	d, _ := f.preview(run, text)
	if d == nil {
		f.Fatalf("the preview %q was refused", text)
	}
	_, err := f.Outbox.Sent(f.ctx, d, platformID)
	f.must(err)
	return d
}

// outbox sends a thread's open deliveries, checks their addresses, and returns them.
func (f *fixture) outbox(run *runs.Run) (list []string) {
	f.Helper()
	for {
		d, err := f.Outbox.NextDelivery(f.ctx, run.Thread)
		f.must(err)
		if d == nil {
			return list
		}
		same(f, "address", [2]string{d.Post.Channel, d.Post.Place}, [2]string{channel, sign.Place})
		of, id := "", fmt.Sprint("C1/9", len(list))
		if d.Replaces != nil {
			of, id = " of "+d.Replaces.PlatformID, d.Replaces.PlatformID
		}
		if d.Kind != outbox.KindPost {
			id = ""
		}
		list = append(list, string(d.Kind)+" "+d.Post.Text+of)
		f.sending(d)
		_, err = f.Outbox.Sent(f.ctx, d, id)
		f.must(err)
	}
}

func previewWaits(f *fixture) {
	f.exchange(threadKey(1), "C1/1", "a", "A", "A1")
	f.message(threadKey(1), said("C1/2", "a"), triggers)
	run := f.begin(threadKey(1))
	d, again := f.preview(run, "grow")
	same(f, "before the post", d == nil && again.After(f.clock.Now()), true)
	f.deliver(threadKey(1), "C1/8")
	f.shows(run, "grow", "C1/9")
	same(f, "previews", run.Previews, 1)
}

func previewOrphan(f *fixture) {
	f.message(threadKey(1), said("C1/2", "a"), triggers)
	run := f.begin(threadKey(1))
	d, _ := f.preview(run, "grow")
	same(f, "due immediately", f.due(deliveries), nil)
	again, wait, err := f.Runs.BeginPreview(f.ctx, f.claim(run.Thread), run, 0, outbox.Post{Channel: channel, Text: "grow"}, true, sending)
	f.must(err)
	same(f, "begun again before its outcome is known", again != nil || !wait.After(f.clock.Now()), false)
	f.clock.advance(10 * time.Second)
	same(f, "due", f.due(deliveries), []int64{run.Thread})
	next := f.delivery(threadKey(1))
	same(f, "it", [3]any{next.ID, next.Kind, next.Stream}, [3]any{d.ID, outbox.KindPreview, true})
	same(f, "state", next.State, outbox.Sending)
}

func previewGivenUp(f *fixture) {
	f.message(threadKey(1), said("C1/2", "a"), triggers)
	run := f.begin(threadKey(1))
	failed, _ := f.preview(run, "grow")
	f.must(f.Outbox.GiveUp(f.ctx, failed, outbox.Failed, "refused"))
	_, err := f.Runs.ChangePreview(f.ctx, f.claim(run.Thread), run, failed, sending)
	f.fails("change", err, storage.ErrFenced)
	again, _, err := f.Runs.BeginPreview(f.ctx, f.claim(run.Thread), run, 0, outbox.Post{Channel: channel, Place: sign.Place, Text: "grow"}, false, sending)
	f.must(err)
	same(f, "begun again", again != nil, true)
	_, err = f.Outbox.Sent(f.ctx, again, "C1/9")
	f.must(err)
	f.commit(run, answer("A", "A1", "A2"))
	same(f, "deliveries", f.outbox(run), []string{"post A1 of C1/9", "post A2"})
}

func previewMadeUnclearly(f *fixture) {
	f.message(threadKey(1), said("C1/2", "a"), triggers)
	run := f.begin(threadKey(1))
	unaware := *run
	made, _ := f.preview(run, "grow")
	f.must(f.Outbox.GiveUp(f.ctx, made, outbox.Failed, "the post had not arrived"))
	f.shows(&unaware, "grow", "C1/9")
	f.commit(&unaware, answer("A", "A1"))
	same(f, "deliveries", f.outbox(run), []string{"post A1 of C1/9"})
}

func previewFenced(f *fixture) {
	f.message(threadKey(1), said("C1/2", "a"), triggers)
	run := f.begin(threadKey(1))
	d := f.shows(run, "grow", "C1/9")
	f.commit(run, answer("A", "A"))
	f.outbox(run)
	lease := f.claim(run.Thread)
	_, _, err := f.Runs.BeginPreview(f.ctx, lease, run, run.Previews, outbox.Post{Channel: channel, Text: "more"}, false, sending)
	f.fails("begin a preview", err, storage.ErrFenced)
	_, err = f.Runs.ChangePreview(f.ctx, lease, run, d, sending)
	f.fails("change a preview", err, storage.ErrFenced)
	f.fails("sign", f.Runs.MarkSigned(f.ctx, lease, run, sign, time.Second), storage.ErrFenced)
}

func previewsReplaced(f *fixture) {
	f.message(threadKey(1), said("C1/2", "a"), triggers)
	run := f.begin(threadKey(1))
	f.must(f.Runs.MarkSigned(f.ctx, f.claim(run.Thread), run, sign, time.Second))
	for i := range 3 {
		f.shows(run, "grow", fmt.Sprint("C1/8", i))
	}
	reply := answer("A", "A1", "", "A2")
	reply.Posts[1].File = &outbox.File{Name: "plot", Text: "x"}
	f.commit(run, reply)
	same(f, "deliveries", f.outbox(run), []string{"post A1 of C1/80", "post ", "post A2 of C1/81", "remove  of C1/82", "unsign C1/2"})
}

func unsignLast(f *fixture) {
	f.message(threadKey(1), said("C1/2", "a"), triggers)
	run := f.begin(threadKey(1))
	f.must(f.Runs.MarkSigned(f.ctx, f.claim(run.Thread), run, sign, time.Second))
	f.commit(run, answer("A"))
	same(f, "removals that wait", f.count("deliveries WHERE kind = 'unsign' AND state = 'pending'"), 1)
	f.message(threadKey(1), said("C1/3", "b"), triggers)
	next := f.begin(threadKey(1))
	f.shows(next, "grow", "C1/9")
	reply := answer("B", "B")
	reply.Send = &sending
	same(f, "begun", f.commit(next, reply).Begun != nil, true)
}

func previewsCleared(f *fixture) {
	for i, end := range []runs.Unanswered{
		{State: runs.Canceled, Cause: "deleted"},
		{State: runs.Interrupted},
		{State: runs.Failed, Cause: "the agent is gone", Notice: outbox.Notice{
			Text: "Sorry", Posts: []outbox.Post{{Channel: channel, Place: sign.Place, Text: "Sorry", Asker: "U1", Alone: true}},
		}},
	} {
		f.message(threadKey(1), said(fmt.Sprint("C1/", i), "a"), triggers)
		run := f.begin(threadKey(1))
		f.must(f.Runs.MarkSigned(f.ctx, f.claim(run.Thread), run, sign, time.Second))
		id := fmt.Sprint("C1/8", i)
		f.shows(run, "grow", id)
		f.leaves(run, end)
		want := []string{"remove  of " + id, "unsign C1/2"}
		if i == 2 {
			want = append([]string{"tell Sorry"}, want...)
		}
		same(f, "deliveries", f.outbox(run), want)
		if i == 1 { // its message belongs to the next run
			f.commit(f.begin(threadKey(1)), answer("A"))
		}
	}
}

func previewsKept(f *fixture) {
	f.message(threadKey(1), said("C1/2", "a"), triggers)
	run := f.begin(threadKey(1))
	f.must(f.Runs.MarkSigned(f.ctx, f.claim(run.Thread), run, sign, time.Second))
	f.shows(run, "grow", "C1/8")
	f.leaves(run, runs.Unanswered{At: f.clock.Now(), Failed: true})
	same(f, "deliveries", f.outbox(run), nil)
	again := f.begin(threadKey(1))
	same(f, "kept", [2]any{again.Previews, again.Sign}, [2]any{int64(1), "C1/2"})
	shown, _, err := f.Runs.BeginPreview(f.ctx, f.claim(run.Thread), again, 0, outbox.Post{Channel: channel, Text: "grow"}, true, sending)
	f.must(err)
	same(f, "preview", [3]string{shown.PlatformID, shown.Post.Channel, shown.Post.Place}, [3]string{"C1/8", channel, sign.Place})
	same(f, "previews", again.Previews, 1)
	f.commit(again, answer("A", "A1"))
	same(f, "deliveries", f.outbox(run), []string{"post A1 of C1/8", "unsign C1/2"})
}

// unclearSign proves that no row of the sign is held after its run has ended.
func unclearSign(f *fixture) {
	f.message(threadKey(1), said("C1/2", "a"), triggers)
	run := f.begin(threadKey(1))
	unclear := journal.New(unclearEngine{f.engine}, journal.Options{Now: f.clock.Now})
	f.fails("sign", unclear.Runs.MarkSigned(f.ctx, f.claim(run.Thread), run, sign, time.Second), storage.ErrUnclear)
	f.commit(run, answer("A", "A1"))
	same(f, "deliveries", f.outbox(run), []string{"post A1", "unsign C1/2"})
}

func bareSign(f *fixture) {
	f.message(threadKey(1), said("C1/2", "a"), triggers)
	run := f.begin(threadKey(1))
	f.must(f.Runs.MarkSigned(f.ctx, f.claim(run.Thread), run, outbox.Post{Channel: channel, Place: sign.Place}, time.Second))
	f.leaves(run, runs.Unanswered{At: f.clock.Now(), Failed: true})
	again := f.begin(threadKey(1))
	same(f, "kept", again.Signed, true)
	f.commit(again, answer("A", "A1"))
	same(f, "deliveries", f.outbox(run), []string{"post A1", "unsign "})
}

// unclearEngine is an engine that does not report the outcome of its writes.
type unclearEngine struct{ storage.Engine }

func (e unclearEngine) Write(ctx context.Context, options storage.WriteOptions, fn func(storage.Tx) error) error {
	return cmp.Or(e.Engine.Write(ctx, options, fn), storage.ErrUnclear)
}

func reposted(f *fixture) {
	f.message(threadKey(1), said("C1/2", "a"), triggers)
	run := f.begin(threadKey(1))
	for i := range 3 {
		f.shows(run, "grow", fmt.Sprint("C1/8", i))
	}
	f.commit(run, answer("A", "A1", "A2", "A3", "A4"))
	f.deliver(threadKey(1), "C1/80")
	d := f.delivery(threadKey(1))
	f.sending(d)
	f.must(f.Outbox.Repost(f.ctx, d, "edits are refused"))
	same(f, "due", f.due(deliveries), []int64{run.Thread})
	same(f, "deliveries", f.outbox(run), []string{"post A2", "post A3", "post A4", "remove  of C1/81", "remove  of C1/82"})
}

func restCleared(f *fixture) {
	f.message(threadKey(1), said("C1/2", "a"), triggers)
	run := f.begin(threadKey(1))
	f.shows(run, "grow", "C1/80")
	f.shows(run, "grow", "C1/81")
	f.commit(run, answer("A", "A1", "A2", "A3"))
	d := f.delivery(threadKey(1))
	f.sending(d)
	err := f.Outbox.GiveUp(f.ctx, d, outbox.Failed, "the channel is gone")
	f.must(err)
	same(f, "deliveries", f.outbox(run), []string{"remove A2 of C1/81"})
}

func takenOver(f *fixture) {
	f.message(threadKey(1), said("C1/2", "a"), triggers)
	run := f.begin(threadKey(1))
	f.shows(run, "grow", "C1/8")
	f.commit(run, answer("A", "A1"))
	f.outbox(run)
	for id, want := range map[string]string{"C1/8": f.list(threadKey(1))[1].ExternalID, "C1/7": ""} {
		reply, err := f.Outbox.ReplyID(f.ctx, "acme", id)
		f.must(err)
		same(f, "reply of post "+id, reply, want)
	}
	unknown, err := f.Outbox.FirstUnknown(f.ctx, "acme", []string{"C1/8", "C1/7", "C1/6"})
	f.must(err)
	same(f, "first unknown post", unknown, "C1/7")
}

func previewGivesWay(f *fixture) {
	f.message(threadKey(1), said("C1/2", "a"), triggers)
	run := f.begin(threadKey(1))
	paced := outbox.Send{Timeout: 10 * time.Second, Every: every}
	d, _, err := f.Runs.BeginPreview(f.ctx, f.claim(run.Thread), run, run.Previews, outbox.Post{Channel: channel, Text: "grow"}, true, paced)
	f.must(err)
	_, err = f.Outbox.Sent(f.ctx, d, "C1/8")
	f.must(err)
	waits := f.queuedIn(threadKey(2))
	same(f, "wait of the post after it", f.slot(waits, every).Wait, f.clock.Now().Add(every))
	f.clock.advance(every)
	slot, err := f.Runs.ChangePreview(f.ctx, f.claim(run.Thread), run, d, paced)
	f.must(err)
	same(f, "wait of the preview", slot.Wait.After(f.clock.Now()), true)
	same(f, "it leaves", f.slot(waits, every).Wait.IsZero(), true)
	f.clock.advance(2 * every)
	slot, err = f.Runs.ChangePreview(f.ctx, f.claim(run.Thread), run, d, paced)
	f.must(err)
	same(f, "wait of the preview after the post", slot.SendBy, f.clock.Now().Add(10*time.Second))
}
