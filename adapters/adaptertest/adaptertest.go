// Package adaptertest checks that an adapter keeps the contract. Run checks its normaliser
// with recordings, and Live checks the promises of package adapters with a fake of its
// platform.
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

// Run checks a normaliser with every payload of some recordings (.jsonl files, as replay
// reads them) and with damaged copies of the payloads. Glob patterns are allowed. Run fails
// if there is no payload.
func Run(t *testing.T, platform adapters.Platform, recordings ...string) {
	t.Helper()
	payloads := read(t, recordings)
	if len(payloads) == 0 {
		t.Fatalf("the recordings %q contain no payload", recordings)
	}
	c := checker{normalizer: platform.Normalizer}
	byKey := map[string]payload{}
	for _, p := range payloads {
		p.platform = platform
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

// payload checks one recorded payload and returns its keys.
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
			t.Errorf("the same bytes have different keys:\n%s", diff)
		}
	}
	if same, _ := c.normalizer.Normalize(t.Context(), parsed, p.people); err == nil {
		if !reflect.DeepEqual(e, same) {
			t.Errorf("the event is %+v, and %+v after Keys", e, same)
		}
	}
	if !bytes.Equal(body, p.envelope.Body) {
		t.Error("the normaliser changed the body")
	}
	checkKeys(t, p, keys)
	checkAgreement(t, keys, e, err)
	if err == nil && e.Ignored == "" {
		checkEvent(t, p, keys, e)
	}
	return keys
}

// distinct checks that two payloads with the same key are the same bytes or report the same
// change.
func (c checker) distinct(t *testing.T, byKey map[string]payload, keys event.Keys, p payload) {
	t.Helper()
	first, known := byKey[keys.Dedupe]
	byKey[keys.Dedupe] = p
	if !known || keys.Result != nil || bytes.Equal(first.envelope.Body, p.envelope.Body) {
		return
	}
	a, errA := c.normalizer.Normalize(t.Context(), first.envelope, first.people)
	b, errB := c.normalizer.Normalize(t.Context(), p.envelope, p.people)
	if errA != nil || errB != nil || a.Kind != b.Kind || messageID(a) != messageID(b) {
		t.Errorf("%s has the same dedupe key %q but is another event", first.name, keys.Dedupe)
	}
}

// messageID returns the id of the message that an event creates, changes or refers to.
func messageID(e event.Event) string {
	if e.Kind.MakesMessage() && e.Message != nil {
		return e.Message.ExternalID + "|" + e.Message.ClientMessageID
	}
	return strings.Join(e.Targets, " ")
}

func checkKeys(t *testing.T, p payload, keys event.Keys) {
	t.Helper()
	if keys.Kind == "" || keys.Dedupe == "" {
		t.Errorf("kind %q or dedupe key %q is empty", keys.Kind, keys.Dedupe)
	}
	if len(keys.Dedupe) > 1024 || !clean(keys.Dedupe) || !clean(keys.MessageID) || !clean(string(keys.Thread)) {
		t.Errorf("a store cannot hold the keys %q, %q, %q", keys.Dedupe, keys.MessageID, keys.Thread)
	}
	if keys.AltKey == keys.Dedupe {
		t.Error("the payload's second dedupe key is its first")
	}
	prefix := string(p.envelope.Platform) + ":" + p.envelope.Workspace + ":"
	if keys.Thread != "" && (!strings.HasPrefix(string(keys.Thread), prefix) || string(keys.Thread) == prefix) {
		t.Errorf("thread %q must be longer than its prefix %q", keys.Thread, prefix)
	}
	if keys.PostID != "" && keys.Thread == "" {
		t.Error("the payload names the post of a button but no thread, which is needed if the post is unknown")
	}
	if keys.Result == nil && keys.Thread == "" && keys.MessageID == "" {
		t.Error("the keys have neither a result nor a thread nor a message id")
	}
}

// checkAgreement checks that Keys refuses exactly the payloads that Normalize refuses, and
// ignores them for the same reason.
func checkAgreement(t *testing.T, keys event.Keys, e event.Event, err error) {
	t.Helper()
	dead := keys.Result != nil && keys.Result.Disposition == event.Dead
	switch {
	case dead != (err != nil):
		t.Errorf("Keys returns the result %+v, Normalize the error %v", keys.Result, err)
	case dead && keys.Result.Error == "":
		t.Error("the dead letter has no error text")
	case keys.Result != nil && !dead && (keys.Result.Disposition != event.Ignored || keys.Result.Reason != e.Ignored || e.Ignored == ""):
		t.Errorf("Keys ignores it for %q, Normalize for %q", keys.Result.Reason, e.Ignored)
	case err == nil && keys.Kind != e.Kind:
		t.Errorf("Keys returns kind %s, Normalize kind %s", keys.Kind, e.Kind)
	}
}

