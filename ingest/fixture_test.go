package ingest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/adapters"
	"parley/ingest/event"
	"parley/ingest/journal"
	"parley/ingest/journal/envelopes"
	"parley/ingest/journal/journaltest"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/record"
	"parley/ingest/journal/sqlite"
	"parley/ingest/journal/storage"
	"parley/ingest/work"
)

// payload is a payload of the test platform.
type payload struct {
	Kind     event.Kind `json:"kind"` // empty: message
	ID       string     `json:"id"`
	Revision string     `json:"revision,omitempty"`
	Thread   string     `json:"thread,omitempty"`
	Channel  string     `json:"channel,omitempty"`
	// Type is the channel's type, if the payload tells it. The thread of a message
	// without a type is that of its channel's type, as on Slack.
	Type    event.ChannelType `json:"type,omitempty"`
	Sender  string            `json:"sender,omitempty"`
	Text    string            `json:"text,omitempty"`
	Mention bool              `json:"mention,omitempty"`
	Bot     bool              `json:"bot,omitempty"`
	Needs   string            `json:"needs,omitempty"`
	Trouble string            `json:"trouble,omitempty"`
	Pressed string            `json:"pressed,omitempty"`
	// Count counts the message in the adapter's state, and appends the number to its text.
	Count bool `json:"count,omitempty"`
	// Age is the message's age at its arrival.
	Age       time.Duration `json:"age,omitempty"`
	SentAt    int64         `json:"sent_at,omitempty"` // by the platform, in milliseconds since 1970; 0: see Age
	Recipient string        `json:"recipient,omitempty"`
	Run       string        `json:"run,omitempty"`
	// FromMe gives a reaction the metadata that the owner's tapback has.
	FromMe bool `json:"from_me,omitempty"`
	// SMS says that the message came as a text message.
	SMS bool `json:"sms,omitempty"`
	// Awaits says that files of the message come later.
	Awaits bool `json:"awaits,omitempty"`
	// Quotes makes a message one that expresses a reaction to a message with these words.
	Quotes string `json:"quotes,omitempty"`
}

// Values of a payload's Trouble.
const (
	unreadable   = "unreadable"    // Normalize fails
	panicsInKeys = "panics-keys"   // Keys panics
	panicsOnce   = "panics-once"   // Normalize panics the first time
	panicsAlways = "panics-always" // Normalize panics each time
	incomplete   = "incomplete"    // the metadata lacks its required fields
	wordless     = "wordless"      // the event has no message
	setAside     = "set-aside"     // the event is ignored, and has neither message nor reaction
)

// platform reads payloads. A text in slow waits for its signal.
type platform struct {
	slow    map[string]chan struct{} // by text
	begun   chan string              // the slow texts whose read has begun
	panics  atomic.Int64
	reading sync.Map // texts that are being read
}

func (f *platform) Keys(envelope event.Envelope, facts adapters.Facts) event.Keys {
	var p payload
	if err := json.Unmarshal(envelope.Body, &p); err != nil {
		return event.Keys{Kind: event.KindOther, Dedupe: string(envelope.Body), Result: event.Refuse(err)}
	}
	if p.Trouble == panicsInKeys {
		panic("a bug in Keys")
	}
	keys := event.Keys{Kind: p.kind(), Dedupe: fmt.Sprint(p.kind(), p.ID, p.Revision), MessageID: p.ID}
	keys.Channel = event.Channel{ID: p.Channel, Type: p.Type}
	if p.Thread != "" {
		keys.Thread = p.thread(envelope, facts)
	}
	if p.Needs != "" && facts.Self().UserID == "" {
		keys.Needs = p.Needs
	}
	return keys
}

func (p *payload) kind() event.Kind {
	if p.Kind == "" {
		return event.KindMessage
	}
	return p.Kind
}

func (p *payload) thread(envelope event.Envelope, facts adapters.Facts) event.ThreadKey {
	kind := p.Type
	if kind == "" && p.Channel != "C1" {
		kind = facts.ChannelType(p.Channel)
	}
	return event.ThreadKey("slack:" + envelope.Workspace + ":" + p.Thread + string(kind))
}

