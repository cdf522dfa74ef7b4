package journaltest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal"
	"parley/ingest/journal/audit"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/people"
	"parley/ingest/journal/record"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/schedules"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/strangers"
	"parley/ingest/journal/workstreams"
	"parley/ingest/stream"
)

func peoplePromises() []promise {
	return []promise{
		{"each column of text is known by what it has of people", columnsKnown},
		{"the words and the name of a forgotten person are in no column, and those of others stay", personForgotten},
		{"a thread goes on without the words and the name of a forgotten person", threadGoesOn},
		{"nothing of a forgotten person is read again, and later messages are new ones", notReadAgain},
		{"a run of a forgotten person ends without an answer; the answer to others as well is erased after it", runsOfForgotten},
		{"what was on its way when its author was forgotten leaves with the next sweep", onItsWay},
		{"a forget that broke off is done by the next sweep", forgetResumed},
		{"a count says what a forget would erase, and changes nothing", forgetCounted},
		{"a person is found by the sender_id, by the platform's id, or by a name that one person has", personFound},
		{"messages leave the store at the age of their own time, with what answers them", oldMessages},
		{"a message that a run works on keeps its words until the run has ended", oldMessageWorks},
		{"the empty messages are erased once", erasedOnce},
	}
}

// nora returns a message of another person.
func nora(id, content string) *event.Message {
	m := said(id, content)
	m.Metadata.SenderID, m.Metadata.SenderDisplayName = "slack:U2NORA", "Nora"
	return m
}

// leaver returns a message of the person who is forgotten.
func leaver(id, content string) *event.Message {
	m := said(id, content)
	m.Metadata.SenderID, m.Metadata.SenderDisplayName = "slack:U1OLIVIA", "Olivia Ørsted"
	m.Metadata.SetSubject("zebra subject")
	return m
}

const oliviaID = "slack:U1OLIVIA"

// asksWith records a message whose payload has a text, and returns its run.
func (f *fixture) asksWith(key event.ThreadKey, m *event.Message, payload string) *runs.Run {
	f.Helper()
	a := f.envelope(event.KindMessage, key, m.ExternalID)
	a.Envelope.Body = []byte(payload)
	accepted := f.accept(a)
	f.record(accepted.Thread, accepted.ID, event.Event{Kind: event.KindMessage, Message: m}, triggers)
	return f.begin(key)
}