func checkEvent(t *testing.T, p payload, keys event.Keys, e event.Event) {
	t.Helper()
	switch e.Kind {
	case event.KindMessage, event.KindCommand, event.KindAction:
		if e.Message == nil {
			t.Fatal("the event of a message has no message")
		}
		if keys.Thread != "" && e.Message.Thread != keys.Thread {
			t.Errorf("Keys returns thread %q, Normalize thread %q", keys.Thread, e.Message.Thread)
		}
		if e.Kind != event.KindMessage && keys.MessageID != e.Message.ExternalID {
			t.Errorf("Keys names the %s %q, Normalize %q", e.Kind, keys.MessageID, e.Message.ExternalID)
		}
		if e.Message.ExternalID == "" && e.Message.ClientMessageID == "" {
			t.Error("the message has no id")
		}
		if err := e.Message.Metadata.Validate(); err != nil {
			t.Errorf("metadata: %v", err)
		}
	case event.KindEdit, event.KindDelete, event.KindReaction:
		if len(e.Targets) == 0 || slices.Contains(e.Targets, "") {
			t.Errorf("the targets %q are empty or contain an empty id", e.Targets)
		}
		if (e.Reaction != nil) != (e.Kind == event.KindReaction) {
			t.Errorf("the event of kind %s has the reaction %+v", e.Kind, e.Reaction)
		}
	}
	if e.Reaction != nil && !e.Reaction.All {
		checkSender(t, p, e.Reaction.SenderID)
	}
	if e.Message != nil {
		checkMessage(t, p, e.Message)
	}
}

// checkMessage checks a message or its state after an edit, which may lack the author.
func checkMessage(t *testing.T, p payload, m *event.Message) {
	t.Helper()
	metadata := m.Metadata
	if !p.platform.API { // a client of the API chooses its own metadata
		if metadata.Source != string(p.envelope.Platform) {
			t.Errorf("the source is %q", metadata.Source)
		}
		if metadata.SenderID != "" {
			checkSender(t, p, metadata.SenderID)
		}
		if metadata.Passive != nil || metadata.TriggerRAG != nil || metadata.IncludeInMemory != nil || metadata.RecipientID != "" {
			t.Errorf("the metadata contains run hints, which belong to the policy: %s", metadata.Bytes())
		}
		if metadata.SenderType == event.Bot && metadata.MentionToken != "" {
			t.Errorf("a bot has the mention token %q", metadata.MentionToken)
		}
	}
	for _, text := range append(quoted(m), m.Content, m.ExternalID, metadata.SenderDisplayName) {
		if !clean(text) {
			t.Errorf("a store cannot hold the text %q", text)
		}
	}
	for _, a := range files(m) {
		if a.ID == "" || strings.Contains(a.ID+a.Name, "://") || a.Size < 0 || !clean(a.ID+a.Name+a.MimeType) {
			t.Errorf("attachment %+v has no id, contains a URL, or is otherwise invalid", a)
		}
	}
	if !m.SentAt.IsZero() && (m.SentAt.Year() < 2001 || m.SentAt.After(latest)) {
		t.Errorf("the send time %v is implausible", m.SentAt)
	}
}

// latest is later than the time of any message.
var latest = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)

// files returns the files of the message and of its forwards.
func files(m *event.Message) []event.Attachment {
	all := slices.Clone(m.Attachments)
	for _, q := range m.Forwarded {
		all = append(all, q.Attached...)
	}
	return all
}

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
	if prefix := p.platform.Namespace() + ":"; !strings.HasPrefix(id, prefix) || id == prefix {
		t.Errorf("sender %q must be longer than its prefix %q", id, prefix)
	}
}

func clean(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }

// copies is the number of damaged copies of each payload.
const copies = 40

// damaged checks copies of a payload with changed, repeated or missing bytes. None may cause
// a panic, and Keys and Normalize must agree about each.
func (c checker) damaged(t *testing.T, p payload) {
	t.Helper()
	random := rand.New(rand.NewPCG(1, uint64(len(p.envelope.Body))))
	for range copies {
		envelope := p.envelope
		envelope.Body = damage(random, envelope.Body)
		broken := p
		broken.envelope = envelope
		if !c.survives(t, broken) {
			t.Errorf("the damaged body is %q", envelope.Body)
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
	dead := keys.Result != nil && keys.Result.Disposition == event.Dead
	if dead != (err != nil) || keys.Dedupe == "" || err == nil && keys.Kind != e.Kind {
		t.Errorf("Keys returns the result %+v and the key %q, Normalize the error %v", keys.Result, keys.Dedupe, err)
		return false
	}
	return true
}

// damage changes a few bytes of a body, repeats a part of it, or removes a part.
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
