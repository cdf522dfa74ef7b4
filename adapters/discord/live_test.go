package discord_test

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"parley/adapters"
	"parley/adapters/adaptertest"
	"parley/adapters/discord"
	"parley/adapters/discord/discordtest"
	"parley/ingest/event"
)

// live is a fake Discord with a running adapter.
type live struct {
	t *testing.T
	*discordtest.Server
	adapter *discord.Adapter
	state   *adaptertest.State
	inbox   *inbox
	ups     chan event.Self
	downs   chan error
	missed  chan time.Time
	ended   chan error
	stop    context.CancelFunc
	wants   adapters.Wants
	warned  lines // of the log
}

// lines is an io.Writer that passes on each line of a log.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}

// inbox is an Inbox and Results in memory.
type inbox struct {
	mu      sync.Mutex
	changed chan struct{}
	taken   []event.Envelope
	// refuse refuses an envelope before it is stored; nil refuses none.
	refuse func(event.Envelope) error
	// runs says that envelopes trigger runs. If decides is nil, the decision is never known.
	runs    bool
	decides bool
	// decision is the later decision about the only envelope; nil for none.
	decision chan bool
}

func (i *inbox) Accept(_ context.Context, e event.Envelope) (adapters.Receipt, error) {
	i.mu.Lock()
	refuse := i.refuse
	i.mu.Unlock()
	if refuse != nil {
		if err := refuse(e); err != nil {
			return adapters.Receipt{}, err
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if e.Queued != nil {
		e.Queued()
	}
	i.taken = append(i.taken, e)
	close(i.changed)
	i.changed = make(chan struct{})
	return adapters.Receipt{ID: int64(len(i.taken))}, nil
}

func (i *inbox) Runs(ctx context.Context, _ int64) (runs, known bool) {
	if i.decision != nil {
		select {
		case runs = <-i.decision:
			return runs, true
		case <-ctx.Done():
			return false, false
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.runs, i.decides
}

// await waits until n envelopes of messages are stored, and returns their contents.
func (l *live) await(n int) (texts []string) {
	l.t.Helper()
	for timeout := time.After(10 * time.Second); ; {
		l.inbox.mu.Lock()
		taken, changed := l.inbox.taken, l.inbox.changed
		l.inbox.mu.Unlock()
		texts = nil
		for _, e := range taken {
			if got, err := l.adapter.Normalize(l.t.Context(), e, l.directory()); err == nil && got.Message != nil && !got.Message.Own {
				texts = append(texts, got.Message.Content)
			}
		}
		if len(texts) >= n {
			return texts
		}
		select {
		case <-changed:
		case <-timeout:
			l.t.Fatalf("only %q arrived", texts)
		}
	}
}

// envelopes returns the stored envelopes.
func (l *live) envelopes() []event.Envelope {
	l.inbox.mu.Lock()
	defer l.inbox.mu.Unlock()
	return slices.Clone(l.inbox.taken)
}

func (l *live) directory() adapters.Directory {
	return stateDirectory{self: event.Self{UserID: discordtest.BotUser}, state: l.state}
}

// startLive starts a fake and an adapter, and waits for its session.
func startLive(t *testing.T, options discordtest.Options, change func(*discord.Config)) *live {
	t.Helper()
	l := prepareLive(t, options, change)
	l.run()
	l.up()
	return l
}

func prepareLive(t *testing.T, options discordtest.Options, change func(*discord.Config)) *live {
	t.Helper()
	if options.Heartbeat == 0 {
		options.Heartbeat = 100 * time.Millisecond
	}
	l := &live{t: t, Server: startFake(t, options), state: adaptertest.NewState(), inbox: &inbox{changed: make(chan struct{})}, warned: make(lines, 1000)}
	l.adapter = newAdapter(l.Server, change)
	l.adapter.UseState(l.state)
	return l
}

// run runs the adapter's connections until the test ends, or stop is called.
func (l *live) run() {
	ctx, cancel := context.WithCancel(l.t.Context())
	l.ups, l.downs, l.ended, l.missed = make(chan event.Self, 100), make(chan error, 100), make(chan error, 10), make(chan time.Time, 100)
	link := adapters.Link{
		Up: func(self event.Self) { l.ups <- self }, Down: func(err error) { l.downs <- err },
		Missed: func(_ string, since time.Time) { l.missed <- since }, State: l.state, Log: slog.New(slog.NewTextHandler(l.warned, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Wants: func() adapters.Wants { return l.wants },
	}
	var running sync.WaitGroup
	for _, c := range l.connections() {
		running.Go(func() { l.ended <- c.Run(ctx, l.inbox, link) })
	}
	l.stop = func() {
		cancel()
		running.Wait()
	}
	l.t.Cleanup(l.stop)
}

// connections returns a connection for each shard.
func (l *live) connections() []adapters.Connection {
	l.t.Helper()
	all := l.adapter.Connections()
	if len(all) != 1 || all[0].Split == nil {
		return all
	}
	all, err := all[0].Split(l.t.Context())
	if err != nil {
		l.t.Fatal(err)
	}
	return all
}

func (l *live) up() event.Self {
	l.t.Helper()
	select {
	case self := <-l.ups:
		return self
	case err := <-l.ended:
		l.t.Fatalf("Run ended: %v", err)
	case <-time.After(10 * time.Second):
		l.t.Fatal("Up was not called")
	}
	return event.Self{}
}

// say lets Mara write in a channel.
func (l *live) say(channel, text string) discordtest.Message {
	m, _ := l.Say(discordtest.Message{Channel: channel, Author: mara, Content: text})
	return m
}

// awaitSession waits until the adapter has a session again.
func (l *live) awaitSession() {
	l.t.Helper()
	l.awaitShards(1)
}

// awaitShards waits until n sessions are connected.
func (l *live) awaitShards(n int) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), 10*time.Second)
	defer cancel()
	if err := l.AwaitShards(ctx, n); err != nil {
		l.t.Fatal(err)
	}
}