// zebra stores words and the name of Olivia in all ways, and what others have said.
func (f *fixture) zebra() {
	f.Helper()
	m := leaver("C1/1", "zebra one")
	m.Attachments = []event.Attachment{{ID: "F1", Name: "zebra.txt", Words: "zebra words"}}
	m.Metadata.ThreadContext = "zebra context"
	run := f.asksWith(threadKey(1), m, `{"user":"U1OLIVIA","text":"zebra one","name":"Olivia \u00d8rsted"}`)
	f.stored(f.list(threadKey(1))[0].Attachments[0], copyPath)
	f.must(f.Files.PutBlob(f.ctx, copyPath, strings.NewReader("zebra bytes"), 11))
	_, err := f.Workstreams.Launch(f.ctx, workstreams.Workstream{ID: "w1", Run: run.ID, Agent: agent, Name: "zebra name", Task: "zebra task", DeadlineAt: f.clock.Now().Add(time.Minute)}, fewWorkstreams)
	f.must(err)
	f.asksWith(event.WorkstreamThread("w1"), nora("W/1", "zebra task"), "zebra task")
	f.append(run, stream.Message{Type: stream.Thought, Text: "zebra thought", Time: f.clock.Now()})
	f.keepSession(run, `{"title":"zebra session"}`)
	reply := answer("zebra answer", "zebra post", "Hello Olivia Ørsted")
	reply.Attempt = runs.Attempt{BegunAt: f.clock.Now(), Input: `["zebra input"]`, Error: "zebra attempt"}
	reply.Metadata = func(id string, _ time.Duration) []byte {
		return fmt.Appendf(nil, `{"message_id":%q,"uiSchema":{"zebra":1}}`, id)
	}
	reply.Question = f.asking().Question
	reply.Question.Options[0].Label = "zebra option"
	f.commit(run, reply)
	for i := range 2 {
		f.deliver(threadKey(1), fmt.Sprint("C1/post", i))
	}
	// Nora quotes Olivia and the answer, mentions her, and has her reaction.
	look := nora("C1/2", "look, <@U1OLIVIA|Olivia Ørsted>")
	look.Quoted = &event.Quote{ExternalID: "C1/1", Name: "Olivia Ørsted", SenderID: oliviaID, Content: "zebra one"}
	look.Forwarded = []event.Quote{{ExternalID: "C9/1", SenderID: oliviaID, Name: "Olivia Ørsted", Content: "zebra elsewhere"}, {Content: "kept quote", Names: event.Names{"<@U1OLIVIA>": "Olivia Ørsted"}}}
	look.Names = event.Names{"<@U1OLIVIA>": "Olivia Ørsted", "<@U2NORA>": "Nora"}
	f.message(threadKey(1), look, passive)
	f.change(threadKey(1), event.Event{Kind: event.KindReaction, Targets: []string{"C1/2"}, Reaction: &event.Reaction{Emoji: "eyes", SenderID: oliviaID}}, passive)
	// Elsewhere an agent writes about her, and Nora of other things.
	f.exchange(threadKey(2), "C1/3", "unused", "unused")
	f.exec(`UPDATE messages SET sender_id = 'slack:U2NORA', content = 'kept question', metadata = $1 WHERE external_id = 'C1/3'`, metadataOf(nora("", "")))
	f.exec(`UPDATE messages SET content = 'Olivia Ørsted knows' WHERE author = 'agent' AND content = 'unused'`)
	f.message(threadKey(3), nora("C1/4", "kept words"), triggers)
	kept := answer("kept answer", "kept post")
	kept.Attempt = runs.Attempt{BegunAt: f.clock.Now(), Error: "Olivia Ørsted was not found"}
	f.commit(f.begin(threadKey(3)), kept)
	// A dead letter, a schedule and an operator.
	dead := f.envelope(event.KindMessage, threadKey(3), "C1/5")
	dead.Envelope.Body = []byte(`zebra letter of "U1OLIVIA"`)
	accepted := f.accept(dead)
	f.must(f.Envelopes.Bury(f.ctx, f.claim(accepted.Thread), accepted.ID, errors.New("zebra fault")))
	_, err = f.Schedules.AddSchedule(f.ctx, schedules.Schedule{Workspace: workspace, ID: "s1", Thread: threadKey(1), Plan: schedules.Plan{
		Timing: schedules.Timing{Cron: "0 * * * *"}, Prompt: "zebra prompt", Cause: oliviaID,
	}})
	f.must(err)
	action, err := f.Audit.BeginAction(f.ctx, audit.Action{Who: "mara", What: "dead.retry", Subject: "7", Note: `she wrote "zebra one"`})
	f.must(err)
	f.must(f.Strangers.Decide(f.ctx, workspace, oliviaID, "Olivia Ørsted", strangers.Always, "operator:mara"))
	f.must(f.Audit.EndAction(f.ctx, action.ID, `{"name":"Olivia Ørsted"}`))
	f.exec(`UPDATE operator_log SET error = 'Olivia Ørsted'`)
	// What else may stand in the columns that have words.
	f.exec(`UPDATE messages SET run_input = '{"zebra":1}' WHERE external_id = 'C1/1'`)
	f.exec(`UPDATE runs SET error = 'zebra fault' WHERE id = $1`, run.ID)
	f.exec(`UPDATE run_events SET details = $1 WHERE run = $2`, []byte(`{"zebra":1}`), run.ID)
	f.exec(`UPDATE questions SET answer = '{"text":"zebra"}' WHERE run = $1`, run.ID)
	f.exec(`UPDATE deliveries SET error = 'Olivia Ørsted', buttons = '[{"label":"zebra"}]', card = '{"zebra":1}' WHERE run = $1`, run.ID)
	f.exec(`UPDATE workstreams SET tool = 'zebra', message = 'zebra', summary = 'zebra', error = 'zebra'`)
	f.exec(`INSERT INTO schedule_ticks (workspace, schedule, planned_at, message, state, error) VALUES ('acme', 'other', 1, 'm', 'failed', 'Olivia Ørsted')`)
	f.fill()
}

// filled returns the columns that have words or a name, without those that a run fills only while it works.
func filled() (list []string) {
	working := []string{"run_steps.body", "threads.run_answer", "deliveries.file"}
	for table, has := range columns {
		for column, what := range has {
			if at := table + "." + column; what != none && !slices.Contains(working, at) {
				list = append(list, at)
			}
		}
	}
	slices.Sort(list)
	return list
}

// metadataOf returns the metadata of a message.
func metadataOf(m *event.Message) []byte { return m.Metadata.Bytes() }

// forget forgets a person, and does what a daemon does within a minute.
func (f *fixture) forget(ref string) record.Erased {
	f.Helper()
	p, err := f.People.Find(f.ctx, ref)
	f.must(err)
	erased, err := f.People.Forget(f.ctx, &p)
	f.must(err)
	f.sweep(0)
	return erased
}

