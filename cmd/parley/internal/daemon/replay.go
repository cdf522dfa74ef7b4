package daemon

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/google/uuid"

	"parley/adapters"
	"parley/adapters/bluebubbles"
	"parley/adapters/discord"
	"parley/adapters/replay"
	"parley/adapters/slack"
	"parley/adapters/web"
	"parley/assembly/stream"
	"parley/assembly/turn"
	"parley/config"
	"parley/ingest"
	"parley/ingest/event"
	"parley/ingest/journal"
	"parley/ingest/work"
)

// Recording is a call of replay.
type Recording struct {
	Config   *config.Config // nil: echo agent, default policy, each message a turn
	Files    []string
	Platform event.Platform // of files that hold one raw payload
	JSON     bool
	Out      io.Writer
	Log      *slog.Logger
}

// normalizers read each platform's recordings.
var normalizers = map[event.Platform]adapters.Normalizer{
	event.Slack:       slack.Normalizer{},
	event.Discord:     discord.Normalizer{},
	event.BlueBubbles: bluebubbles.Normalizer{},
	event.Web:         web.Normalizer{},
}

// introductions are the payloads that tell who we are.
var introductions = map[event.Platform]func(event.Envelope) (event.Self, bool){
	event.Slack:   slack.SelfOf,
	event.Discord: discord.SelfOf,
}

// defaultWorkspace is where a recording without a workspace belongs.
const defaultWorkspace = "replay"

