package journaltest

import (
	"fmt"
	"time"

	"parley/ingest/card"
	"parley/ingest/event"
	"parley/ingest/journal"
	"parley/ingest/journal/budgets"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/record"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/storage"
	"parley/ingest/stream"
)

func questionPromises() []promise {
	return []promise{
		{"a question is open until its answer, also over a restart, and the next run has both", questionAnswered},
		{"a question is answered once", questionAnsweredOnce},
		{"an answer that its sender has withdrawn is none", questionAnswerWithdrawn},
		{"messages from before a question wait for its answer, or its end", questionWaits},
		{"an edit that triggers a run may answer a question", questionAnsweredByEdit},
		{"a second payload of a message that is no answer tells its sender nothing again", noAnswerTwice},
		{"an interrupted run gives its question to the next", questionRequeued},
		{"the answered question of a failed run is open once more", questionReopened},
		{"messages from before a question is open once more wait for its answer", questionReopenedWaits},
		{"a question expires with a notice, and the next run knows it", questionExpires},
		{"a new context has no question", questionForgotten},
		{"a new context does not get the question of a run that began before and fails", questionForgottenInRun},
		{"a post with buttons takes over no preview", questionWithButtons},
		{"a question that is closed loses its buttons", questionLosesItsButtons},
		{"a card keeps its buttons", cardWithButtons},
		{"a question is closed if a post of it is deleted", questionPostDeleted},
	}
}

// asking returns a reply that asks the people in the thread.
func (f *fixture) asking() runs.Reply {
	r := answer("May I?")
	r.Question = &runs.Question{
		Ask:     stream.Ask{Options: []stream.Option{{ID: "y", Label: "Yes"}, {ID: "n", Label: "No"}}, Approval: true},
		Details: []byte(`{"k":1}`), UntilAt: f.clock.Now().Add(time.Hour),
	}
	return r
}

// answering returns a policy that takes messages as answers to the open question.
func answering(asked **runs.Question) policy {
	return func(m *event.Message, look record.Look) record.Decision {
		d := triggers(m, look)
		q := look.Question()
		if asked != nil {
			*asked = q
		}
		if q != nil {
			d.Answer = &runs.Answer{Option: "y", Text: m.Content}
		}
		return d
	}
}

// questions records a message, and ends its run with a question.
func (f *fixture) questions() *runs.Run {
	f.Helper()
	f.message(threadKey(1), said("C1/1", "do it"), triggers)
	run := f.begin(threadKey(1))
	f.commit(run, f.asking())
	return run
}

func questionAnswered(f *fixture) {
	asked := f.questions()
	same(f, "thread", f.lines(threadKey(1)), []string{"1 do it", "2 May I?"})
	after, open := f.successor("after"), new(runs.Question)
	after.message(threadKey(1), said("C1/2", "yes"), answering(&open))
	want := *f.asking().Question
	want.Run, want.Agent = asked.ID, agent
	same(f, "the open question", *open, want)
	isAsking := func(what string, want bool) {
		f.Helper()
		asking, err := f.Runs.IsAsking(f.ctx, asked.ID)
		f.must(err)
		same(f, what, asking, want)
	}
	isAsking("asking before the run of the answer", true)
	run := after.begin(threadKey(1))
	same(f, "the question of the run", run.Question, asked.ID)
	again := f.successor("again")
	resumed := again.begin(threadKey(1))
	same(f, "the question of the resumed run", resumed.Question, asked.ID)
	q, err := f.Runs.Question(f.ctx, asked.ID)
	f.must(err)
	same(f, "answer", q.Answer, &runs.Answer{Option: "y", Text: "yes"})
	_, err = f.Runs.Question(f.ctx, run.ID)
	f.fails("no question", err, storage.ErrNotFound)
	isAsking("asking during the run of the answer", true)
	again.commit(resumed, answer("Done."))
	isAsking("asking after the run of the answer", false)
}

