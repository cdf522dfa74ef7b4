// Package adaptertest checks that an adapter keeps the contract: Run over recordings
// what its normaliser owes custody and intake, Live against a fake of its platform all
// that package adapters promises of it.
package adaptertest

import (
	"bytes"
	"context"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"parley/adapters"
	"parley/ingest/event"
)

// Run holds a normaliser against the contract, over every payload of some
// recordings (.jsonl files, as replay reads them) and over damaged copies of
// them. Glob patterns are allowed; no recording at all is a failure.
func Run(t *testing.T, normalizer adapters.Normalizer, recordings ...string) {
	t.Helper()
	payloads := read(t, recordings)
	if len(payloads) == 0 {
		t.Fatalf("no payload in %q", recordings)
	}
	c := checker{normalizer: normalizer}
	byKey := map[string]payload{}
	for _, p := range payloads {
		t.Run(p.name, func(t *testing.T) {
			keys := c.payload(t, p)
			if keys.Channel.Type != event.ChannelUnknown {
				p.people.types[keys.Channel.ID] = keys.Channel.Type
			}
			c.distinct(t, byKey, keys, p)
			c.damaged(t, p)
		})
	}
}

type checker struct{ normalizer adapters.Normalizer }

// payload checks one payload as it was recorded, and returns its keys.
func (c checker) payload(t *testing.T, p payload) event.Keys {
	t.Helper()
	body := bytes.Clone(p.envelope.Body)
	keys := c.normalizer.Keys(p.envelope, p.people)
	e, err := c.normalizer.Normalize(t.Context(), p.envelope, p.people)
	parsed := p.envelope
	parsed.Parsed = keys.Parsed
	keys.Parsed = nil
	for _, envelope := range []event.Envelope{p.envelope, parsed} {
		again := c.normalizer.Keys(envelope, p.people)
		again.Parsed = nil
		if diff := cmp.Diff(keys, again); diff != "" {
			t.Errorf("the keys of the same bytes differ:\n%s", diff)
		}
	}
	if same, _ := c.normalizer.Normalize(t.Context(), parsed, p.people); err == nil {
		if !reflect.DeepEqual(e, same) {
			t.Errorf("the event is %+v, and %+v if the keys were read before", e, same)
		}
	}
	if !bytes.Equal(body, p.envelope.Body) {
		t.Error("the body was written to")
	}
	checkKeys(t, p, keys)
	checkAgreement(t, keys, e, err)
	if err == nil && e.Ignored == "" {
		checkEvent(t, p, keys, e)
	}
	return keys
}

// distinct says that two payloads have the same key only where they are the same
// bytes, or tell of the same change.
func (c checker) distinct(t *testing.T, byKey map[string]payload, keys event.Keys, p payload) {
	t.Helper()
	first, known := byKey[keys.Dedupe]
	byKey[keys.Dedupe] = p
	if !known || keys.Settled != nil || bytes.Equal(first.envelope.Body, p.envelope.Body) {
		return
	}
	a, errA := c.normalizer.Normalize(t.Context(), first.envelope, first.people)
	b, errB := c.normalizer.Normalize(t.Context(), p.envelope, p.people)
	if errA != nil || errB != nil || a.Kind != b.Kind || subject(a) != subject(b) {
		t.Errorf("%s has the same dedupe key, %q, and is another event", first.name, keys.Dedupe)
	}
}

// subject is the message that an event makes or is about.
func subject(e event.Event) string {
	if e.Kind.MakesMessage() && e.Message != nil {
		return e.Message.ExternalID + "|" + e.Message.ClientMessageID
	}
	return strings.Join(e.Targets, " ")
}

