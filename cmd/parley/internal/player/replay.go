// Package player plays messages through the pipeline on a scratch store: the lines of recordings, dead letters, and the
// trials of operators. It asks the agents, and sends and keeps nothing.
package player

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"parley/adapters/deliver"
	"parley/adapters/replay"
	"parley/assembly/turn"
	"parley/cmd/parley/internal/pipeline"
	"parley/config"
	"parley/ingest/card"
	"parley/ingest/event"
	"parley/ingest/journal"
	"parley/ingest/journal/envelopes"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/record"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/sqlite"
	"parley/ingest/journal/storage"
	"parley/ingest/wake"
	"parley/ingest/work"
)

// Recording configures a replay.
type Recording struct {
	Config   *config.Config // nil: echo agent, default policy, each message a turn
	Files    []string
	Platform event.Platform // of files that contain one raw payload
	JSON     bool
	Out      io.Writer
	Log      *slog.Logger
	// Progress is called with the number of lines that were read; nil for no call.
	Progress func(lines int64)
}

// defaultWorkspace is the workspace of a line that names none.
const defaultWorkspace = "replay"

// Replay feeds recordings through the pipeline on a scratch store and prints the result of
// each envelope, in the order of the input.
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
	return errors.Join(err, p.Journal.Close())
}

// player is one replay.
type player struct {
	Recording
	*pipeline.Pipeline
	directory  *replay.Directory
	workspaces map[scope]*config.Workspace
	live       *liveFacts // replace those of the recording; nil for none

	mu        sync.Mutex
	results   []*replay.Result               // in the order of the input
	envelopes map[int64]*replay.Result       // by envelope id
	repeats   map[int64][]*replay.Result     // of lines that repeat a waiting envelope, by its id
	asked     map[int64]*replay.Result       // of messages that wait for their run, by row
	early     map[int64]func(*replay.Result) // the ends of runs before the results of their messages, by row
	ended     []endedRun                     // whose state posts no result has
	printed   int                            // the number of printed results
	changed   wake.Signal                    // set after a change of a result
}

// endedRun is a run that has ended, and the result of its last message.
type endedRun struct {
	run    *runs.Run
	result *replay.Result
}

// scope identifies a workspace. Workspaces of two platforms may have the same id in a
// recording.
type scope struct {
	platform event.Platform
	id       string
}

// newPlayer opens the scratch store in a folder and wires the pipeline.
func newPlayer(ctx context.Context, r Recording, scratch string) (*player, error) {
	c := r.Config
	if c == nil {
		c = config.Default()
		c.Workspaces = nil
	}
	engine, err := sqlite.Open(ctx, filepath.Join(scratch, "replay.db"), sqlite.Options{Log: r.Log})
	if err != nil {
		return nil, err
	}
	node, current := uuid.NewString(), new(pipeline.Current)
	p := &player{Recording: r, directory: replay.NewDirectory(), workspaces: map[scope]*config.Workspace{},
		envelopes: map[int64]*replay.Result{}, repeats: map[int64][]*replay.Result{}, asked: map[int64]*replay.Result{}, early: map[int64]func(*replay.Result){}, changed: wake.NewSignal()}
	p.Pipeline = pipeline.New(pipeline.Parts{
		Current: current, Journal: journal.New(engine, journal.Options{Node: node, Rows: current.Rows}), Work: work.New(engine, work.Options{Node: node, Log: r.Log}),
		Workspaces: p, Names: p, Outbox: discard{}, Files: discard{}, Observer: p, Log: r.Log, Now: time.Now,
	})
	p.Use(p.Prepare(c))
	return p, nil
}

// play feeds every line, and prints each result once it is final.
func (p *player) play(ctx context.Context) error {
	return errors.Join(p.serve(ctx, p.feedFiles), p.print(true))
}

// serve runs the pipeline while feed runs.
func (p *player) serve(ctx context.Context, feed func(context.Context) error) error {
	work, stop := context.WithCancel(ctx)
	var workers sync.WaitGroup
	workers.Go(func() { _ = p.Ingest.Run(work) })
	p.ServeAgents(work, work, &workers)
	err := feed(ctx)
	stop()
	workers.Wait()
	p.CloseAgents()
	return err
}

// farFuture is later than every time for which a replay waits.
var farFuture = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// feedFiles feeds the lines of every file.
func (p *player) feedFiles(ctx context.Context) error {
	fed := int64(0)
	line := func(l replay.Line) error {
		err := p.line(ctx, l)
		if fed++; p.Progress != nil {
			p.Progress(fed)
		}
		return err
	}
	for _, path := range p.Files {
		if err := replay.Read(path, p.Platform, config.PlatformNames(), line); err != nil {
			return err
		}
	}
	return p.finish(ctx)
}