// sweep erases what is due, removes unused copies, and brings the index up to date.
func (f *fixture) sweep(age time.Duration) {
	f.Helper()
	_, err := f.EraseDue(f.ctx, journal.Retention{Messages: age})
	f.must(err)
	for _, path := range f.removed() {
		f.must(f.Files.RemoveBlob(f.ctx, path))
	}
	f.fill()
}

// gone fails the test if a word of Olivia's or her name is in a column.
func (f *fixture) gone() {
	f.Helper()
	same(f, "columns with her words or her name", f.hits("zebra", "olivia ø", `olivia \u00d8`, "ørsted"), nil)
}

func personForgotten(f *fixture) {
	f.zebra()
	same(f, "columns before", f.hits("zebra", "ørsted"), filled())
	rows, ids := f.count("messages"), f.count("messages WHERE external_id = 'C1/1'")
	erased := f.forget(oliviaID)
	same(f, "erased", erased, record.Erased{Messages: 2, Answers: 2, Files: 1, Changed: 1})
	f.gone()
	same(f, "rows", []int64{f.count("messages"), f.count("messages WHERE external_id = 'C1/1'")}, []int64{rows, ids})
	same(f, "blobs", f.count("blobs"), 0)
	same(f, "thread 1", f.lines(threadKey(1)), []string{"1 -", "2 -", "3 look, <@U1OLIVIA>"})
	same(f, "thread 2", f.lines(threadKey(2)), []string{"1 kept question", "2 -"})
	same(f, "thread 3", f.lines(threadKey(3)), []string{"1 kept words", "2 kept answer"})
	m := f.list(threadKey(1))[2]
	same(f, "Nora's quotations", []int{len(m.Quotes.Forwarded), len(m.Quotes.Names), len(m.Reactions)}, []int{1, 1, 0})
	same(f, "what was said in it", m.Quotes.Forwarded[0].Content, "kept quote")
	same(f, "kept columns", f.hits("kept", "nora"), []string{
		"deliveries.payload", "messages.content", "messages.metadata", "messages.quotes", "messages.sender_id", "runs.payer", "search_people.name", "search_people.sender_id", "search_people.words", "search_words.words",
	})
	same(f, "people", each(f.people(""), func(p people.Person) string { return p.Name }), []string{"Nora"})
	same(f, "a second time", f.forget(oliviaID), record.Erased{})
}

func (f *fixture) people(text string) []people.Person {
	f.Helper()
	list, err := f.People.People(f.ctx, text)
	f.must(err)
	return list
}

// shown returns the contents, the quotations and the names that the next turn of a thread shows.
func (f *fixture) shown(run *runs.Run) string {
	f.Helper()
	turns, err := f.Runs.Transcript(f.ctx, run, runs.Window{Turns: 50, Bytes: 1 << 20})
	f.must(err)
	var all []messages.Message
	for _, t := range turns {
		if all = append(append(all, t.Context...), t.Messages...); t.Root != nil {
			all = append(all, *t.Root)
		}
		if t.Reply != nil {
			all = append(all, *t.Reply)
		}
	}
	var out strings.Builder
	for _, m := range all {
		fmt.Fprintln(&out, m.Content, m.Quotes, string(m.Metadata))
		if m.Quotes.Quoted != nil {
			fmt.Fprintln(&out, *m.Quotes.Quoted)
		}
	}
	return out.String()
}

func threadGoesOn(f *fixture) {
	f.exchange(threadKey(1), "C1/0", "kept question", "kept answer")
	f.exec(`UPDATE messages SET sender_id = 'slack:U2NORA', metadata = $1 WHERE external_id = 'C1/0'`, metadataOf(nora("", "")))
	f.message(threadKey(1), leaver("C1/1", "zebra one"), triggers)
	f.commit(f.begin(threadKey(1)), answer("zebra answer"))
	f.fill()
	f.forget(oliviaID)
	f.message(threadKey(1), nora("C1/2", "go on"), triggers)
	run := f.begin(threadKey(1))
	text := strings.ToLower(f.shown(run))
	same(f, "what the next turn shows", []bool{strings.Contains(text, "zebra"), strings.Contains(text, "ørsted"), strings.Contains(text, "kept answer"), strings.Contains(text, "go on")}, []bool{false, false, true, true})
	f.commit(run, answer("gladly"))
	same(f, "thread", f.lines(threadKey(1)), []string{"1 kept question", "2 kept answer", "3 -", "4 -", "5 go on", "6 gladly"})
}