func checkKeys(t *testing.T, p payload, keys event.Keys) {
	t.Helper()
	if keys.Kind == "" || keys.Dedupe == "" {
		t.Errorf("kind %q, dedupe key %q: neither may be empty", keys.Kind, keys.Dedupe)
	}
	if len(keys.Dedupe) > 1024 || !clean(keys.Dedupe) || !clean(keys.Subject) || !clean(string(keys.Thread)) {
		t.Errorf("keys that a store can't hold: %q, %q, %q", keys.Dedupe, keys.Subject, keys.Thread)
	}
	if keys.Twin == keys.Dedupe {
		t.Error("the payload is its own twin")
	}
	prefix := string(p.envelope.Platform) + ":" + p.envelope.Workspace + ":"
	if keys.Thread != "" && (!strings.HasPrefix(string(keys.Thread), prefix) || string(keys.Thread) == prefix) {
		t.Errorf("thread %q must begin with %q and go on", keys.Thread, prefix)
	}
	if keys.Holder != "" && keys.Thread == "" {
		t.Error("the payload has a holder, and no thread where that is not known")
	}
	if keys.Settled == nil && keys.Thread == "" && keys.Subject == "" {
		t.Error("nothing is settled, and neither a thread nor a subject says where the payload belongs")
	}
}

// checkAgreement: what custody settles as dead is exactly what can't be read.
func checkAgreement(t *testing.T, keys event.Keys, e event.Event, err error) {
	t.Helper()
	dead := keys.Settled != nil && keys.Settled.Disposition == event.Dead
	switch {
	case dead != (err != nil):
		t.Errorf("custody says %+v, reading it %v", keys.Settled, err)
	case dead && keys.Settled.Error == "":
		t.Error("a dead letter without words")
	case keys.Settled != nil && !dead && (keys.Settled.Disposition != event.Ignored || keys.Settled.Reason != e.Ignored || e.Ignored == ""):
		t.Errorf("custody ignores it for %q, reading it for %q", keys.Settled.Reason, e.Ignored)
	case err == nil && keys.Kind != e.Kind:
		t.Errorf("custody says %s, reading it %s", keys.Kind, e.Kind)
	}
}

func checkEvent(t *testing.T, p payload, keys event.Keys, e event.Event) {
	t.Helper()
	switch e.Kind {
	case event.KindMessage, event.KindCommand, event.KindAction:
		if e.Message == nil {
			t.Fatal("a message without its message")
		}
		if keys.Thread != "" && e.Message.Thread != keys.Thread {
			t.Errorf("thread %q in custody, %q when read", keys.Thread, e.Message.Thread)
		}
		if e.Kind != event.KindMessage && keys.Subject != e.Message.ExternalID {
			t.Errorf("a %s that custody knows as %q, and reading it as %q", e.Kind, keys.Subject, e.Message.ExternalID)
		}
		if e.Message.ExternalID == "" && e.Message.ClientMessageID == "" {
			t.Error("a message without an id")
		}
		if err := e.Message.Metadata.Validate(); err != nil {
			t.Errorf("metadata: %v", err)
		}
	case event.KindEdit, event.KindDelete, event.KindReaction:
		if len(e.Targets) == 0 || slices.Contains(e.Targets, "") {
			t.Errorf("targets %q", e.Targets)
		}
		if (e.Reaction != nil) != (e.Kind == event.KindReaction) {
			t.Errorf("a %s with the reaction %+v", e.Kind, e.Reaction)
		}
	}
	if e.Reaction != nil && !e.Reaction.All {
		checkSender(t, p, e.Reaction.SenderID)
	}
	if e.Message != nil {
		checkMessage(t, p, e.Message)
	}
	if e.Viewing != nil {
		checkSender(t, p, e.Viewing.SenderID)
		if e.Kind != event.KindOther || e.Viewing.At.IsZero() {
			t.Errorf("a %s with the view %+v", e.Kind, e.Viewing)
		}
	}
}