func (f *platform) Normalize(ctx context.Context, envelope event.Envelope, directory adapters.Directory) (event.Event, error) {
	var p payload
	if err := json.Unmarshal(envelope.Body, &p); err != nil {
		return event.Event{}, err
	}
	switch {
	case p.Trouble == unreadable:
		return event.Event{}, errors.New("data.text: must be a string")
	case p.Trouble == panicsAlways, p.Trouble == panicsOnce && f.panics.Load() == 0:
		if ctx.Err() == nil { // else Accept tries whether the message can be recorded at once
			f.panics.Add(1)
		}
		panic("a bug in " + p.ID)
	}
	if wait := f.slow[p.Text]; wait != nil {
		if ctx.Err() != nil {
			return event.Event{}, ctx.Err()
		}
		f.reading.Store(p.Text, true)
		defer f.reading.Delete(p.Text)
		f.begun <- p.Text
		<-wait
	}
	if p.Count {
		if err := directory.State().Update(ctx, "count", func(value string) string { return value + "+" }); err != nil {
			return event.Event{Kind: p.kind()}, fmt.Errorf("count the message: %w", err)
		}
		count, err := directory.State().Get(ctx, "count")
		if err != nil {
			return event.Event{Kind: p.kind()}, fmt.Errorf("read the count: %w", err)
		}
		p.Text += count
	}
	return p.event(envelope, directory), nil
}

func (p *payload) event(envelope event.Envelope, directory adapters.Directory) event.Event {
	e := event.Event{Kind: p.kind(), Targets: []string{p.ID}}
	switch p.Trouble {
	case setAside:
		e.Ignored = event.ReasonSystemMessage
		return e
	case wordless:
		return e
	}
	switch p.kind() {
	case event.KindDelete:
		return e
	case event.KindReaction:
		e.Reaction = &event.Reaction{Emoji: "👍", SenderID: "slack:" + p.Sender}
		if p.FromMe {
			e.Reaction.SenderName, e.Reaction.SenderType, e.Reaction.IsFromMe = "Me", event.Human, new(true)
			e.Reaction.GUID, e.Reaction.ChannelExternalID = "guid", "chat;"+p.Channel
		}
		return e
	case event.KindMessage, event.KindCommand, event.KindAction:
		e.Targets = nil
	}
	e.Message = &event.Message{
		ExternalID: p.ID, Channel: event.Channel{ID: p.Channel, Type: p.Type}, Content: p.Text, Revision: p.Revision,
		SentAt: envelope.ReceivedAt.Add(-p.Age), Thread: p.thread(envelope, directory), Pressed: p.Pressed, RunID: p.Run,
		TextMessage: p.SMS, AwaitsFiles: p.Awaits,
	}
	if p.Text == "" && !p.Awaits {
		e.Message.Content = "hello"
	}
	if p.SentAt > 0 {
		e.Message.SentAt = time.UnixMilli(p.SentAt)
	}
	if p.Quotes != "" {
		e.Reaction = &event.Reaction{Emoji: "👍", SenderID: "slack:" + p.Sender, Quotes: &event.Quotation{Text: p.Quotes}}
	}
	if p.Sender != "" && p.Trouble != incomplete {
		e.Message.Metadata = event.Metadata{
			Source: "slack", SenderID: "slack:" + p.Sender, SenderDisplayName: p.Sender, SenderType: event.Human, ChannelExternalID: p.Channel, RecipientID: p.Recipient,
		}
	} else {
		e.Message.Metadata.ChannelExternalID = p.Channel
	}
	if p.Bot {
		e.Message.Metadata.SenderType = event.Bot
	}
	switch {
	case p.Mention:
		e.Message.Addressed = event.AddressedMention
	case p.Kind == event.KindCommand:
		e.Message.Addressed = event.AddressedCommand
	case p.Kind == event.KindAction:
		e.Message.Addressed = event.AddressedAction
	}
	return e
}

// others lists the slow texts that are read concurrently with one.
func (f *platform) others(text string) (texts []string) {
	f.reading.Range(func(other, _ any) bool {
		if other != text {
			texts = append(texts, other.(string))
		}
		return true
	})
	return texts
}

// names are the known users.
type names map[string]adapters.User

func (n names) User(_ context.Context, id string) (adapters.User, bool) {
	user, ok := n[id]
	return user, ok
}

