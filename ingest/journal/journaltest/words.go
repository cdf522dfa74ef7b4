package journaltest

import (
	"fmt"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal/envelopes"
	"parley/ingest/journal/storage"
)

func wordPromises() []promise {
	return []promise{
		{"an envelope without effect keeps no body", bodiesWithoutEffect},
		{"a delete empties what carries the message's words", carriedWords},
		{"an edit renews the quotations of a message, and empties the bodies with its earlier words", renewedWords},
		{"words of a message that is deleted already are not carried", carriedAfterDelete},
		{"a delete empties the dead letters about the message", deadWords},
		{"a delete removes the words in the message's metadata", wordsInMetadata},
		{"the engine hears of removed words", eraserHears},
	}
}

func bodiesWithoutEffect(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), passive)
	bodies := map[string]int64{}
	at := f.envelope(event.KindEdit, "", "C1/1")
	at.Keys.Result = event.Ignore(event.ReasonNoChange)
	bodies["ignored when it is accepted"] = f.accept(at).ID
	tell := func(what string, e event.Event, decide policy) {
		accepted := f.accept(f.envelope(e.Kind, threadKey(1), "C1/x"))
		bodies[what] = accepted.ID
		f.record(accepted.Thread, accepted.ID, e, decide)
	}
	tell("ignored", event.Event{Kind: event.KindMember, Ignored: event.ReasonMember}, nil)
	tell("a duplicate", event.Event{Kind: event.KindMessage, Message: said("C1/1", "hi")}, passive)
	tell("refused", event.Event{Kind: event.KindMessage, Message: said("C1/2", "hi")}, refused)
	tell("only noted", event.Event{Kind: event.KindMessage, Message: said("C1/3", "hi")}, noted)
	for what, id := range bodies {
		same(f, what, len(f.body(id)), 0)
	}
	waits := f.accept(f.envelope(event.KindEdit, "", "C1/9"))
	same(f, "bytes while it waits", len(f.body(waits.ID)) > 0, true)
	f.clock.advance(2 * envelopes.WaitLimit)
	f.must(f.Envelopes.ReviewWaiting(f.ctx, f.clock.Now().Add(-envelopes.WaitLimit), func(int64) {}, func(envelopes.Result) {}))
	same(f, "its message did not come", len(f.body(waits.ID)), 0)
}

// carries records a message that carries words of others, and returns its envelope.
func (f *fixture) carries(id string, change func(e *event.Event)) int64 {
	f.Helper()
	accepted := f.accept(f.envelope(event.KindMessage, threadKey(2), id))
	e := event.Event{Kind: event.KindMessage, Message: said(id, "look")}
	change(&e)
	f.record(accepted.Thread, accepted.ID, e, passive)
	return accepted.ID
}

// inAllWays records a message for each way to carry words of another.
func (f *fixture) inAllWays(target string) (envelopes []int64) {
	f.Helper()
	for i, change := range []func(e *event.Event){
		func(e *event.Event) { e.Carries = []string{"C1/kept", target} },
		func(e *event.Event) { e.Message.Quoted = &event.Quote{ExternalID: target, Content: "secret"} },
		func(e *event.Event) {
			e.Message.Forwarded = []event.Quote{{ExternalID: "C1/kept", Content: "kept"}, {ExternalID: target, Content: "secret"}}
		},
	} {
		envelopes = append(envelopes, f.carries(fmt.Sprint("C1/carries", i), change))
	}
	plain := f.carries("C1/plain", func(*event.Event) {})
	same(f, "bytes of an envelope without them", len(f.body(plain)) > 0, true)
	e := edited("C1/plain", "look now", "2")
	e.Message.Quoted = &event.Quote{ExternalID: target, Content: "secret"}
	f.change(threadKey(2), e, passive)
	return append(envelopes, plain)
}

