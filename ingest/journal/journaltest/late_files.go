package journaltest

import (
	"time"

	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/record"
	"parley/ingest/journal/runs"
)

func lateFilePromises() []promise {
	return []promise{
		{"a turn waits for the files of its messages, for some seconds at most", turnAwaitsFiles},
		{"a turn begins when the last file has come", filesEndWait},
		{"a message that asks nothing yet lets a waiting turn wait for its files", unfinishedAwaitsFiles},
		{"files that come during a run are input of its repetition", filesDuringRun},
		{"the rest of a message that comes during its run is input of the repetition", restDuringRun},
		{"the rest of an answered message is a turn of its own", restAfterAnswer},
		{"the rest of a message addresses us as the message did", continued},
		{"a replay waits for no file", hastened},
	}
}

// awaiting returns a policy whose messages await their files as long as they have none.
func awaiting(decide policy) policy {
	return func(m *event.Message, look record.Look) record.Decision {
		d := decide(m, look)
		d.AwaitsFiles = len(m.Attachments) == 0
		return d
	}
}

// filed returns a message's state with its file.
func filed(id string) event.Event {
	e := edited(id, id, id)
	e.Message.Attachments = []event.Attachment{{ID: "file of " + id, Name: "a.heic"}}
	return e
}

func turnAwaitsFiles(f *fixture) {
	result := f.tell("C1/1", awaiting(triggers), nil)
	same(f, "the run does not begin", result.Begun == nil && result.TurnDue.Equal(f.clock.Now().Add(record.FilesWait)), true)
	f.clock.advance(time.Second)
	f.message(threadKey(1), said("C1/2", "C1/2"), triggers)
	same(f, "turns", f.due(turns), nil)
	f.clock.advance(record.FilesWait - time.Second)
	same(f, "asked", contents(f.begin(threadKey(1)).Messages), []string{"C1/1", "C1/2"})
}

func filesEndWait(f *fixture) {
	f.message(threadKey(1), said("C1/1", "C1/1"), awaiting(triggers))
	f.message(threadKey(1), said("C1/2", "C1/2"), awaiting(triggers))
	f.clock.advance(time.Second)
	f.change(threadKey(1), filed("C1/1"), awaiting(triggers))
	same(f, "after the first file", f.due(turns), nil)
	result := f.change(threadKey(1), filed("C1/2"), awaiting(triggers))
	same(f, "due", !result.TurnDue.IsZero() && !result.TurnDue.After(f.clock.Now()), true)
	run := f.begin(threadKey(1))
	same(f, "asked", contents(run.Messages), []string{"C1/1", "C1/2"})
	same(f, "the last file is there", len(run.Messages[1].Attachments), 1)
	same(f, "result", f.commit(run, answer("Hello.")).State, runs.Done)
}

func unfinishedAwaitsFiles(f *fixture) {
	f.message(threadKey(1), said("C1/0", "nothing waits"), awaiting(passive))
	same(f, "turns", f.due(turns), nil)
	f.change(threadKey(1), filed("C1/0"), awaiting(passive))
	accepted := f.accept(f.envelope(event.KindMessage, threadKey(1), "C1/1"))
	e := entry(accepted.ID, event.Event{Kind: event.KindMessage, Message: said("C1/1", "what is this?")}, triggers)
	e.Coalesce, e.CoalesceMax = time.Second, time.Second
	_, err := f.Recorder.Record(f.ctx, f.claim(accepted.Thread), e)
	f.must(err)
	f.message(threadKey(1), said("C1/2", "C1/2"), awaiting(passive))
	f.clock.advance(time.Second)
	same(f, "turns", f.due(turns), nil)
	f.change(threadKey(1), filed("C1/2"), awaiting(triggers))
	same(f, "asked", contents(f.begin(threadKey(1)).Messages), []string{"what is this?", "C1/2"})
}

