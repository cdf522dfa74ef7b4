package adaptertest

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"log/slog"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/adapters"
	"parley/adapters/guard"
	"parley/ingest/event"
)

// maxWait bounds every wait for an expected event. On a busy machine an event takes seconds.
const maxWait = 2 * time.Minute

// fixture is the setup of one test: a fake, its adapter, and an empty inbox.
type fixture struct {
	Fake
	t       *testing.T
	ctx     context.Context // bounds every wait
	started time.Time
	inbox   *inbox
	keys    []event.Keys // of the inbox's first envelopes
	known   people
	output  *output
	// prepared counts the arguments of operations, because a key is never used again.
	prepared int
}

// newFixture starts a platform.
func newFixture(t *testing.T, platform Platform) *fixture {
	t.Helper()
	fake := platform(t)
	ctx, cancel := context.WithTimeout(t.Context(), maxWait)
	t.Cleanup(cancel)
	s := &fixture{
		Fake: fake, t: t, ctx: ctx, started: time.Now(), inbox: newInbox(), output: &output{wrote: make(chan struct{}, 1)},
		known: people{&fake.Self, map[string]adapters.User{}, map[string]event.ChannelType{}, NewState()},
	}
	t.Cleanup(func() { // runs after the cleanup of the run
		for _, secret := range fake.Secrets {
			if text := s.output.String(); strings.Contains(text, secret) {
				t.Errorf("%q appears in an error or in the log:\n%s", secret, text)
			}
		}
	})
	return s
}

// output collects all errors and all lines of the log.
type output struct {
	wrote chan struct{} // gets a value after a write
	mu    sync.Mutex
	text  bytes.Buffer
}

// Write implements io.Writer.
func (w *output) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case w.wrote <- struct{}{}:
	default:
	}
	return w.text.Write(p)
}

// String returns the output so far.
func (w *output) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// record adds an error to the output, and returns it.
func (s *fixture) record(err error) error {
	if err != nil {
		_, _ = s.output.Write([]byte(err.Error() + "\n"))
		var refused *adapters.RefusedError
		if errors.As(err, &refused) {
			_, _ = s.output.Write([]byte(refused.Hint + "\n"))
		}
	}
	return err
}

// must ends the test if there is an error.
func (s *fixture) must(err error) {
	s.t.Helper()
	if s.record(err) != nil {
		s.t.Fatal(err)
	}
}

// ability returns an ability of the adapter, or skips the test if the adapter lacks it.
func ability[Ability any](s *fixture) Ability {
	s.t.Helper()
	ability, ok := s.Adapter.(Ability)
	if !ok {
		s.t.Skipf("the adapter does not implement %s", reflect.TypeFor[Ability]().Name())
	}
	return ability
}

// require skips the test if the platform lacks an ability.
func (s *fixture) require(has bool, name string) {
	s.t.Helper()
	if !has {
		s.t.Skipf("the platform has no %s", name)
	}
}

// run is one run of the adapter.
type run struct {
	s     *fixture
	ups   chan event.Self
	ended chan error
	stop  func() // waits until Run has returned
}

// serve serves the adapter's hook and runs the adapter until the test ends.
func (s *fixture) serve() *run {
	s.t.Helper()
	if s.Hook != nil {
		server := httptest.NewServer(ability[adapters.Hook](s).Handler(s.inbox, guard.New(func(string) {})))
		s.t.Cleanup(server.Close)
		s.Hook(server.URL)
	}
	return s.run()
}