// finish processes the turns and the envelopes that still wait at the end of the input.
func (p *player) finish(ctx context.Context) error {
	if err := p.Journal.Runs.HastenTurns(ctx); err != nil {
		return err
	}
	for agent := range p.Setup().Agents {
		p.Work.WakeAt(work.Turns, agent, time.Now())
	}
	if err := p.quiet(ctx, farFuture); err != nil {
		return err
	}
	if err := p.Ingest.ReviewOnce(ctx, farFuture); err != nil {
		return err
	}
	if err := p.quiet(ctx, farFuture); err != nil {
		return err
	}
	if err := p.settled(ctx); err != nil {
		return err
	}
	return p.addStates(ctx)
}

// line feeds one line, and waits for its result and for the turn that it makes due at once.
func (p *player) line(ctx context.Context, l replay.Line) error {
	if l.Directory != nil {
		p.directory.Add(l.Directory)
		return nil
	}
	p.mu.Lock()
	p.results = append(p.results, nil)
	n := len(p.results)
	p.mu.Unlock()
	var w *config.Workspace
	if l.Err == nil {
		if w, l.Err = p.workspace(ctx, l.Platform, l.Workspace); l.Err != nil && ctx.Err() != nil {
			return l.Err
		}
	}
	if l.Err != nil {
		words := l.Err.Error()
		if l.Number > 0 {
			words = "line " + strconv.Itoa(l.Number) + ": " + words
		}
		p.place(n, &replay.Result{Disposition: event.Dead, Kind: event.KindOther, Trigger: messages.TriggerNone, Error: words})
		return p.print(false)
	}
	l.Envelope.Workspace = w.ID
	if platform, _ := config.Platform(l.Platform); platform.Recorded != nil {
		l.Envelope.Body = platform.Recorded(l.Envelope.Body)
	}
	if err := p.feed(ctx, n, l.Envelope); err != nil {
		return err
	}
	if err := p.quiet(ctx, time.Time{}); err != nil { // the due turns are known after this
		return err
	}
	if err := p.quiet(ctx, time.Now()); err != nil {
		return err
	}
	if err := p.addStates(ctx); err != nil {
		return err
	}
	return p.print(false)
}

// feed accepts the envelope of line n, and puts its result at the line's place.
func (p *player) feed(ctx context.Context, n int, envelope event.Envelope) error {
	receipt, err := p.Ingest.Accept(ctx, envelope)
	if err != nil {
		return err
	}
	if !receipt.Duplicate {
		p.place(n, p.result(receipt.ID))
		return nil
	}
	return p.repeat(ctx, n, receipt.ID)
}

// repeat gives line n, a duplicate, the thread and the message of the first envelope. If
// that envelope still waits for its target, Processed completes the result.
func (p *player) repeat(ctx context.Context, n int, envelope int64) error {
	result := &replay.Result{}
	p.place(n, result)
	first, err := p.Journal.Envelopes.Envelope(ctx, envelope)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if first == nil {
		p.repeats[envelope] = append(p.repeats[envelope], result)
		return nil
	}
	var message *messages.Message
	if first.Message != nil {
		message = &first.Message.Message
	}
	setDuplicate(result, first.Kind, first.Thread, message)
	return nil
}

// setDuplicate sets the result of a line whose payload an earlier line had.
func setDuplicate(result *replay.Result, kind event.Kind, thread event.ThreadKey, message *messages.Message) {
	result.Disposition, result.Trigger = event.Duplicate, messages.TriggerNone
	result.Kind, result.Thread, result.Message = kind, thread, viewOf(message)
}

// place makes a result that of line n.
func (p *player) place(n int, result *replay.Result) {
	p.mu.Lock()
	defer p.mu.Unlock()
	result.N = n
	p.results[n-1] = result
}

// result returns the result of an envelope, which is empty until Processed fills it.
func (p *player) result(envelope int64) *replay.Result {
	p.mu.Lock()
	defer p.mu.Unlock()
	result := p.envelopes[envelope]
	if result == nil {
		result = &replay.Result{}
		p.envelopes[envelope] = result
	}
	return result
}

func viewOf(m *messages.Message) *messages.View {
	if m == nil {
		return nil
	}
	v := m.View()
	return &v
}

// Accepted implements ingest.Observer. Only results count here.
func (p *player) Accepted(*event.Envelope, event.ThreadKey) {}

// Processed implements ingest.Observer.
func (p *player) Processed(of *envelopes.Pending, o record.Result) {
	envelope := of.ID
	if envelope == 0 {
		return
	}
	result := p.result(envelope)
	p.mu.Lock()
	result.Disposition, result.Reason, result.Error = o.Disposition, o.Reason, o.Error
	result.Kind, result.Trigger, result.Thread, result.Message, result.Reaction = o.Kind, o.Trigger, o.Thread, viewOf(o.Message), o.Reaction
	if !o.TurnAt.IsZero() && o.Message != nil {
		if end := p.early[o.Message.Row]; end != nil {
			end(result)
			delete(p.early, o.Message.Row)
		} else {
			p.asked[o.Message.Row] = result
		}
	}
	for _, repeat := range p.repeats[envelope] {
		setDuplicate(repeat, o.Kind, o.Thread, o.Message)
	}
	delete(p.repeats, envelope)
	p.mu.Unlock()
	p.changed.Set()
}