// Replay feeds recordings through the pipeline on a scratch store and prints
// each envelope's fate, in the order of the input.
func Replay(ctx context.Context, r Recording) error {
	scratch, err := os.MkdirTemp("", "parley-replay-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	p, err := newPlayer(ctx, r, scratch)
	if err != nil {
		return err
	}
	err = p.play(ctx)
	return errors.Join(err, p.journal.Close())
}

// player is one replay.
type player struct {
	Recording
	*Daemon
	directory  *replay.Directory
	workspaces map[scope]*config.Workspace

	mu        sync.Mutex
	fates     []*replay.Fate           // in the order of input
	envelopes map[int64]*replay.Fate   // by id
	repeats   map[int64][]*replay.Fate // of lines that repeat a waiting envelope, by its id
	asked     map[int64]*replay.Fate   // of messages that wait for their run, by row
	printed   int
	changed   chan struct{}
}

// scope tells workspaces apart: two platforms may share an id in a recording.
type scope struct {
	platform event.Platform
	id       string
}

func newPlayer(ctx context.Context, r Recording, scratch string) (*player, error) {
	c := r.Config
	if c == nil {
		c = config.Default()
		c.Workspaces = nil
	}
	d := &Daemon{log: r.Log, metrics: newMetrics(), lanes: map[string]bool{}}
	engine, err := openStore(ctx, config.Store{Engine: config.SQLite, Path: filepath.Join(scratch, "replay.db")}, r.Log, d.metrics)
	if err != nil {
		return nil, err
	}
	node := uuid.NewString()
	d.journal = journal.New(engine, journal.Options{Node: node})
	d.work = work.New(engine, work.Options{Node: node, Log: r.Log})
	p := &player{Recording: r, Daemon: d, directory: replay.NewDirectory(), workspaces: map[scope]*config.Workspace{},
		envelopes: map[int64]*replay.Fate{}, repeats: map[int64][]*replay.Fate{}, asked: map[int64]*replay.Fate{}, changed: make(chan struct{}, 1)}
	next := &setup{config: c, accounts: map[string]*account{}, agents: map[string]agent{}}
	for _, a := range c.Agents {
		next.agents[a.ID] = d.agent(agent{}, a)
	}
	d.current.Store(next)
	p.turns = turn.New(turn.Parts{
		Journal: d.journal, Work: d.work, Outbox: shown{}, Files: shown{}, Observer: p, Log: r.Log, Now: time.Now,
		Settings: p.turnSettings, Profile: d.profile,
	})
	p.ingest = ingest.New(ingest.Parts{Journal: d.journal, Work: d.work, Turns: p.turns, Observer: p, Log: r.Log, Now: time.Now})
	return p, nil
}

// shown is an outbox and a file store that touch nothing.
type shown struct{}

// Show implements turn.Outbox.
func (s shown) Show(context.Context, *work.Claim, *journal.Run, []string, func(func())) (turn.Showing, error) {
	return s, nil
}

// Put implements turn.Files: nobody will be given the file.
func (shown) Put(_ context.Context, file stream.File) (journal.File, error) {
	return journal.File{Name: file.Name, MimeType: file.MimeType, Size: int64(len(file.Data))}, nil
}

// Grow implements turn.Showing.
func (shown) Grow(string) {}

// Stop implements turn.Showing.
func (shown) Stop() {}

// Format implements turn.Showing.
func (shown) Format(string, []journal.File) ([]journal.Post, *journal.Send) { return nil, nil }

// Notice implements turn.Outbox.
func (shown) Notice(*journal.Run, string) ([]journal.Post, error) { return nil, nil }

// Posted implements turn.Outbox.
func (shown) Posted(*work.Claim, *journal.Delivery) {}

// Keep implements turn.Files.
func (shown) Keep(_ context.Context, _ string, a journal.Attachment) journal.Attachment { return a }

// play feeds every line, and prints what has been settled on the way.
func (p *player) play(ctx context.Context) error {
	work, stop := context.WithCancel(ctx)
	var workers sync.WaitGroup
	workers.Go(func() { _ = p.ingest.Run(work) })
	p.startLanes(work, work, &workers)
	err := p.feedFiles(ctx)
	stop()
	workers.Wait() // every outcome has been told by now
	return errors.Join(err, p.print(true))
}

// farFuture is later than anything that a replay waits for.
var farFuture = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// feedFiles feeds the lines of every file, and settles what waits at the end.
func (p *player) feedFiles(ctx context.Context) error {
	for _, path := range p.Files {
		if err := replay.Read(path, p.Platform, func(l replay.Line) error { return p.line(ctx, l) }); err != nil {
			return err
		}
	}
	if err := p.quiet(ctx, farFuture); err != nil {
		return err
	}
	if err := p.ingest.ReviewOnce(ctx, farFuture); err != nil {
		return err
	}
	return p.quiet(ctx, farFuture)
}

// line feeds one line and sees it through, with the turn that is due at once.
func (p *player) line(ctx context.Context, l replay.Line) error {
	if l.Directory != nil {
		p.directory.Add(l.Directory)
		return nil
	}
	p.mu.Lock()
	p.fates = append(p.fates, nil)
	n := len(p.fates)
	p.mu.Unlock()
	var w *config.Workspace
	if l.Err == nil {
		if w, l.Err = p.workspace(ctx, l.Platform, l.Workspace); l.Err != nil && ctx.Err() != nil {
			return l.Err
		}
	}
	if l.Err != nil {
		p.place(n, &replay.Fate{Disposition: event.Dead, Kind: event.KindOther, Trigger: journal.TriggerNone, Error: l.Err.Error()})
		return p.print(false)
	}
	l.Envelope.Workspace = w.ID
	if l.Platform == event.Web {
		l.Envelope.Body = web.Stamp(l.Envelope.Body)
	}
	if err := p.feed(ctx, n, l.Envelope); err != nil {
		return err
	}
	if err := p.quiet(ctx, time.Time{}); err != nil { // then it is known which turns are due
		return err
	}
	if err := p.quiet(ctx, time.Now()); err != nil {
		return err
	}
	return p.print(false)
}

// feed gives one envelope to custody, and its fate the line's place.
func (p *player) feed(ctx context.Context, n int, envelope event.Envelope) error {
	receipt, err := p.ingest.Accept(ctx, envelope)
	if err != nil {
		return err
	}
	if !receipt.Duplicate {
		p.place(n, p.fate(receipt.ID))
		return nil
	}
	return p.repeat(ctx, n, receipt.ID)
}

// repeat gives a line that was in custody already the thread and the message of
// the first one. Where that waits for its message, both are known later.
func (p *player) repeat(ctx context.Context, n int, envelope int64) error {
	fate := &replay.Fate{}
	p.place(n, fate)
	first, err := p.journal.Envelope(ctx, envelope)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if first == nil {
		p.repeats[envelope] = append(p.repeats[envelope], fate)
		return nil
	}
	repeats(fate, first.Kind, first.Thread, first.Message)
	return nil
}

// repeats settles the fate of a line that tells what an earlier one told.
func repeats(fate *replay.Fate, kind event.Kind, thread event.ThreadKey, message *journal.Message) {
	fate.Disposition, fate.Trigger = event.Duplicate, journal.TriggerNone
	fate.Kind, fate.Thread, fate.Message = kind, thread, viewOf(message)
}

// place puts a fate where its line stands.
func (p *player) place(n int, fate *replay.Fate) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fate.N = n
	p.fates[n-1] = fate
}

