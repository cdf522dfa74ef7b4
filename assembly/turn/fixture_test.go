package turn_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/assembly"
	"parley/assembly/stream"
	"parley/assembly/turn"
	"parley/ingest/event"
	"parley/ingest/journal"
	"parley/ingest/journal/sqlite"
)

// agent does what the test says, once for each run.
type agent struct {
	mu     sync.Mutex
	does   []func(ctx context.Context, emit func(stream.Message) error) error // then it answers "ok"
	inputs []assembly.Input
	times  []time.Time
}

func (a *agent) Run(ctx context.Context, input assembly.Input, emit func(stream.Message) error) error {
	a.mu.Lock()
	a.inputs, a.times = append(a.inputs, input), append(a.times, time.Now())
	do := answers("ok")
	if len(a.does) > 0 {
		do, a.does = a.does[0], a.does[1:]
	}
	a.mu.Unlock()
	return do(ctx, emit)
}

type script = func(ctx context.Context, emit func(stream.Message) error) error

func answers(text string) script {
	return func(_ context.Context, emit func(stream.Message) error) error {
		return emit(stream.Message{Type: stream.Answer, Text: text})
	}
}

// thinks answers after a while, unless its context ends before.
func thinks(d time.Duration, text string) script {
	return func(ctx context.Context, emit func(stream.Message) error) error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(d):
			return emit(stream.Message{Type: stream.Answer, Text: text})
		}
	}
}

func fails(err error) script {
	return func(context.Context, func(stream.Message) error) error { return err }
}

// said are the texts that the agent was asked, run by run.
func (a *agent) said() [][]string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out [][]string
	for _, input := range a.inputs {
		var texts []string
		for _, s := range input.Said {
			texts = append(texts, s.Content)
		}
		out = append(out, texts)
	}
	return out
}

// desk is a Runner with its store and agent, in a bubble; it plays the outbox,
// the files and the observer.
type desk struct {
	// recorded may change what the runner hears of a message; nil in the usual case.
	recorded func(*journal.Outcome)
	// ended is called at the end of a run, before its worker has left it; nil in the
	// usual case.
	ended func()

	*testing.T
	*turn.Runner
	agent    *agent
	journal  *journal.Journal
	settings turn.Settings
	profile  turn.Profile
	gone     bool
	intake   *journal.Desk
	stop     func() // ends the work, as the daemon's stop does

	mu      sync.Mutex
	serial  int
	runs    []*journal.Run
	reports []turn.Report
	kept    []string // the files that were to be copied
	format  func(text string) ([]journal.Post, error)
	lease   *journal.Lease

	shown    [][]string // what grew, by the order in which runs were shown
	mentions [][]string
}

// inBubble runs a test with a Runner that is at work. With coalesce 0 unless
// the test sets another.
func inBubble(t *testing.T, set func(d *desk), test func(d *desk)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		engine, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "journal.db"))
		if err != nil {
			t.Fatal(err)
		}
		d := &desk{T: t, agent: &agent{}, journal: journal.New(engine, journal.Options{Node: "this"})}
		t.Cleanup(func() { _ = d.journal.Close() })
		d.settings = turn.Settings{Config: turn.DefaultConfig(), Window: assembly.Window{Turns: 50, Bytes: 100_000, Thread: 20}}
		d.settings.Coalesce, d.settings.CoalesceMax = 0, 0
		d.profile = turn.Profile{ID: "helper", Agent: d.agent, Timeout: time.Minute, MaxBytes: 1000}
		d.format = func(text string) ([]journal.Post, error) { return []journal.Post{{Channel: "C1", Text: text}}, nil }
		if set != nil {
			set(d)
		}
		d.work()
		test(d)
	})
}

func (d *desk) work() {
	log := slog.New(slog.DiscardHandler)
	jd := journal.NewDesk(d.journal, log)
	d.Runner = turn.New(turn.Parts{
		Journal: d.journal, Desk: jd, Outbox: d, Files: d, Observer: d, Log: log, Now: time.Now,
		Settings: func(string, string) turn.Settings { return d.settings },
		Profile: func(id string) (turn.Profile, bool) {
			d.mu.Lock()
			defer d.mu.Unlock()
			return d.profile, !d.gone
		},
	})
	ctx, cancel := context.WithCancel(d.Context())
	var working sync.WaitGroup
	working.Go(func() { _ = d.Serve(ctx, ctx, "helper", 4) })
	working.Go(func() {
		_ = jd.Serve(ctx, journal.Lane{Work: journal.Intake, Slots: 4}, func(_ context.Context, lease *journal.Lease) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.lease = lease
		})
	})
	d.stop = sync.OnceFunc(func() { cancel(); working.Wait() })
	d.Cleanup(d.stop)
	synctest.Wait()
	d.intake = jd
}

// Show, Notice, Bounds and Posted implement turn.Outbox.
func (d *desk) Show(_ context.Context, _ *journal.Lease, _ *journal.Run, mentions []string) (turn.Showing, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mentions = append(d.mentions, mentions)
	d.shown = append(d.shown, nil)
	return &showing{d: d, run: len(d.shown) - 1}, nil
}
func (d *desk) Notice(_ *journal.Run, text string) ([]journal.Post, error) { return d.format(text) }
func (d *desk) Bounds(string) *journal.Send                                { return nil }
func (d *desk) Posted(int64, *journal.Delivery)                            {}

// showing is a run that is shown on a desk.
type showing struct {
	d       *desk
	run     int
	stopped bool
}