// engine is a real store with switchable faults.
type engine struct {
	storage.Engine
	refuses atomic.Bool   // commits fail
	stuck   chan struct{} // if not nil, commits wait for it, or until their ctx ends
	blind   atomic.Bool   // reads fail
	writes  atomic.Int64  // calls of Write
}

func (e *engine) Write(ctx context.Context, options storage.WriteOptions, fn func(storage.Tx) error) error {
	e.writes.Add(1)
	if e.refuses.Load() {
		return fmt.Errorf("%w: the disk is full", storage.ErrUnavailable)
	}
	if e.stuck != nil {
		select {
		case <-e.stuck:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return e.Engine.Write(ctx, options, fn)
}

func (e *engine) Read(ctx context.Context, fn func(storage.Tx) error) error {
	if e.blind.Load() {
		return fmt.Errorf("%w: the disk is gone", storage.ErrUnavailable)
	}
	return e.Engine.Read(ctx, fn)
}

func (e *engine) ReadOne(ctx context.Context, fn func(storage.Tx) error) error {
	if e.blind.Load() {
		return fmt.Errorf("%w: the disk is gone", storage.ErrUnavailable)
	}
	return e.Engine.ReadOne(ctx, fn)
}

// harness is an Ingest with its store and platform. It is also the observer and the
// turns. It runs in a synctest bubble.
type harness struct {
	*testing.T
	*Ingest
	platform  *platform
	engine    *engine
	journal   *journal.Journal
	scheduler *work.Scheduler
	path      string
	settings  Settings
	channels  map[string]Settings
	names     names
	mute      atomic.Bool // no notice can be formatted

	mu        sync.Mutex
	results   []processed // in the order of the reports
	signals   []record.Result
	unasked   []string // agents and runs whose question nobody has answered in time
	formatted []string // texts of notices and announcements
}

// processed is a result as the observer received it.
type processed struct {
	Envelope int64
	record.Result
}

// inBubble runs a test in a bubble, with a harness whose Ingest is open but does not run
// yet.
func inBubble(t *testing.T, test func(h *harness)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		test(newHarness(t, filepath.Join(journaltest.Dir(t), "journal.db")))
	})
}

func newHarness(t *testing.T, path string) *harness {
	t.Helper()
	real, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	h := &harness{
		T: t, path: path, engine: &engine{Engine: real}, settings: Settings{Agent: "helper", Policy: DefaultPolicy()},
		platform: &platform{slow: map[string]chan struct{}{}, begun: make(chan string, 16)}, channels: map[string]Settings{}, names: names{},
	}
	h.open(journal.Options{Node: "this"})
	t.Cleanup(func() { h.close() })
	return h
}

// open creates the harness's Ingest, on its engine.
func (h *harness) open(options journal.Options) {
	h.Helper()
	h.journal = journal.New(h.engine, options)
	log := slog.New(slog.DiscardHandler)
	h.scheduler = work.New(h.engine, work.Options{
		Node: options.Node, Lease: options.Lease, Now: options.Now, Log: slog.New(slog.NewTextHandler(h, &slog.HandlerOptions{Level: slog.LevelError})),
	})
	h.Ingest = New(Parts{Journal: h.journal, Work: h.scheduler, Turns: h, Observer: h, Notices: h, Log: log, Now: time.Now})
	h.configure(h.workspace("acme"))
}

// Write takes an error of the scheduler: a worker has failed or panicked.
func (h *harness) Write(line []byte) (int, error) {
	h.Errorf("%s", line)
	return len(line), nil
}

func (h *harness) workspace(id string) Workspace {
	return Workspace{
		ID: id, Platform: event.Slack, Senders: "slack", Normalizer: h.platform, Names: h.names,
		Settings: func(channel, _ string) Settings {
			if s, ok := h.channels[channel]; ok {
				return s
			}
			return h.settings
		},
	}
}

func (h *harness) configure(list ...Workspace) {
	h.Helper()
	if err := h.Configure(h.Context(), list); err != nil {
		h.Fatal(err)
	}
}

func (h *harness) close() {
	if err := h.journal.Close(); err != nil {
		h.Error(err)
	}
}