// forgotten checks that the rows have no secret.
func (f *fixture) forgotten(envelopes []int64) {
	f.Helper()
	for _, id := range envelopes {
		same(f, fmt.Sprint("bytes of envelope ", id), len(f.body(id)), 0)
	}
	same(f, "messages that quote", f.count("messages WHERE quotes LIKE '%secret%'"), 0)
	same(f, "messages that quote others", f.count("messages WHERE quotes LIKE '%kept%'"), 1)
}

func carriedWords(f *fixture) {
	f.message(threadKey(1), said("C1/1", "secret"), passive)
	envelopes := f.inAllWays("C1/1")
	other := f.carries("C1/other", func(e *event.Event) { e.Carries = []string{"C1/kept"} })
	f.change("", deleted("C1/1"), nil)
	f.forgotten(envelopes)
	same(f, "bytes with other words", len(f.body(other)) > 0, true)
}

func renewedWords(f *fixture) {
	f.message(threadKey(1), said("C1/1", "secret"), passive)
	envelopes := f.inAllWays("C1/1")
	f.carries("C1/hidden", func(e *event.Event) { e.Message.Quoted = &event.Quote{ExternalID: "C1/1", Hidden: true} })
	own := f.count("envelopes WHERE message_id = 'C1/1' AND length(body) > 0")
	f.change(threadKey(1), edited("C1/1", "words", "2"), passive)
	f.forgotten(envelopes)
	same(f, "messages that quote the present words", f.count("messages WHERE quotes LIKE '%words%'"), 3)
	same(f, "further bodies of its own", f.count("envelopes WHERE message_id = 'C1/1' AND length(body) > 0"), own+1)
	f.change("", deleted("C1/1"), nil)
	same(f, "after a delete", f.count("messages WHERE quotes LIKE '%words%'"), 0)
}

func carriedAfterDelete(f *fixture) {
	f.message(threadKey(1), said("C1/1", "secret"), passive)
	f.change("", deleted("C1/1"), nil)
	var envelopes []int64
	for i := range 2 {
		envelopes = append(envelopes, f.carries(fmt.Sprint("C1/later", i), func(e *event.Event) {
			e.Carries, e.Message.Forwarded = []string{"C1/1"}, []event.Quote{{ExternalID: "C1/1", Content: "secret"}, {Content: "kept"}}[:1+i]
		}))
	}
	f.forgotten(envelopes)
}

func deadWords(f *fixture) {
	f.message(threadKey(1), said("C1/1", "secret"), passive)
	var dead []int64
	for _, id := range []string{"C1/1", "C1/2"} {
		accepted := f.accept(f.envelope(event.KindEdit, threadKey(1), id))
		f.must(f.Envelopes.Bury(f.ctx, f.claim(accepted.Thread), accepted.ID, fmt.Errorf("unreadable")))
		dead = append(dead, accepted.ID)
	}
	f.change("", deleted("C1/1"), nil)
	same(f, "bytes of the dead letters", []bool{len(f.body(dead[0])) > 0, len(f.body(dead[1])) > 0}, []bool{false, true})
}

func wordsInMetadata(f *fixture) {
	m := said("C1/1", "secret")
	m.Metadata.SetSubject("secret")
	m.Metadata.ThreadContext = "secret"
	f.message(threadKey(1), m, passive)
	f.change("", deleted("C1/1"), nil)
	got := f.list(threadKey(1))[0]
	metadata, err := event.ReadMetadata(got.Metadata)
	f.must(err)
	same(f, "subject and context", []string{metadata.Subject(), metadata.ThreadContext}, []string{"", ""})
	same(f, "sender", metadata.SenderDisplayName, "Olivia")
}

// erasing is an engine that counts the calls of Erased.
type erasing struct {
	storage.Engine
	calls int
}

func (e *erasing) Erased() { e.calls++ }

func eraserHears(f *fixture) {
	engine := &erasing{Engine: f.engine}
	heard := process(f.failing, f.ctx, engine, f.clock, "second", time.Duration(0))
	heard.message(threadKey(1), said("C1/1", "secret"), passive)
	same(f, "calls before a delete", engine.calls, 0)
	heard.change("", deleted("C1/1"), nil)
	same(f, "calls after a delete", engine.calls, 1)
}
