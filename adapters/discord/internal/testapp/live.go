package testapp

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
	"parley/adapters/discord/payload"
	"parley/ingest/event"
)

// waitLimit bounds every wait of a test, on a busy machine too.
const waitLimit = 2 * time.Minute

// Live is a fake Discord with a running adapter.
type Live struct {
	T *testing.T
	*discordtest.Server
	Adapter *discord.Adapter
	State   *adaptertest.State // of the workspace
	Inbox   *Inbox
	Ups     chan event.Self // the calls of Link.Up
	Downs   chan error      // the calls of Link.Down
	Missed  chan time.Time  // the calls of Link.Missed
	Ended   chan error      // the results of the connections
	Stop    func()          // stops the connections, and waits until they have ended
	Wants   adapters.Wants  // the answer of Link.Wants
	Warned  lines           // the warnings of the log
}

// lines is an io.Writer that passes on each line of a log.
type lines chan string

// Write implements io.Writer.
func (l lines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}

// Inbox is an Inbox and Results in memory.
type Inbox struct {
	Mu      sync.Mutex // holds the fields while the adapter runs
	changed chan struct{}
	taken   []event.Envelope
	// Refuse refuses an envelope before it is stored; nil refuses none.
	Refuse func(event.Envelope) error
	// Triggers says that envelopes trigger runs. If Decides is false, the decision is never
	// known.
	Triggers, Decides bool
	// Decision is the later decision about the only envelope; nil for none.
	Decision chan bool
}

// Accept implements adapters.Inbox.
func (i *Inbox) Accept(_ context.Context, e event.Envelope) (adapters.Receipt, error) {
	i.Mu.Lock()
	refuse := i.Refuse
	i.Mu.Unlock()
	if refuse != nil {
		if err := refuse(e); err != nil {
			return adapters.Receipt{}, err
		}
	}
	i.Mu.Lock()
	defer i.Mu.Unlock()
	if e.Queued != nil {
		e.Queued()
	}
	i.taken = append(i.taken, e)
	close(i.changed)
	i.changed = make(chan struct{})
	return adapters.Receipt{ID: int64(len(i.taken))}, nil
}

// Runs implements adapters.Results.
func (i *Inbox) Runs(ctx context.Context, _ int64) (runs, known bool) {
	if i.Decision != nil {
		select {
		case runs = <-i.Decision:
			return runs, true
		case <-ctx.Done():
			return false, false
		}
	}
	i.Mu.Lock()
	defer i.Mu.Unlock()
	return i.Triggers, i.Decides
}

// AwaitTexts waits until n envelopes of messages are stored, and returns their contents.
func (l *Live) AwaitTexts(n int) (texts []string) {
	l.T.Helper()
	for timeout := time.After(waitLimit); ; {
		l.Inbox.Mu.Lock()
		taken, changed := l.Inbox.taken, l.Inbox.changed
		l.Inbox.Mu.Unlock()
		texts = nil
		for _, e := range taken {
			if got, err := l.Adapter.Normalize(l.T.Context(), e, l.Directory()); err == nil && got.Message != nil && !got.Message.Own {
				texts = append(texts, got.Message.Content)
			}
		}
		if len(texts) >= n {
			return texts
		}
		select {
		case <-changed:
		case <-timeout:
			l.T.Fatalf("only %q arrived", texts)
		}
	}
}

// Envelopes returns the stored envelopes.
func (l *Live) Envelopes() []event.Envelope {
	l.Inbox.Mu.Lock()
	defer l.Inbox.Mu.Unlock()
	return slices.Clone(l.Inbox.taken)
}

// Directory returns a directory with the fake's bot and the workspace's state.
func (l *Live) Directory() adapters.Directory {
	return NewDirectory(event.Self{UserID: discordtest.BotUser}, l.State)
}

// Start starts a fake and an adapter, and waits for its session.
func Start(t *testing.T, options discordtest.Options, change func(*discord.Config)) *Live {
	t.Helper()
	l := Prepare(t, options, change)
	l.Run()
	l.Up()
	return l
}

// Prepare starts a fake, and returns it with an adapter that does not run yet.
func Prepare(t *testing.T, options discordtest.Options, change func(*discord.Config)) *Live {
	t.Helper()
	if options.Heartbeat == 0 {
		options.Heartbeat = time.Second // a busy machine acknowledges late
	}
	l := &Live{T: t, Server: StartServer(t, options), State: adaptertest.NewState(), Inbox: &Inbox{changed: make(chan struct{})}, Warned: make(lines, 1000)}
	l.Adapter = NewAdapter(l.Server, change)
	l.Adapter.UseState(l.State)
	return l
}