// work runs the Ingest, until stop is called or the test ends.
func (h *harness) work() (stop func()) {
	stop = h.start()
	synctest.Wait()
	return stop
}

func (h *harness) start() (stop func()) {
	ctx, cancel := context.WithCancel(h.Context())
	var working sync.WaitGroup
	working.Go(func() { _ = h.Ingest.Run(ctx) })
	working.Go(func() { _ = h.Review(ctx) })
	working.Go(func() { _ = h.scheduler.Run(ctx) })
	stop = sync.OnceFunc(func() {
		cancel()
		working.Wait()
	})
	h.Cleanup(stop)
	return stop
}

// Accepted implements Observer.
func (h *harness) Accepted(*event.Envelope, event.ThreadKey) {}

// Processed implements Observer.
func (h *harness) Processed(p *envelopes.Pending, o record.Result) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.results = append(h.results, processed{p.ID, o})
}

// Unasked and Recorded implement Turns.
func (h *harness) Unasked(agent string, _ int64, run string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.unasked = append(h.unasked, agent+" "+run)
}

func (h *harness) Recorded(_ *work.Claim, _ string, o record.Result) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.signals = append(h.signals, o)
}

func (h *harness) envelope(p payload) event.Envelope {
	h.Helper()
	body, err := json.Marshal(p)
	if err != nil {
		h.Fatal(err)
	}
	return event.Envelope{Workspace: "acme", Platform: event.Slack, Transport: "http", ReceivedAt: time.Now(), Body: body}
}

// accept accepts a payload durably.
func (h *harness) accept(p payload) adapters.Receipt {
	h.Helper()
	receipt, err := h.Accept(h.Context(), h.envelope(p))
	if err != nil {
		h.Fatal(err)
	}
	return receipt
}

// result returns an envelope's result, which must exist after every goroutine is blocked.
func (h *harness) result(envelope int64) record.Result {
	h.Helper()
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range h.results {
		if t.Envelope == envelope {
			return t.Result
		}
	}
	h.Fatalf("envelope %d has no result", envelope)
	return record.Result{}
}

func (h *harness) pending(envelope int64) {
	h.Helper()
	synctest.Wait()
	settled, err := h.journal.Envelopes.Envelope(h.Context(), envelope)
	if err != nil || settled != nil {
		h.Fatalf("envelope %d is %+v, %v; want it pending", envelope, settled, err)
	}
}

// send accepts a person's message and returns its result.
func (h *harness) send(p payload) record.Result {
	h.Helper()
	if p.Sender == "" {
		p.Sender = "U1"
	}
	if p.Channel == "" {
		p.Channel = "C1"
	}
	if p.Thread == "" && p.Kind == "" {
		p.Thread = "t"
	}
	return h.result(h.accept(p).ID)
}

// sql changes the store behind the journal's back.
func (h *harness) sql(query string, args ...any) {
	h.Helper()
	if err := h.engine.Engine.Write(h.Context(), storage.WriteOptions{}, func(tx storage.Tx) error {
		_, err := tx.Exec(query, args...)
		return err
	}); err != nil {
		h.Fatal(err)
	}
}

// claims returns the counted claims of an envelope.
func (h *harness) claims(envelope int64) (n int64) {
	h.Helper()
	if err := h.engine.Engine.ReadOne(h.Context(), func(tx storage.Tx) error {
		_, err := tx.Row([]any{&n}, `SELECT claims FROM envelopes WHERE id = $1`, envelope)
		return err
	}); err != nil {
		h.Fatal(err)
	}
	return n
}

// thread lists a thread's messages in their current state.
func (h *harness) thread(key event.ThreadKey) []messages.Listed {
	h.Helper()
	id, err := h.journal.Threads.ThreadID(h.Context(), key)
	if err != nil {
		h.Fatal(err)
	}
	messages, err := h.journal.Messages.ThreadMessages(h.Context(), strings.Split(string(key), ":")[1], id, messages.Page{Limit: 1000})
	if err != nil {
		h.Fatal(err)
	}
	return messages
}

func contents(messages []messages.Listed) []string {
	var out []string
	for _, m := range messages {
		out = append(out, m.Content)
	}
	return out
}

// advance moves the bubble's clock on by d.
func advance(d time.Duration) { <-time.After(d) }