func notReadAgain(f *fixture) {
	start := f.clock.Now()
	f.message(threadKey(1), leaver("C1/1", "zebra one"), triggers)
	f.fill()
	f.clock.advance(time.Hour)
	f.forget(oliviaID)
	late := func(m *event.Message, at time.Time) string {
		m.SentAt = at
		accepted := f.accept(f.envelope(event.KindMessage, threadKey(1), m.ExternalID))
		e := entry(accepted.ID, event.Event{Kind: event.KindMessage, Message: m}, passive)
		e.Origin = messages.Late
		result, err := f.Recorder.Record(f.ctx, f.claim(accepted.Thread), e)
		f.must(err)
		return string(result.Disposition) + " " + result.Reason
	}
	same(f, "a known message", late(leaver("C1/1", "zebra one"), start), "ignored deleted")
	same(f, "one that was missed", late(leaver("C1/2", "zebra two"), start.Add(time.Minute)), "ignored forgotten")
	same(f, "another one's", late(nora("C1/3", "hi"), start.Add(time.Minute)), "stored no-mention")
	run := f.asksWith(threadKey(2), nora("C1/4", "hi"), "hi")
	f.must(f.Recorder.SetThreadHistory(f.ctx, f.claim(run.Thread), run, runs.ThreadHistory{Root: "C1/5"}, []record.Read{
		{Message: leaver("C1/5", "zebra root"), Metadata: metadataOf(leaver("", ""))}, {Message: nora("C1/6", "kept"), Metadata: metadataOf(nora("", ""))},
	}))
	f.sweep(0)
	f.gone()
	later := leaver("C1/7", "novel")
	later.Metadata.Extra = nil
	f.clock.advance(time.Hour)
	later.SentAt = f.clock.Now()
	f.message(threadKey(1), later, passive)
	f.clock.advance(time.Minute)
	f.sweep(0)
	same(f, "a later message", f.hits("novel"), []string{"messages.content", "search_words.words"})
}

func runsOfForgotten(f *fixture) {
	f.message(threadKey(1), leaver("C1/1", "zebra one"), triggers)
	alone := f.begin(threadKey(1))
	f.message(threadKey(2), leaver("C1/2", "zebra two"), triggers)
	f.message(threadKey(2), nora("C1/3", "kept"), triggers)
	both := f.begin(threadKey(2))
	f.fill()
	f.forget(oliviaID)
	f.append(both, stream.Message{Type: stream.Thought, Text: "zebra thought", Time: f.clock.Now()})
	same(f, "hers", f.commit(alone, answer("zebra answer")).State, runs.Canceled)
	reply := answer("zebra answer", "zebra post")
	reply.Attempt = runs.Attempt{BegunAt: f.clock.Now(), Input: `["zebra input"]`}
	same(f, "both", f.commit(both, reply).State, runs.Done)
	f.clock.advance(time.Minute)
	f.deliver(threadKey(2), "C1/post")
	f.sweep(0)
	f.gone()
	same(f, "thread 2", f.lines(threadKey(2)), []string{"1 -", "2 kept", "3 -"})
}

func onItsWay(f *fixture) {
	f.message(threadKey(1), leaver("C1/1", "zebra one"), passive)
	accepted := f.accept(f.envelope(event.KindMessage, threadKey(1), "C1/2"))
	f.fill()
	f.forget(oliviaID)
	m := leaver("C1/2", "zebra two")
	m.SentAt = f.clock.Now()
	f.record(accepted.Thread, accepted.ID, event.Event{Kind: event.KindMessage, Message: m}, passive)
	f.clock.advance(time.Minute)
	f.sweep(0)
	f.gone()
	same(f, "people", f.people(""), nil)
}

func forgetResumed(f *fixture) {
	f.zebra()
	ctx, end := f.ctx, errors.New("ended")
	broken := process(f.failing, ctx, &breaking{Engine: f.engine, after: 4, err: end}, f.clock, "broken", 0)
	p, err := f.People.Find(f.ctx, oliviaID)
	f.must(err)
	_, err = broken.People.Forget(ctx, &p)
	f.fails("the forget", err, end)
	same(f, "columns", len(f.hits("zebra")) > 0, true)
	f.sweep(0)
	f.gone()
}

// breaking is an engine whose writes fail after some.
type breaking struct {
	storage.Engine
	after int
	err   error
}

func (b *breaking) Write(ctx context.Context, options storage.WriteOptions, fn func(tx storage.Tx) error) error {
	if b.after--; b.after < 0 {
		return b.err
	}
	return b.Engine.Write(ctx, options, fn)
}