// fate is an envelope's, known yet or not.
func (p *player) fate(envelope int64) *replay.Fate {
	p.mu.Lock()
	defer p.mu.Unlock()
	fate := p.envelopes[envelope]
	if fate == nil {
		fate = &replay.Fate{}
		p.envelopes[envelope] = fate
	}
	return fate
}

func viewOf(m *journal.Message) *journal.View {
	if m == nil {
		return nil
	}
	v := m.View()
	return &v
}

// Settled implements ingest.Observer.
func (p *player) Settled(_ string, envelope int64, o journal.Outcome) {
	if envelope == 0 {
		return
	}
	fate := p.fate(envelope)
	p.mu.Lock()
	fate.Disposition, fate.Reason, fate.Error = o.Disposition, o.Reason, o.Error
	fate.Kind, fate.Trigger, fate.Thread, fate.Message, fate.Reaction = o.Kind, o.Trigger, o.Thread, viewOf(o.Message), o.Reaction
	if !o.TurnAt.IsZero() && o.Message != nil {
		p.asked[o.Message.Row] = fate
	}
	for _, repeat := range p.repeats[envelope] {
		repeats(repeat, o.Kind, o.Thread, o.Message)
	}
	delete(p.repeats, envelope)
	p.mu.Unlock()
	p.signal()
}

// RunEnded implements turn.Observer: what the agent was given and said stands at
// the last message of its turn.
func (p *player) RunEnded(run *journal.Run, r turn.Report) {
	if r.Outcome == turn.Retried || r.Outcome == turn.LeftOff {
		return
	}
	p.mu.Lock()
	for i, m := range run.Messages {
		fate := p.asked[m.Row]
		if fate != nil && i == len(run.Messages)-1 {
			fate.Assembled = r.Input.Messages
			if r.Reply != nil {
				fate.Replies = append(fate.Replies, replay.Reply{Op: "post", Thread: run.ThreadKey, Text: r.Reply.Content})
			}
			if r.Outcome == turn.Failed {
				fate.Error = "the agent failed: " + r.Err.Error()
			}
		}
		if r.Outcome != turn.Rerun && r.Outcome != turn.Interrupted {
			delete(p.asked, m.Row)
		}
	}
	p.mu.Unlock()
	p.signal()
}

func (p *player) signal() {
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// lookAgain is how long quiet waits for an outcome before it looks itself: what
// is put aside until its message comes has none.
const lookAgain = 5 * time.Millisecond

// quiet waits until nothing is pending and no turn is due by a time; the zero
// time leaves turns alone.
func (p *player) quiet(ctx context.Context, turnsBy time.Time) error {
	for {
		quiet, err := p.journal.Quiet(ctx, turnsBy)
		if err != nil || quiet {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-p.changed:
		case <-time.After(lookAgain):
		}
	}
}

// print prints the fates that are known, up to the first that is not; at the
// end of the input all of them.
func (p *player) print(end bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	waiting := map[*replay.Fate]bool{}
	for _, fate := range p.asked {
		waiting[fate] = true
	}
	for ; p.printed < len(p.fates); p.printed++ {
		fate := p.fates[p.printed]
		if fate == nil || !end && (fate.Disposition == "" || waiting[fate]) {
			return nil
		}
		write := fate.WriteText
		if p.JSON {
			write = fate.WriteJSON
		}
		if err := write(p.Out); err != nil {
			return err
		}
		p.fates[p.printed] = nil
	}
	return nil
}