// Run runs the adapter's connections until the test ends, or Stop is called.
func (l *Live) Run() {
	ctx, cancel := context.WithCancel(l.T.Context())
	l.Ups, l.Downs, l.Ended, l.Missed = make(chan event.Self, 100), make(chan error, 100), make(chan error, 10), make(chan time.Time, 100)
	link := adapters.Link{
		Up: func(self event.Self) { l.Ups <- self }, Down: func(err error) { l.Downs <- err },
		Missed: func(_ string, since time.Time) { l.Missed <- since }, State: l.State, Log: slog.New(slog.NewTextHandler(l.Warned, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Wants: func() adapters.Wants { return l.Wants },
	}
	var running sync.WaitGroup
	for _, c := range l.Connections() {
		running.Go(func() { l.Ended <- c.Run(ctx, l.Inbox, link) })
	}
	l.Stop = func() {
		cancel()
		running.Wait()
	}
	l.T.Cleanup(l.Stop)
}

// Connections returns a connection for each shard.
func (l *Live) Connections() []adapters.Connection {
	l.T.Helper()
	all := l.Adapter.Connections()
	if len(all) != 1 || all[0].Split == nil {
		return all
	}
	all, err := all[0].Split(l.T.Context())
	if err != nil {
		l.T.Fatal(err)
	}
	return all
}

// Up waits until the adapter reports a session, and returns its identity.
func (l *Live) Up() event.Self {
	l.T.Helper()
	select {
	case self := <-l.Ups:
		return self
	case err := <-l.Ended:
		l.T.Fatalf("Run ended: %v", err)
	case <-time.After(waitLimit):
		l.T.Fatal("Up was not called")
	}
	return event.Self{}
}

// MaraSays lets Mara write in a channel.
func (l *Live) MaraSays(channel, text string) discordtest.Message {
	m, _ := l.Say(discordtest.Message{Channel: channel, Author: Mara, Content: text})
	return m
}

// AwaitSession waits until the adapter has a session again.
func (l *Live) AwaitSession() {
	l.T.Helper()
	l.AwaitSessions(1)
}

// AwaitSessions waits until n sessions are connected.
func (l *Live) AwaitSessions(n int) {
	l.T.Helper()
	ctx, cancel := context.WithTimeout(l.T.Context(), waitLimit)
	defer cancel()
	if err := l.AwaitShards(ctx, n); err != nil {
		l.T.Fatal(err)
	}
}

// Callback waits for the response to an interaction.
func (l *Live) Callback(i discordtest.Interaction) discordtest.Interaction {
	l.T.Helper()
	return l.AwaitResponse(i, func(i discordtest.Interaction) bool { return i.Type != 0 })
}

// AwaitResponse waits for a state of an interaction.
func (l *Live) AwaitResponse(i discordtest.Interaction, ok func(discordtest.Interaction) bool) discordtest.Interaction {
	l.T.Helper()
	ctx, cancel := context.WithTimeout(l.T.Context(), waitLimit)
	defer cancel()
	asked, err := l.AwaitAsked(ctx, i.Token, ok)
	if err != nil {
		l.T.Fatal(err)
	}
	return asked
}

// EventOf returns the event of the message with an external id.
func (l *Live) EventOf(id string) event.Event {
	l.T.Helper()
	l.AwaitTexts(1)
	for _, e := range l.Envelopes() {
		if got, err := l.Adapter.Normalize(l.T.Context(), e, l.Directory()); err == nil && got.Message != nil && got.Message.ExternalID == id {
			return got
		}
	}
	l.T.Fatalf("no event of %s arrived", id)
	return event.Event{}
}

// Post returns a post that answers a message in a channel.
func (l *Live) Post(key, channel, answered, text string) adapters.Post {
	l.T.Helper()
	to, err := l.Adapter.Address(payload.ThreadKey("acme", channel), answered)
	if err != nil {
		l.T.Fatal(err)
	}
	return adapters.Post{Key: key, To: to, Text: text, NotBefore: time.Now()}
}

// Send posts, and returns the id of the message. An error ends the test.
func (l *Live) Send(post adapters.Post) string {
	l.T.Helper()
	id, err := l.Adapter.Send(l.T.Context(), post)
	if err != nil {
		l.T.Fatal(err)
	}
	return id
}
