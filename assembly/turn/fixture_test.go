package turn_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/assembly"
	"parley/assembly/turn"
	"parley/ingest/card"
	"parley/ingest/event"
	"parley/ingest/journal"
	"parley/ingest/journal/envelopes"
	"parley/ingest/journal/files"
	"parley/ingest/journal/journaltest"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/record"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/sqlite"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
	"parley/ingest/stream"
	"parley/ingest/trace"
	"parley/ingest/work"
)

// agent runs the test's scripts, one for each run.
type agent struct {
	mu     sync.Mutex
	does   []func(ctx context.Context, emit func(stream.Message) error) error // afterwards it answers "ok"
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

// thinks answers after d, unless its context ends before.
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

// said returns the texts of the agent's inputs, run by run.
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

// engine is a store that refuses writes while it is down, and reads while it is blind. The outcome
// of a write is unknown if unclear or missed is set, and that clears it; with missed, nothing is written.
type engine struct {
	storage.Engine
	down, blind, unclear, missed atomic.Bool
	heard                        sync.Map // func(words string), by node
}

func (e *engine) Read(ctx context.Context, fn func(tx storage.Tx) error) error {
	if e.blind.Load() {
		return storage.ErrUnavailable
	}
	return e.Engine.Read(ctx, fn)
}

func (e *engine) ReadOne(ctx context.Context, fn func(tx storage.Tx) error) error {
	if e.blind.Load() {
		return storage.ErrUnavailable
	}
	return e.Engine.ReadOne(ctx, fn)
}

// Notify and Listen implement storage.Notifier.
func (e *engine) Notify(node, words string) {
	if heard, ok := e.heard.Load(node); ok {
		heard.(func(string))(words)
	}
}

func (e *engine) Listen(ctx context.Context, node string, heard func(string), _ func()) {
	e.heard.Store(node, heard)
	<-ctx.Done()
}

func (e *engine) Write(ctx context.Context, options storage.WriteOptions, fn func(tx storage.Tx) error) error {
	if e.down.Load() {
		return storage.ErrUnavailable
	}
	if e.missed.CompareAndSwap(true, false) {
		return storage.ErrUnclear
	}
	err := e.Engine.Write(ctx, options, fn)
	if err == nil && e.unclear.CompareAndSwap(true, false) {
		return storage.ErrUnclear
	}
	return err
}

// fixture is a Runner with its store, scheduler, intake and agent, in a bubble. It is also
// the Runner's outbox, files, observer, workspaces and agents.
type fixture struct {
	hangs  bool              // the place of the copies
	at     trace.Place       // of the attempts; usually zero
	copies map[string]string // the bytes of the files that can be copied, by name
	// recorded is called after each commit of the intake, before the runner is told; nil
	// for none.
	recorded func()
	// ended is called at the end of a run, before its worker has left it; nil for none.
	ended   func()
	history turn.History          // usually nil
	tools   turn.Tools            // usually nil
	keep    func(context.Context) // is called before a file is copied; nil for none
	copied  files.State           // the state of a file after that; empty for the one before
	cannot  error                 // to show a run
	show    func(*runs.Run)       // is called when a run is shown; nil for none
	answer  *runs.Answer          // of each message to the open question; nil for none
	reason  string                // for which each message triggers a run
	quiet   time.Duration         // of a conversation that then starts again; 0 for never

	*testing.T
	*turn.Runner
	agent     *agent
	engine    *engine
	journal   *journal.Journal
	scheduler *work.Scheduler
	settings  turn.Settings
	profile   turn.Profile
	gone      bool
	asked     string        // the agent that new messages ask
	slots     int           // of the helper
	lease     time.Duration // of the claims; 0 for the only node
	stop      func()        // ends the work, as the daemon's stop does
	kill      func()        // ends the work and leaves its claims

	mu      sync.Mutex
	serial  int
	nodes   int
	thread  int64
	place   event.ThreadKey          // of new messages
	noFile  time.Time                // until then the store refuses files
	posted  int                      // how often deliveries were reported
	entries map[int64][]record.Entry // the entries before the intake, by thread
	runs    []*runs.Run
	reports []turn.Report
	waited  []string                // the runs that ended while they waited, and how
	copying map[string]turn.Copying // the ends of copyings that are told, by name
	kept    []string                // the files to copy
	format  func(text string) ([]outbox.Post, error)

	shown    [][]string // the parts of the growing answers, one list for each preview
	notes    []string   // about the agent's work
	expected []int      // the numbers of messages of the runs whose signs will end
	mentions [][]string
	serials  []bool // whether the claims of the shown runs were serial
}

// inBubble runs a test with a Runner that works. Coalesce is 0 unless set changes it.
func inBubble(t *testing.T, set func(d *fixture), test func(d *fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		d := &fixture{T: t, agent: &agent{}, entries: map[int64][]record.Entry{}, place: key, asked: "helper", slots: 4}
		store, err := sqlite.Open(t.Context(), filepath.Join(journaltest.Dir(t), "journal.db"), sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		d.engine = &engine{Engine: store}
		d.settings = turn.Settings{Config: turn.DefaultConfig(), Window: assembly.Window{Turns: 50, Bytes: 100_000, Thread: 20}}
		d.settings.Coalesce, d.settings.CoalesceMax = 0, 0
		d.profile = turn.Profile{ID: "helper", AnswerWithin: 5 * time.Minute, Agent: d.agent, Timeout: time.Minute, MaxBytes: 1000, Show: turn.DefaultShow(false), Files: turn.FilesText}
		d.format = func(text string) ([]outbox.Post, error) { return []outbox.Post{{Channel: "C1", Text: text}}, nil }
		if set != nil {
			set(d)
		}
		d.work()
		test(d)
	})
}

// work starts a process.
func (d *fixture) work() {
	log := slog.New(slog.DiscardHandler)
	d.nodes++
	node := fmt.Sprint("node", d.nodes)
	d.journal = journal.New(d.engine, journal.Options{Node: node, Lease: d.lease})
	scheduler := work.New(d.engine, work.Options{Node: node, Lease: d.lease, Log: slog.New(slog.NewTextHandler(d, &slog.HandlerOptions{Level: slog.LevelError}))})
	d.scheduler = scheduler
	parts := turn.Parts{
		Runs: d.journal.Runs, Workstreams: d.journal.Workstreams, Threads: d.journal.Threads, Deliveries: d.journal.Outbox, Work: scheduler, Outbox: d, Files: d, History: d.history, Observer: d, Log: log, Now: time.Now, Tools: d.tools,
		Workspaces: d, Agents: d,
	}
	d.Runner = turn.New(parts)
	ctx, cancel := context.WithCancel(d.Context())
	var working sync.WaitGroup
	d.must(scheduler.AdjustClock(ctx))
	working.Go(func() { _ = scheduler.Run(ctx) })
	working.Go(func() { _ = d.Serve(ctx, ctx, "helper", d.slots) })
	working.Go(func() { _ = d.Serve(ctx, ctx, "other", 4) })
	working.Go(func() {
		_ = scheduler.Serve(ctx, work.Queue{Kind: work.Intake, Slots: 4, Do: d.intake})
	})
	d.kill = sync.OnceFunc(func() { cancel(); working.Wait() })
	d.stop = sync.OnceFunc(func() {
		d.kill()
		d.must(scheduler.Close(context.Background()))
	})
	d.Cleanup(d.kill)
	synctest.Wait()
}

// Settings, Self and Sight implement turn.Workspaces.
func (d *fixture) Settings(threads.Place) turn.Settings                { return d.settings }
func (*fixture) Self(*runs.Run) event.Self                             { return event.Self{} }
func (*fixture) Sight(context.Context, *runs.Run) (*runs.Sight, error) { return nil, nil }

// Profile and AgentIDs implement turn.Agents.
func (d *fixture) Profile(agent string) (turn.Profile, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	profile := d.profile
	profile.ID = agent
	return profile, !d.gone
}
func (*fixture) AgentIDs() []string { return nil }

// Write takes an error of the scheduler: a worker has failed or panicked.
func (d *fixture) Write(line []byte) (int, error) {
	d.Errorf("%s", line)
	return len(line), nil
}

// intake records the thread's entries.
func (d *fixture) intake(ctx context.Context, c *work.Claim) error {
	for {
		d.mu.Lock()
		entries := d.entries[c.Thread]
		if len(entries) == 0 {
			d.mu.Unlock()
			return nil
		}
		d.entries[c.Thread] = entries[1:]
		d.mu.Unlock()
		result, err := d.journal.Recorder.Record(ctx, &c.Claim, entries[0])
		if err != nil {
			d.Error(err)
			return err
		}
		if d.recorded != nil {
			d.recorded()
		}
		d.Recorded(c, entries[0].Agent, result)
	}
}

// Show, Expect, Notice and Posted implement turn.Outbox.
func (d *fixture) Show(_ context.Context, c *work.Claim, run *runs.Run, mentions turn.Mentions, _ func(func())) (turn.LivePreview, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.show != nil {
		d.show(run)
	}
	d.serials = append(d.serials, c.Serial())
	d.mentions = append(d.mentions, mentions.Tokens)
	d.shown = append(d.shown, nil)
	return &preview{d: d, run: len(d.shown) - 1}, d.cannot
}
func (d *fixture) Expect(_ context.Context, _ *work.Claim, run *runs.Run) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.expected = append(d.expected, len(run.Messages))
}
func (d *fixture) Notice(_ *runs.Run, text string) (posts []outbox.Post) {
	defer func() { _ = recover() }()
	posts, _ = d.format(text)
	return posts
}