// checkMessage checks a message, or the new state of one, which may leave out
// who wrote it.
func checkMessage(t *testing.T, p payload, m *event.Message) {
	t.Helper()
	metadata := m.Metadata
	if p.envelope.Platform != event.Web { // whose metadata is its client's
		if metadata.Source != string(p.envelope.Platform) {
			t.Errorf("source %q", metadata.Source)
		}
		if metadata.SenderID != "" {
			checkSender(t, p, metadata.SenderID)
		}
		if metadata.Passive != nil || metadata.TriggerRAG != nil || metadata.IncludeInMemory != nil || metadata.RecipientID != "" {
			t.Errorf("the run hints are policy's: %s", metadata.Bytes())
		}
		if metadata.SenderType == event.Bot && metadata.MentionToken != "" {
			t.Errorf("a bot with the mention token %q", metadata.MentionToken)
		}
	}
	for _, text := range append(quoted(m), m.Content, m.ExternalID, metadata.SenderDisplayName) {
		if !clean(text) {
			t.Errorf("%q is not text that can be kept", text)
		}
	}
	for _, a := range m.Attachments {
		if a.ID == "" || strings.Contains(a.ID+a.Name, "://") || a.Size < 0 || !clean(a.ID+a.Name+a.MimeType) {
			t.Errorf("attachment %+v: needs an id, and may hold no URL", a)
		}
	}
	if !m.SentAt.IsZero() && (m.SentAt.Year() < 2001 || m.SentAt.After(latest)) {
		t.Errorf("sent at %v", m.SentAt)
	}
}

// latest is later than any message's own time.
var latest = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)

func quoted(m *event.Message) (texts []string) {
	quotes := m.Forwarded
	if m.Quoted != nil {
		quotes = append(slices.Clone(quotes), *m.Quoted)
	}
	for _, q := range quotes {
		texts = append(texts, q.Content, q.Name)
	}
	return texts
}

func checkSender(t *testing.T, p payload, id string) {
	t.Helper()
	if prefix := p.envelope.Platform.Namespace() + ":"; !strings.HasPrefix(id, prefix) || id == prefix {
		t.Errorf("sender %q must begin with %q and go on", id, prefix)
	}
}

func clean(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }

// copies is how many damaged copies of each payload are read.
const copies = 40

// damaged reads copies of a payload with bytes changed, doubled or gone: none may
// panic, and custody and intake must agree on each.
func (c checker) damaged(t *testing.T, p payload) {
	t.Helper()
	random := rand.New(rand.NewPCG(1, uint64(len(p.envelope.Body))))
	for range copies {
		envelope := p.envelope
		envelope.Body = damage(random, envelope.Body)
		broken := p
		broken.envelope = envelope
		if !c.survives(t, broken) {
			t.Errorf("of the body %q", envelope.Body)
			return
		}
	}
}

func (c checker) survives(t *testing.T, p payload) (ok bool) {
	t.Helper()
	defer func() {
		if r := recover(); r != nil {
			t.Errorf("panic: %v", r)
			ok = false
		}
	}()
	keys := c.normalizer.Keys(p.envelope, p.people)
	e, err := c.normalizer.Normalize(context.WithoutCancel(t.Context()), p.envelope, p.people)
	dead := keys.Settled != nil && keys.Settled.Disposition == event.Dead
	if dead != (err != nil) || keys.Dedupe == "" || err == nil && keys.Kind != e.Kind {
		t.Errorf("custody says %+v with the key %q, reading it %v", keys.Settled, keys.Dedupe, err)
		return false
	}
	return true
}

// damage changes a few bytes, doubles a stretch, or cuts one out.
func damage(random *rand.Rand, body []byte) []byte {
	body = bytes.Clone(body)
	if len(body) == 0 {
		return body
	}
	from := random.IntN(len(body))
	to := from + random.IntN(min(len(body)-from, 40)+1)
	switch random.IntN(4) {
	case 0:
		return slices.Delete(body, from, to)
	case 1:
		return slices.Insert(body, from, body[from:to]...)
	case 2:
		return body[:from]
	}
	for range 1 + random.IntN(3) {
		body[random.IntN(len(body))] = `0"{}[]:,-\x`[random.IntN(11)]
	}
	return body
}