func questionAnsweredOnce(f *fixture) {
	f.questions()
	open := new(runs.Question)
	f.message(threadKey(1), said("C1/2", "yes"), answering(nil))
	f.message(threadKey(1), said("C1/3", "no"), answering(&open))
	same(f, "open for the second", open == nil, true)
	run := f.begin(threadKey(1))
	same(f, "asked", contents(run.Messages), []string{"yes", "no"})
	q, err := f.Runs.Question(f.ctx, run.Question)
	f.must(err)
	same(f, "answer", q.Answer.Text, "yes")
	f.commit(run, answer("Done."))
	q, err = f.Runs.Question(f.ctx, run.Question)
	f.must(err)
	same(f, "answer after the run", q.Answer != nil && q.Answer.Text == "yes", true)
	begun := f.tell("C1/4", answering(&open), nil).Begun
	same(f, "the next run", begun.Question, "")
}

func questionAnswerWithdrawn(f *fixture) {
	for i, c := range []struct {
		withdraw func(key event.ThreadKey, id string)
		option   string
		want     *runs.Answer
	}{
		{func(key event.ThreadKey, id string) {
			f.change(key, event.Event{Kind: event.KindDelete, Targets: []string{id}}, triggers)
		}, "y", nil},
		{func(key event.ThreadKey, id string) { f.message(key, said(id+"s", "/stop"), commands) }, "y", nil},
		{func(key event.ThreadKey, id string) { f.change(key, edited(id, "no, wait", "2"), triggers) }, "y", nil},
		{func(key event.ThreadKey, id string) { f.change(key, edited(id, "tomorrow", "2"), triggers) }, "", &runs.Answer{Text: "tomorrow"}},
	} {
		key, id := threadKey(i), fmt.Sprint("C1/answer", i)
		f.message(key, said(fmt.Sprint("C1/a", i), "do it"), triggers)
		f.commit(f.begin(key), f.asking())
		f.message(key, said(id, "yes"), func(m *event.Message, look record.Look) record.Decision {
			d := triggers(m, look)
			if look.Question() != nil {
				d.Answer = &runs.Answer{Option: c.option, Text: m.Content}
			}
			return d
		})
		c.withdraw(key, id)
		f.message(key, said(fmt.Sprint("C1/b", i), "hello"), triggers)
		q, err := f.Runs.Question(f.ctx, f.begin(key).Question)
		f.must(err)
		same(f, fmt.Sprint("answer ", i), q.Answer, c.want)
	}
	same(f, "copies of words that a delete must blank", f.count(`questions WHERE answer LIKE '%yes%' AND answer NOT LIKE '%option%'`), 0)
}

func questionWaits(f *fixture) {
	for i, c := range []struct {
		end  func(key event.ThreadKey, id string)
		want []string
	}{
		{func(key event.ThreadKey, id string) { f.message(key, said(id, "yes"), answering(nil)) }, []string{"please", "yes"}},
		{func(key event.ThreadKey, id string) { f.message(key, said(id, "/new"), commands) }, []string{"please"}},
		{func(event.ThreadKey, string) { f.clock.advance(time.Hour) }, []string{"please"}},
	} {
		key := threadKey(i)
		f.message(key, said(fmt.Sprint("C1/a", i), "do it"), triggers)
		run := f.begin(key)
		f.message(key, said(fmt.Sprint("C1/b", i), "please"), triggers)
		f.commit(run, f.asking())
		same(f, "begins before the answer", f.mayBegin(key, true) != nil, false)
		c.end(key, fmt.Sprint("C1/c", i))
		same(f, "asked", contents(f.mayBegin(key, true).Messages), c.want)
	}
}

func questionAnsweredByEdit(f *fixture) {
	asked := f.questions()
	f.message(threadKey(1), said("C1/2", "why?"), passive)
	f.change(threadKey(1), edited("C1/2", "yes", "2"), answering(nil))
	q, err := f.Runs.Question(f.ctx, f.begin(threadKey(1)).Question)
	f.must(err)
	same(f, "question", q.Run, asked.ID)
	same(f, "answered", q.Answer != nil, true)
}