func (d *fixture) Posted(*work.Claim, *outbox.Delivery) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.posted++
}

// preview is a run that a fixture shows.
type preview struct {
	d       *fixture
	run     int
	stopped bool
}

// Grow, Note, Stop and Format implement turn.LivePreview.
func (s *preview) Grow(text string) {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	s.d.shown[s.run] = append(s.d.shown[s.run], text)
}
func (s *preview) Note(text string) {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	s.d.notes = append(s.d.notes, text)
}
func (s *preview) Stop() { s.stopped = true }
func (s *preview) Format(text string, ask stream.Ask, shown *card.View, files []outbox.File) ([]outbox.Post, *outbox.Send) {
	if !s.stopped {
		s.d.Error("formatted while it was still shown")
	}
	posts, err := s.d.format(ask.Numbered(text))
	if err != nil {
		panic(err)
	}
	if shown != nil {
		posts = append(posts, outbox.Post{Channel: "C1", Text: shown.Markdown(), Card: shown})
	}
	for _, file := range files {
		posts = append(posts, outbox.Post{Channel: "C1", File: &file})
	}
	return posts, nil
}

// Open implements turn.Files.
func (d *fixture) Open(ctx context.Context, _, path string) (io.ReadCloser, error) {
	if d.hangs {
		<-ctx.Done()
	}
	content, ok := d.copies[path]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return io.NopCloser(strings.NewReader(content)), nil
}