// run runs the adapter.
func (s *fixture) run() *run {
	s.t.Helper()
	r := &run{s: s, ups: make(chan event.Self, 100), ended: make(chan error, 1), stop: func() {}}
	connector, ok := s.Adapter.(adapters.Connector)
	if !ok {
		r.ups <- s.Self
		return r
	}
	running, cancel := context.WithCancel(s.ctx)
	finished := make(chan struct{})
	link := adapters.Link{
		State:  s.known.state,
		Up:     func(self event.Self) { r.ups <- self },
		Down:   func(err error) { _ = s.record(err) },
		Missed: func(string, time.Time) {},
		Wants:  func() adapters.Wants { return adapters.Wants{} },
		Log:    slog.New(slog.NewTextHandler(s.output, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	go func() {
		defer close(finished)
		r.ended <- s.record(runAll(running, connector.Connections(), s.inbox, link))
	}()
	r.stop = func() {
		cancel()
		<-finished
	}
	s.t.Cleanup(r.stop)
	return r
}

// runAll runs connections until the first one ends, and returns its error.
func runAll(ctx context.Context, connections []adapters.Connection, inbox adapters.Inbox, link adapters.Link) (first error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var once sync.Once
	var running sync.WaitGroup
	for _, c := range connections {
		running.Go(func() {
			err := runOne(ctx, c, inbox, link)
			once.Do(func() { first = err })
			cancel()
		})
	}
	running.Wait()
	return first
}

// runOne runs a connection, or the connections that it splits into.
func runOne(ctx context.Context, c adapters.Connection, inbox adapters.Inbox, link adapters.Link) error {
	if c.Split == nil {
		return c.Run(ctx, inbox, link)
	}
	parts, err := c.Split(ctx)
	if err != nil {
		return err
	}
	return runAll(ctx, parts, inbox, link)
}

// start runs the adapter, and waits until events can arrive.
func (s *fixture) start() *run {
	s.t.Helper()
	r := s.serve()
	r.up()
	return r
}

// up waits for the next call of Up.
func (r *run) up() event.Self {
	r.s.t.Helper()
	select {
	case self := <-r.ups:
		return self
	case err := <-r.ended:
		r.s.t.Fatalf("Run returned %v before Up was called\n%s", err, r.s.output)
	case <-r.s.ctx.Done():
		r.s.t.Fatalf("Up was not called\n%s", r.s.output)
	}
	return event.Self{}
}

// end waits until Run returns.
func (r *run) end() error {
	r.s.t.Helper()
	select {
	case err := <-r.ended:
		return err
	case <-r.s.ctx.Done():
		r.s.t.Fatalf("Run did not return\n%s", r.s.output)
	}
	return nil
}

// arrival is an envelope that arrived, with its keys and its event.
type arrival struct {
	envelope event.Envelope
	keys     event.Keys
	event    event.Event
}

// read normalises an envelope, and records the type of its channel.
func (s *fixture) read(envelope event.Envelope) arrival {
	s.t.Helper()
	keys := s.Adapter.Keys(envelope, s.known)
	envelope.Parsed, keys.Parsed = keys.Parsed, nil
	e, err := s.Adapter.Normalize(s.ctx, envelope, s.known)
	s.must(err)
	if keys.Channel.Type != event.ChannelUnknown {
		s.known.types[keys.Channel.ID] = keys.Channel.Type
	}
	return arrival{envelope, keys, e}
}

// await waits for the envelope that creates, changes or refers to the message with this id.
func (s *fixture) await(kind event.Kind, id string) arrival {
	s.t.Helper()
	envelope, ok := s.inbox.await(s.ctx, func(n int, envelope event.Envelope) bool {
		if n == len(s.keys) {
			s.keys = append(s.keys, s.Adapter.Keys(envelope, s.known))
		}
		return s.keys[n].Kind == kind && s.keys[n].MessageID == id
	})
	if !ok {
		s.t.Fatalf("no %s of %s arrived\n%s", kind, id, s.output)
	}
	return s.read(envelope)
}

// say lets the asker send a message, and waits for its arrival.
func (s *fixture) say(to adapters.Address, text string) arrival {
	s.t.Helper()
	s.require(s.Say != nil, "way to send a message")
	return s.await(event.KindMessage, s.Say(to, text).ID)
}

// ask lets the asker begin a thread in a channel, and returns a post that replies.
func (s *fixture) ask(channel, key string) adapters.Post {
	s.t.Helper()
	_, to := s.thread(channel, "a question")
	return s.reply(key, to)
}

// reply returns a post to a place.
func (s *fixture) reply(key string, to adapters.Address) adapters.Post {
	return adapters.Post{Key: key, To: to, Text: "hello", Asker: s.Asker.ID, NotBefore: s.started}
}

// send sends a post and ends the test if that fails.
func (s *fixture) send(post adapters.Post) (id string) {
	s.t.Helper()
	id, err := ability[adapters.Sender](s).Send(s.ctx, post)
	s.must(err)
	return id
}

// shown returns our post as it is shown now, or false if it is not shown.
func (s *fixture) shown(to adapters.Address, id string) (Shown, bool) {
	for _, post := range s.Shown(to) {
		if post.ID == id {
			return post, true
		}
	}
	return Shown{}, false
}

// channels returns the room and the direct messages.
func (s *fixture) channels() []string { return []string{s.Room.ID, s.Direct.ID} }

// thread lets the asker begin a thread in a channel. It returns the root and the address of
// replies to it.
func (s *fixture) thread(channel, text string) (arrival, adapters.Address) {
	s.t.Helper()
	root := s.say(adapters.Address{Channel: channel}, text)
	return root, s.address(root)
}

// address returns the address of a reply to a message. It checks that the channel of the
// address is that of the whole thread.
func (s *fixture) address(message arrival) adapters.Address {
	s.t.Helper()
	sender := ability[adapters.Sender](s)
	to, err := sender.Address(message.keys.Thread, message.keys.MessageID)
	s.must(err)
	whole, err := sender.Address(message.keys.Thread, "")
	s.must(err)
	if to.Channel == "" || to.Channel != whole.Channel {
		s.t.Errorf("Address returns the channel %q for a reply to %s, and %q for the thread", to.Channel, message.keys.MessageID, whole.Channel)
	}
	return to
}

// posted starts the adapter and posts a reply to a question in the room.
func (s *fixture) posted() (post adapters.Post, id string) {
	s.t.Helper()
	s.start()
	post = s.ask(s.Room.ID, "k1")
	return post, s.send(post)
}

// showsOnly checks that the thread of a post shows this post alone, with its text.
func (s *fixture) showsOnly(post adapters.Post, id string) {
	s.t.Helper()
	if shown := s.Shown(post.To); len(shown) != 1 || shown[0].ID != id || shown[0].Text != post.Text {
		s.t.Errorf("the platform shows %+v, want %q as %s", shown, post.Text, id)
	}
}

// showsNothing checks that the thread of a post shows no post of ours.
func (s *fixture) showsNothing(post adapters.Post) {
	s.t.Helper()
	if shown := s.Shown(post.To); len(shown) != 0 {
		s.t.Errorf("the platform shows %+v, want no post", shown)
	}
}

// failures yields those of the failures that the platform can produce for a call. The next call
// of the kind then fails so.
func (s *fixture) failures(call Call, all ...Failure) iter.Seq[Failure] {
	return func(yield func(Failure) bool) {
		for _, failure := range all {
			if s.Fault != nil && s.Fault(call, failure) != nil && !yield(failure) {
				return
			}
		}
	}
}

// readFails checks that a call returns an error if its read fails or its context has ended.
func (s *fixture) readFails(call Call, read func(ctx context.Context) error) {
	s.t.Helper()
	for failure := range s.failures(call, Denied, Broken, Lost, Limited) {
		if s.record(read(s.ctx)) == nil {
			s.t.Errorf("the call succeeded with %s", failure)
		}
	}
	if s.record(read(s.ended())) == nil {
		s.t.Error("the call succeeded after the end of its context")
	}
}

// ended returns a context that has ended.
func (s *fixture) ended() context.Context {
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	return ctx
}