func noAnswerTwice(f *fixture) {
	f.questions()
	refused := func(m *event.Message, look record.Look) record.Decision {
		d := over(m, look, budgets.Budget{})
		d.Reason = event.ReasonNoAnswer
		return d
	}
	same(f, "told", f.message(threadKey(1), said("C1/2", "why?"), refused).Told, true)
	again := f.message(threadKey(1), said("C1/2", "why?"), refused)
	same(f, "the second payload", again.Disposition, event.Duplicate)
	same(f, "told again", again.Told, false)
	same(f, "thread", f.lines(threadKey(1)), []string{"1 do it", "2 May I?", "3 why?", "4 Later."})
}

func questionRequeued(f *fixture) {
	asked := f.questions()
	run := f.tell("C1/2", answering(nil), nil).Begun
	same(f, "the question of a run that begins with its message", run.Question, asked.ID)
	f.leaves(run, runs.Unanswered{State: runs.Interrupted})
	same(f, "the question of the next", f.begin(threadKey(1)).Question, asked.ID)
}

func questionReopened(f *fixture) {
	f.message(threadKey(1), said("C1/1", "do it"), triggers)
	reply := f.asking()
	reply.Posts = []outbox.Post{{Channel: channel, Place: "1", Text: "May I?", Buttons: []outbox.PostButton{{ID: "parley-a", Label: "Yes"}}}}
	f.commit(f.begin(threadKey(1)), reply)
	for i, want := range []bool{true, true, false} {
		open := new(runs.Question)
		f.message(threadKey(1), said(fmt.Sprint("C1/yes", i), "yes"), answering(&open))
		same(f, "open", open != nil, want)
		same(f, "answer of an open question", want && open.Answer != nil, false)
		run := f.begin(threadKey(1))
		same(f, "the run has the question", run.Question != "", want)
		f.fail(run, "Sorry.")
	}
}

func questionReopenedWaits(f *fixture) {
	asked := f.questions()
	f.message(threadKey(1), said("C1/2", "yes"), answering(nil))
	run := f.begin(threadKey(1))
	f.message(threadKey(1), said("C1/3", "please"), triggers)
	f.fail(run, "broken")
	same(f, "begins before the answer", f.mayBegin(threadKey(1), true) != nil, false)
	f.message(threadKey(1), said("C1/4", "yes!"), answering(nil))
	again := f.mayBegin(threadKey(1), true)
	same(f, "asked", contents(again.Messages), []string{"please", "yes!"})
	same(f, "question", again.Question, asked.ID)
}

func questionExpires(f *fixture) {
	asked := f.questions()
	told, open := 0, new(runs.Question)
	expire := func() {
		notice := func(run *runs.Run) outbox.Notice {
			same(f, "thread of the notice", run.ThreadKey, threadKey(1))
			return stopNotice
		}
		f.must(f.Runs.ExpireQuestions(f.ctx, notice, func(*runs.Run) { told++ }))
	}
	expire()
	same(f, "told too early", told, 0)
	f.clock.advance(time.Hour)
	f.message(threadKey(1), said("C1/late", "yes"), answering(&open))
	same(f, "open after its time", open == nil, true)
	expire()
	expire()
	same(f, "told", told, 1)
	same(f, "thread", f.lines(threadKey(1)), []string{"1 do it", "2 May I?", "3 yes", "4 Stopped."})
	same(f, "post", f.deliver(threadKey(1), "C1/9").Post.Text, "Stopped.")
	open = new(runs.Question)
	f.message(threadKey(1), said("C1/2", "yes"), answering(&open))
	same(f, "open", open == nil, true)
	run := f.begin(threadKey(1))
	same(f, "the question of the next run", run.Question, asked.ID)
	q, err := f.Runs.Question(f.ctx, asked.ID)
	f.must(err)
	same(f, "answered", q.Answer != nil, false)
}