// Put implements turn.Files.
func (d *fixture) Put(_ context.Context, file stream.File) (outbox.File, error) {
	if file.Name == "too large" {
		return outbox.File{}, errors.New("too large")
	}
	if time.Now().Before(d.noFile) {
		return outbox.File{}, storage.ErrUnavailable
	}
	return outbox.File{Name: file.Name, Size: int64(len(file.Data))}, nil
}

// Keep implements turn.Files.
func (d *fixture) Keep(ctx context.Context, _, _ string, a files.Attachment) (files.Attachment, turn.Copying) {
	if d.keep != nil {
		d.keep(ctx)
	}
	if a.Row == 0 {
		d.Error("a file without its row")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.kept = append(d.kept, a.Name)
	a.State = cmp.Or(d.copied, a.State)
	if _, ok := d.copies[a.Name]; ok {
		a.State, a.Path = files.Stored, a.Name
	}
	return a, d.copying[a.Name]
}

// RunBegins implements turn.Observer.
func (d *fixture) RunBegins(ctx context.Context, _ *runs.Run, _ time.Time) context.Context {
	return trace.With(ctx, d.at)
}

// RunEnded implements turn.Observer.
func (d *fixture) RunEnded(run *runs.Run, r turn.Report) {
	d.mu.Lock()
	d.runs, d.reports = append(d.runs, run), append(d.reports, r)
	d.mu.Unlock()
	if d.ended != nil {
		d.ended()
	}
}

// WaitingRunEnded implements turn.Observer.
func (d *fixture) WaitingRunEnded(run string, outcome turn.Outcome) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waited = append(d.waited, run+" "+string(outcome))
}

// waitedRuns returns the runs that ended while they waited, and how.
func (d *fixture) waitedRuns() []string {
	synctest.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.waited)
}

func (d *fixture) outcomes() []turn.Outcome {
	synctest.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []turn.Outcome
	for _, r := range d.reports {
		out = append(out, r.Outcome)
	}
	return out
}