// Grow, Stop and Format implement turn.Showing.
func (s *showing) Grow(text string) {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	s.d.shown[s.run] = append(s.d.shown[s.run], text)
}
func (s *showing) Stop() { s.stopped = true }
func (s *showing) Format(text string, files []journal.File) []journal.Post {
	if !s.stopped {
		s.d.Error("formatted while it was still shown")
	}
	posts, err := s.d.format(text)
	if err != nil {
		panic(err)
	}
	for _, file := range files {
		posts = append(posts, journal.Post{Channel: "C1", File: &file})
	}
	return posts
}

// Put implements turn.Files.
func (d *desk) Put(_ context.Context, file stream.File) (journal.File, error) {
	if file.Name == "too large" {
		return journal.File{}, errors.New("too large")
	}
	return journal.File{Name: file.Name, Size: int64(len(file.Data))}, nil
}

// Keep implements turn.Files.
func (d *desk) Keep(_ context.Context, _ string, a journal.Attachment) journal.Attachment {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.kept = append(d.kept, a.Name)
	return a
}

// RunEnded implements turn.Observer.
func (d *desk) RunEnded(run *journal.Run, r turn.Report) {
	d.mu.Lock()
	d.runs, d.reports = append(d.runs, run), append(d.reports, r)
	d.mu.Unlock()
	if d.ended != nil {
		d.ended()
	}
}

func (d *desk) outcomes() []turn.Outcome {
	synctest.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []turn.Outcome
	for _, r := range d.reports {
		out = append(out, r.Outcome)
	}
	return out
}

func (d *desk) must(err error) {
	d.Helper()
	if err != nil {
		d.Fatal(err)
	}
}

const key = event.ThreadKey("slack:acme:C1:1")

func human(id, text string) *event.Message {
	return &event.Message{
		ExternalID: id, Content: text,
		Metadata: event.Metadata{Source: "slack", SenderID: "slack:U1", SenderDisplayName: "Olivia", SenderType: event.Human},
	}
}

// asks records a message that asks for a run.
func (d *desk) asks(id, text string) { d.Helper(); d.record(journal.TriggerRun, human(id, text)) }

// record records a message under the lease that the thread's work goes on with.
func (d *desk) record(trigger journal.Trigger, m *event.Message) {
	d.Helper()
	d.apply(trigger, event.Event{Kind: event.KindMessage, Message: m})
}

func (d *desk) deletes(ids ...string) {
	d.Helper()
	d.apply(journal.TriggerNone, event.Event{Kind: event.KindDelete, Targets: ids})
}

// edits gives a message that asks for a run another text.
func (d *desk) edits(id, text string) {
	d.Helper()
	d.apply(journal.TriggerRun, event.Event{Kind: event.KindEdit, Targets: []string{id}, Message: revised(id, text)})
}

// revised is a message whose revision is its text.
func revised(id, text string) *event.Message {
	m := human(id, text)
	m.Revision = text
	return m
}

func (d *desk) apply(trigger journal.Trigger, e event.Event) {
	d.Helper()
	d.serial++
	custody, err := d.journal.Accept(d.Context(), journal.Acceptance{
		Envelope: event.Envelope{Workspace: "acme", Platform: event.Slack},
		Keys:     event.Keys{Kind: e.Kind, Dedupe: fmt.Sprint(d.serial), Thread: key, Channel: event.Channel{ID: "C1"}},
	})
	d.must(err)
	d.intake.Wake(journal.Intake, "", custody.Thread)
	synctest.Wait() // the thread's lease is known now
	outcome, err := d.journal.Record(d.Context(), d.lease, journal.Entry{
		Envelope: custody.ID, Workspace: "acme", Event: e, Agent: "helper",
		Coalesce: d.settings.Coalesce, CoalesceMax: d.settings.CoalesceMax, Begin: true,
		Decide: func(m *event.Message, _ journal.Look) (journal.Decision, error) {
			return journal.Decision{Trigger: trigger, Metadata: m.Metadata.Bytes()}, nil
		},
	})
	d.must(err)
	if d.recorded != nil {
		d.recorded(&outcome)
	}
	d.Recorded(custody.Thread, "helper", outcome)
}

// deliveries are the texts of the outbox, in order.
func (d *desk) deliveries() (texts []string) {
	d.Helper()
	for _, post := range d.posts() {
		texts = append(texts, post.Text)
	}
	return texts
}

// files are the names of the files in the outbox, in order.
func (d *desk) files() (names []string) {
	d.Helper()
	for _, post := range d.posts() {
		if post.File != nil {
			names = append(names, post.File.Name)
		}
	}
	return names
}

// posts empties the outbox.
func (d *desk) posts() (posts []journal.Post) {
	d.Helper()
	for {
		next, err := d.journal.NextDelivery(d.Context(), d.lease.Thread)
		d.must(err)
		if next == nil {
			return posts
		}
		posts = append(posts, next.Post)
		_, err = d.journal.Sent(d.Context(), d.lease, next, fmt.Sprint("C1/post", len(posts)))
		d.must(err)
	}
}

func (d *desk) replies() []journal.Listed {
	d.Helper()
	all, err := d.journal.Messages(d.Context(), key, 0, 100)
	d.must(err)
	return slices.DeleteFunc(all, func(m journal.Listed) bool { return m.Author != journal.ByAgent })
}

// assembled is what the agent read in a run, a line a message.
func (d *desk) assembled(run int) string {
	d.Helper()
	var b strings.Builder
	for _, m := range d.agent.inputs[run].Messages {
		fmt.Fprintf(&b, "%s: %s\n", m.Role, m.Text())
	}
	return b.String()
}

// pass lets the bubble's clock go on by d: nothing waits in real time.
func pass(d time.Duration) { <-time.After(d) }