func questionForgotten(f *fixture) {
	f.questions()
	open := new(runs.Question)
	f.message(threadKey(1), said("C1/2", "/new"), commands)
	f.message(threadKey(1), said("C1/3", "yes"), answering(&open))
	same(f, "open", open == nil, true)
	same(f, "the question of the next run", f.begin(threadKey(1)).Question, "")
}

func questionForgottenInRun(f *fixture) {
	f.questions()
	f.message(threadKey(1), said("C1/2", "yes"), answering(nil))
	run := f.begin(threadKey(1))
	f.message(threadKey(1), said("C1/3", "/new"), commands)
	f.fail(run, "Sorry.")
	open := new(runs.Question)
	f.message(threadKey(1), said("C1/4", "hello"), answering(&open))
	same(f, "open", open == nil, true)
	same(f, "the question of the next run", f.begin(threadKey(1)).Question, "")
}

func questionWithButtons(f *fixture) {
	f.message(threadKey(1), said("C1/1", "do it"), triggers)
	run := f.begin(threadKey(1))
	preview, _, err := f.Runs.BeginPreview(f.ctx, f.claim(run.Thread), run, run.Previews, outbox.Post{Channel: channel, Text: "May"}, false, outbox.Send{Timeout: time.Second})
	f.must(err)
	_, err = f.Outbox.Sent(f.ctx, preview, "C1/9")
	f.must(err)
	reply := f.asking()
	reply.Posts = []outbox.Post{{Channel: channel, Place: "1", Text: "May I?", Buttons: []outbox.PostButton{{ID: "parley-a", Label: "Yes"}}}}
	f.commit(run, reply)
	posted := f.deliver(threadKey(1), "C1/10")
	same(f, "post", posted.Post, reply.Posts[0])
	same(f, "the post that it takes over", posted.Replaces == nil, true)
	same(f, "the preview", f.deliver(threadKey(1), "").Kind, outbox.KindRemove)
}

func cardWithButtons(f *fixture) {
	f.message(threadKey(1), said("C1/1", "a room?"), triggers)
	run := f.begin(threadKey(1))
	id := runs.CardButton(run.ID, 0)
	press := card.Press{ID: id, Label: "Book", Action: card.Action{ID: "book", Value: []byte(`{"room":7}`)}}
	reply := f.asking()
	reply.Posts = []outbox.Post{
		{Channel: channel, Place: "1", Text: "May I?", Buttons: []outbox.PostButton{{ID: "parley-a", Label: "Yes"}}},
		{Channel: channel, Place: "1", Text: "Room 7", Card: &card.View{Status: "info", Parts: []card.Part{{Kind: card.KindButtons, Buttons: []card.Press{press}}}}},
	}
	f.commit(run, reply)
	f.deliver(threadKey(1), "C1/10")
	same(f, "the post", f.deliver(threadKey(1), "C1/11").Post, reply.Posts[1])
	look := func(thread int, message, id string) (found *card.Press, agent string) {
		f.message(threadKey(thread), said(message, "yes"), func(m *event.Message, at record.Look) record.Decision {
			found, agent = at.CardButton(id)
			return answering(nil)(m, at)
		})
		return found, agent
	}
	found, agent := look(1, "C1/2", id)
	same(f, "the button", []any{found, agent}, []any{&press, run.Agent})
	same(f, "the question alone loses its buttons", f.deliver(threadKey(1), "").Replaces.PlatformID, "C1/10")
	for _, other := range []string{"parley-a", runs.CardButton(run.ID, 1), runs.CardButton("x", 0), "parley-card-"} {
		found, _ = look(1, "C1/"+other, other)
		same(f, other, found == nil, true)
	}
	found, _ = look(2, "C1/20", id)
	same(f, "in another thread", found == nil, true)
	f.clock.advance(30 * 24 * time.Hour)
	_, err := f.Prune(f.ctx, journal.DefaultRetention())
	f.must(err)
	found, _ = look(1, "C1/30", id)
	same(f, "after its retention", found == nil, true)
}