func forgetCounted(f *fixture) {
	f.zebra()
	before := f.hits("zebra", "ørsted")
	p, err := f.People.Find(f.ctx, oliviaID)
	f.must(err)
	counted, err := f.People.Count(f.ctx, &p)
	f.must(err)
	same(f, "counted", counted, people.Counted{Erased: record.Erased{Messages: 1, Answers: 1, Files: 1, Changed: 1}, Naming: 1})
	same(f, "columns", f.hits("zebra", "ørsted"), before)
	list, err := f.People.Written(f.ctx, &p, 0)
	f.must(err)
	same(f, "written", []any{len(list), list[0].Content, len(list[0].Attachments), list[0].ThreadID}, []any{1, "zebra one", 1, f.threadID(threadKey(1))})
}

func personFound(f *fixture) {
	f.message(threadKey(1), leaver("C1/1", "hi"), passive)
	f.message(threadKey(1), nora("C1/2", "hi"), passive)
	other := nora("C1/3", "hi")
	other.Metadata.SenderID = "slack:U3"
	f.message(threadKey(1), other, passive)
	f.fill()
	for _, ref := range []string{oliviaID, "U1OLIVIA", "olivia ørsted", " Olivia Ørsted "} {
		p, err := f.People.Find(f.ctx, ref)
		f.must(err)
		same(f, ref, p.SenderID, oliviaID)
	}
	for _, ref := range []string{"", "Olivia", "U9", "agent:helper", "system:parley", "slack:U9"} {
		_, err := f.People.Find(f.ctx, ref)
		f.fails(ref, err, storage.ErrNotFound)
	}
	_, err := f.People.Find(f.ctx, "nora")
	several, _ := errors.AsType[*people.SeveralError](err)
	if several == nil {
		f.Fatalf("a name of two: %v", err)
	}
	same(f, "the people", each(several.People, func(p people.Person) string { return p.SenderID }), []string{"slack:U2NORA", "slack:U3"})
	same(f, "a part of a name", len(f.people("ørs")), 1)
	same(f, "an id", len(f.people("U3")), 1)
}

func oldMessages(f *fixture) {
	f.zebra()
	f.clock.advance(30 * day)
	late := nora("C1/20", "zebra late") // it was sent long before it came
	late.SentAt = f.clock.Now().Add(-20 * day)
	f.message(threadKey(5), late, passive)
	f.exchange(threadKey(6), "C1/21", "young words", "young answer")
	f.sweep(31 * day)
	same(f, "before", len(f.hits("zebra")) > 10, true)
	f.sweep(30 * day)
	same(f, "hers", f.hits("zebra one", "zebra answer", "zebra thought", "zebra task", "zebra input", "zebra option", "zebra words", "kept words", "kept answer"), []string{"operator_log.note"})
	same(f, "her name", f.hits("ørsted"), []string{"deliveries.error", "operator_log.error", "operator_log.result", "schedule_ticks.error", "strangers.name"})
	same(f, "a younger one", f.lines(threadKey(5)), []string{"1 zebra late"})
	f.sweep(20 * day)
	same(f, "at its own age", f.lines(threadKey(5)), []string{"1 -"})
	same(f, "the youngest", f.lines(threadKey(6)), []string{"1 young words", "2 young answer"})
	same(f, "ids", f.lines(threadKey(1)), []string{"1 -", "2 -", "3 -"})
}

func oldMessageWorks(f *fixture) {
	f.message(threadKey(1), leaver("C1/1", "zebra one"), triggers)
	f.clock.advance(time.Hour)
	f.sweep(time.Minute)
	same(f, "while it waits", f.lines(threadKey(1)), []string{"1 zebra one"})
	run := f.begin(threadKey(1))
	f.sweep(time.Minute)
	same(f, "while its run works", f.lines(threadKey(1)), []string{"1 zebra one"})
	same(f, "state", f.commit(run, answer("zebra answer")).State, runs.Done)
	f.sweep(time.Minute)
	same(f, "after the run", f.lines(threadKey(1)), []string{"1 -", "2 -"})
}

func erasedOnce(f *fixture) {
	f.zebra()
	f.forget(oliviaID)
	var before int64
	changed := func() (n int64) {
		f.must(f.engine.Read(f.ctx, func(tx storage.Tx) error {
			_, err := tx.Row([]any{&n}, `SELECT sum(changed) FROM threads`)
			return err
		}))
		return n
	}
	f.clock.advance(time.Hour)
	f.sweep(0)
	before = changed()
	f.sweep(0)
	same(f, "changes of threads", changed(), before)
}