func filesDuringRun(f *fixture) {
	f.message(threadKey(1), said("C1/1", "C1/1"), triggers)
	run := f.begin(threadKey(1))
	f.change(threadKey(1), filed("C1/1"), triggers)
	f.message(threadKey(1), said("C1/2", "next"), triggers)
	same(f, "result", f.commit(run, answer("What?", "What?")).State, runs.Unfinished)
	again := f.begin(threadKey(1))
	same(f, "the same run", again.ID, run.ID)
	same(f, "asked again", contents(again.Messages), []string{"C1/1"})
	same(f, "the file is there", len(again.Messages[0].Attachments), 1)
	same(f, "result", f.commit(again, answer("A fern.", "A fern.")).State, runs.Done)
	same(f, "replies", f.count("deliveries"), 1)
	same(f, "asked next", contents(f.begin(threadKey(1)).Messages), []string{"next"})
}

func restDuringRun(f *fixture) {
	say := func(id string, after time.Duration) {
		f.clock.advance(after)
		m := said(id, id)
		m.Continues, m.SentAt = true, f.clock.Now()
		f.message(threadKey(1), m, triggers)
	}
	f.message(threadKey(1), said("C1/1", "look"), triggers)
	run := f.begin(threadKey(1))
	other := said("C1/2", "next")
	other.Metadata.SenderID = "slack:U2"
	f.message(threadKey(1), other, triggers)
	say("C1/3", time.Second)
	say("C1/4", 2*time.Second)
	same(f, "result", f.commit(run, answer("What?")).State, runs.Unfinished)
	run = f.begin(threadKey(1))
	same(f, "asked again", contents(run.Messages), []string{"look", "C1/3"})
	same(f, "result", f.commit(run, answer("A page.")).State, runs.Done)
	same(f, "asked next", contents(f.begin(threadKey(1)).Messages), []string{"next", "C1/4"})
}

// continued checks how a message addresses us that may be the rest of an earlier one.
func continued(f *fixture) {
	begun := f.clock.Now()
	how := func(sender string, after time.Duration) (how event.Addressed) {
		m := said("C1/9", "C1/9")
		m.Continues, m.SentAt, m.Metadata.SenderID = true, begun.Add(after), sender
		f.message(threadKey(1), m, func(m *event.Message, look record.Look) record.Decision {
			how = look.Continued(m)
			return record.Decision{Ignore: true, Trigger: messages.TriggerNone, Reason: event.ReasonNoMention}
		})
		return how
	}
	text := said("C1/1", "look")
	text.SentAt = begun
	f.message(threadKey(1), text, func(m *event.Message, look record.Look) record.Decision {
		d := triggers(m, look)
		d.Reason = event.ReasonMention
		return d
	})
	aside := said("C1/2", "aside")
	aside.SentAt, aside.Metadata.SenderID = begun, "slack:U2"
	f.message(threadKey(1), aside, passive)
	f.clock.advance(5 * time.Second)
	sender := text.Metadata.SenderID
	same(f, "waiting", how(sender, 2*time.Second), event.AddressedMention)
	run := f.begin(threadKey(1))
	same(f, "asked", how(sender, time.Second), event.AddressedMention)
	f.commit(run, answer("At what?"))
	same(f, "answered", how(sender, time.Second), event.AddressedMention)
	same(f, "too late", how(sender, 2*time.Second+time.Millisecond), event.AddressedNone)
	same(f, "earlier", how(sender, -time.Millisecond), event.AddressedNone)
	same(f, "of somebody who asked nothing", how("slack:U2", time.Second), event.AddressedNone)
	same(f, "of a stranger", how("slack:U3", time.Second), event.AddressedNone)
}

// restAfterAnswer: the answer did not see the rest, which therefore is a turn of its own.
func restAfterAnswer(f *fixture) {
	f.message(threadKey(1), said("C1/1", "look"), triggers)
	f.commit(f.begin(threadKey(1)), answer("At what?"))
	m := said("C1/2", "https://example.org")
	m.Continues, m.SentAt = true, f.clock.Now()
	f.message(threadKey(1), m, triggers)
	run := f.begin(threadKey(1))
	same(f, "asked next", contents(run.Messages), []string{"https://example.org"})
	same(f, "result", f.commit(run, answer("A page.")).State, runs.Done)
	same(f, "turns", f.due(turns), nil)
}

func hastened(f *fixture) {
	f.message(threadKey(1), said("C1/1", "C1/1"), awaiting(triggers))
	f.must(f.Runs.HastenTurns(f.ctx))
	same(f, "asked", contents(f.begin(threadKey(1)).Messages), []string{"C1/1"})
}