func questionPostDeleted(f *fixture) {
	for i, posts := range []int{1, 2} {
		key, reply := threadKey(i), f.asking()
		for n := range posts {
			reply.Posts = append(reply.Posts, outbox.Post{Channel: channel, Place: "1", Text: "May I?", Buttons: []outbox.PostButton{{ID: fmt.Sprint("parley-", n), Label: "Yes"}}})
		}
		f.message(key, said(fmt.Sprint("C1/a", i), "do it"), triggers)
		run := f.begin(key)
		f.message(key, said(fmt.Sprint("C1/b", i), "hurry"), triggers)
		f.commit(run, reply)
		for n := range posts {
			f.deliver(key, fmt.Sprint("C1/post", i, n))
		}
		out := f.change(key, event.Event{Kind: event.KindDelete, Targets: []string{fmt.Sprint("C1/post", i, 0)}}, triggers)
		same(f, "the delete", out.Result, event.Result{Disposition: event.Updated})
		open := new(runs.Question)
		f.message(key, said(fmt.Sprint("C1/c", i), "yes"), answering(&open))
		same(f, "open", open == nil, true)
		next := f.begin(key)
		same(f, "the messages that waited", contents(next.Messages), []string{"hurry", "yes"})
		q, err := f.Runs.Question(f.ctx, next.Question)
		f.must(err)
		same(f, "the next run has the question and no answer", []any{next.Question, q.Answer == nil}, []any{run.ID, true})
		f.commit(next, answer("Done."))
		for range posts - 1 {
			same(f, "closing", f.deliver(key, "").Replaces.PlatformID, fmt.Sprint("C1/post", i, 1))
		}
	}
}

func questionLosesItsButtons(f *fixture) {
	for i, end := range []func(key event.ThreadKey, id string){
		func(key event.ThreadKey, id string) { f.message(key, said(id, "yes"), answering(nil)) },
		func(key event.ThreadKey, id string) { f.message(key, said(id, "/new"), commands) },
		func(key event.ThreadKey, id string) { f.message(key, said(id, "/stop"), commands) },
		func(key event.ThreadKey, id string) { // the run does not get an answer
			f.message(key, said(id, "hurry"), triggers)
			f.commit(f.begin(key), answer("I wait."))
		},
		func(key event.ThreadKey, id string) {
			f.message(key, said(id, "hurry"), triggers)
			_, err := f.Runs.StopRun(f.ctx, f.begin(key).ID, stopNotice)
			f.must(err)
		},
		func(event.ThreadKey, string) {
			f.clock.advance(time.Hour)
			f.must(f.Runs.ExpireQuestions(f.ctx, func(*runs.Run) outbox.Notice { return stopNotice }, func(*runs.Run) {}))
		},
	} {
		key, reply := threadKey(i), f.asking()
		reply.Posts = []outbox.Post{
			{Channel: channel, Place: "1", Text: "Listen."},
			{Channel: channel, Place: "1", Text: "May I?", Buttons: []outbox.PostButton{{ID: "parley-a", Label: "Yes"}}},
		}
		f.message(key, said(fmt.Sprint("C1/a", i), "do it"), triggers)
		f.commit(f.begin(key), reply)
		f.deliver(key, "")
		post := fmt.Sprint("C1/post", i)
		f.deliver(key, post)
		end(key, fmt.Sprint("C1/b", i))
		closed := f.deliver(key, "")
		for n := 0; closed.Kind != outbox.KindClose && n < 2; n++ { // a notice or a reply may come before
			closed = f.deliver(key, "")
		}
		same(f, "closing", closed.Post, outbox.Post{Channel: channel, Place: "1", Text: "May I?"})
		same(f, "the closed post", closed.Replaces.PlatformID, post)
	}
}