// RunBegins implements turn.Observer.
func (p *player) RunBegins(ctx context.Context, _ *runs.Run, _ time.Time) context.Context { return ctx }

// WaitingRunEnded implements turn.Observer.
func (*player) WaitingRunEnded(string, turn.Outcome) {}

// RunEnded implements turn.Observer. It adds the agent's input and reply to the result of
// the last message of the turn. A worker finds a due turn as soon as it is stored, so that a run may end before
// the result of its message is reported.
func (p *player) RunEnded(run *runs.Run, r turn.Report) {
	if r.Outcome == turn.Retried || r.Outcome == turn.LeftOff {
		return
	}
	p.mu.Lock()
	for i, m := range run.Messages {
		end := func(result *replay.Result) {
			if i < len(run.Messages)-1 {
				return
			}
			result.Assembled = r.Input.Messages
			if r.Reply != nil {
				text := r.Reply.Content
				if r.Card != "" {
					text = strings.TrimSpace(text + "\n\n" + r.Card)
				}
				result.Replies = append(result.Replies, replay.Reply{Op: "post", Thread: run.ThreadKey, Text: text})
			}
			switch {
			case r.Outcome == turn.Failed:
				result.Error = "the agent failed: " + r.Err.Error()
			case r.CardErr != nil:
				result.Error = "a card is not shown: " + r.CardErr.Error()
			}
			p.ended = append(p.ended, endedRun{run, result})
		}
		result, again := p.asked[m.Row], r.Outcome == turn.Rerun || r.Outcome == turn.Interrupted
		switch {
		case result != nil:
			end(result)
		case !again:
			p.early[m.Row] = end
		}
		if !again {
			delete(p.asked, m.Row)
		}
	}
	p.mu.Unlock()
	p.changed.Set()
}

// addStates adds the last state posts of the runs that have ended before their answers, as people see them where posts can be edited.
func (p *player) addStates(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.ended {
		if platform, _ := config.Platform(e.run.Platform); platform.API {
			continue
		}
		stated, err := p.Journal.Runs.StateOf(ctx, e.run.ID)
		if errors.Is(err, storage.ErrNotFound) { // the run was repeated
			continue
		} else if err != nil {
			return err
		}
		show := p.Setup().Agents[e.run.Agent].Profile.Show
		if show == nil {
			show = turn.DefaultShow(true)
		}
		state := deliver.StateOf(stated, func(name string) bool { return slices.Contains(show, name) })
		if state.Begins() {
			shown := state.View(func(card.View) bool { return true })
			e.result.Replies = slices.Insert(e.result.Replies, 0, replay.Reply{Op: "post", Thread: e.run.ThreadKey, Text: shown.Plain()})
		}
	}
	p.ended = nil
	return nil
}

// pollInterval is the time after which quiet asks the journal again. An envelope that
// starts to wait for its target has no result yet, so no observer reports it.
const pollInterval = 5 * time.Millisecond

// quiet waits until no envelope is pending and no turn is due at a time. With the zero time
// it does not wait for turns.
func (p *player) quiet(ctx context.Context, turnsBy time.Time) error {
	return p.await(ctx, func() (bool, error) { return p.Journal.Runs.Quiet(ctx, turnsBy) })
}

// settled waits until the observers have the result of every envelope. A worker reports a
// result after its commit, and reports none if it is stopped in between.
func (p *player) settled(ctx context.Context) error {
	return p.await(ctx, func() (bool, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, result := range p.envelopes {
			if result.Disposition == "" {
				return false, nil
			}
		}
		return true, nil
	})
}

// await waits until a condition holds. It checks the condition after each change of a result.
func (p *player) await(ctx context.Context, holds func() (bool, error)) error {
	for {
		done, err := holds()
		if err != nil || done {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-p.changed:
		case <-time.After(pollInterval):
		}
	}
}

// print prints the final results up to the first one that is not final; at the end of the
// input it prints all of them.
func (p *player) print(end bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	waiting := map[*replay.Result]bool{}
	for _, result := range p.asked {
		waiting[result] = true
	}
	for ; p.printed < len(p.results); p.printed++ {
		result := p.results[p.printed]
		if result == nil || !end && (result.Disposition == "" || waiting[result]) {
			return nil
		}
		write := result.WriteText
		if p.JSON {
			write = result.WriteJSON
		}
		if err := write(p.Out); err != nil {
			return err
		}
		p.results[p.printed] = nil
	}
	return nil
}