func (d *fixture) must(err error) {
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
func (d *fixture) asks(id, text string) { d.Helper(); d.record(messages.TriggerRun, human(id, text)) }

// record records a message.
func (d *fixture) record(trigger messages.Trigger, m *event.Message) {
	d.Helper()
	d.apply(trigger, event.Event{Kind: event.KindMessage, Message: m})
}

func (d *fixture) deletes(ids ...string) {
	d.Helper()
	d.apply(messages.TriggerNone, event.Event{Kind: event.KindDelete, Targets: ids})
}

// edits changes the text of a message that asks for a run.
func (d *fixture) edits(id, text string) {
	d.Helper()
	d.apply(messages.TriggerRun, event.Event{Kind: event.KindEdit, Targets: []string{id}, Message: revised(id, text)})
}

// revised returns a message whose revision is its text.
func revised(id, text string) *event.Message {
	m := human(id, text)
	m.Revision = text
	return m
}

// apply accepts an event and lets the intake record it.
func (d *fixture) apply(trigger messages.Trigger, e event.Event) {
	d.Helper()
	d.accept(trigger, e)
	synctest.Wait()
}

func (d *fixture) accept(trigger messages.Trigger, e event.Event) {
	d.Helper()
	d.serial++
	workspace := strings.Split(string(d.place), ":")[1]
	accepted, err := d.journal.Envelopes.Accept(d.Context(), envelopes.AcceptRequest{
		Envelope: event.Envelope{Workspace: workspace, Platform: event.Slack},
		Keys:     event.Keys{Kind: e.Kind, Dedupe: fmt.Sprint(d.serial), Thread: d.place, Channel: event.Channel{ID: "C1"}},
	})
	d.must(err)
	reason, answer, quiet := d.reason, d.answer, d.quiet
	d.mu.Lock()
	d.thread = accepted.Thread
	d.entries[d.thread] = append(d.entries[d.thread], record.Entry{
		Envelope: accepted.ID, Workspace: workspace, Event: e, Agent: d.asked,
		Coalesce: d.settings.Coalesce, CoalesceMax: d.settings.CoalesceMax, Begin: d.history == nil,
		Notice: func(record.Tell) outbox.Notice { return outbox.Notice{Text: "Done."} },
		Decide: func(m *event.Message, look record.Look) record.Decision {
			if command, ok := strings.CutPrefix(m.Content, "/"); ok {
				return record.Decision{
					Trigger: messages.TriggerNone, Metadata: m.Metadata.Bytes(), Command: record.Command(command), Tell: &record.Tell{},
				}
			}
			decision := record.Decision{Trigger: trigger, Reason: reason, Metadata: m.Metadata.Bytes(), Answer: answer}
			if quiet > 0 && look.Quiet(time.Now().Add(-quiet)) {
				decision.Restart, decision.Tell = true, &record.Tell{}
			}
			return decision
		},
	})
	d.mu.Unlock()
	d.scheduler.Wake(work.Intake, "", accepted.Thread)
}

// deliveries returns the texts of the outbox, in order.
func (d *fixture) deliveries() (texts []string) {
	d.Helper()
	for _, post := range d.posts() {
		texts = append(texts, post.Text)
	}
	return texts
}

// files returns the names of the files in the outbox, in order.
func (d *fixture) files() (names []string) {
	d.Helper()
	for _, post := range d.posts() {
		if post.File != nil {
			names = append(names, post.File.Name)
		}
	}
	return names
}

// posts empties the outbox.
func (d *fixture) posts() (posts []outbox.Post) {
	d.Helper()
	for {
		next, err := d.journal.Outbox.NextDelivery(d.Context(), d.thread)
		d.must(err)
		if next == nil {
			return posts
		}
		posts = append(posts, next.Post)
		_, err = d.journal.Outbox.Sent(d.Context(), next, fmt.Sprint("C1/post", len(posts)))
		d.must(err)
	}
}

// all returns the messages of the thread.
func (d *fixture) all() []messages.Listed {
	d.Helper()
	id, err := d.journal.Threads.ThreadID(d.Context(), key)
	d.must(err)
	all, err := d.journal.Messages.ThreadMessages(d.Context(), strings.Split(string(key), ":")[1], id, messages.Page{Limit: 100})
	d.must(err)
	return all
}

func (d *fixture) replies() []messages.Listed {
	d.Helper()
	return slices.DeleteFunc(d.all(), func(m messages.Listed) bool { return m.Author != messages.ByAgent })
}

// assembled returns the agent's input of a run, one line for each message.
func (d *fixture) assembled(run int) string {
	d.Helper()
	var b strings.Builder
	for _, m := range d.agent.inputs[run].Messages {
		fmt.Fprintf(&b, "%s: %s\n", m.Role, m.Text())
	}
	return b.String()
}

// pass advances the bubble's clock.
func pass(d time.Duration) { <-time.After(d) }
