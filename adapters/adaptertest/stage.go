package adaptertest

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/adapters"
	"parley/ingest/event"
)

// patience bounds every wait for what must come, and moment every wait for what
// must not.
const (
	patience = 10 * time.Second
	moment   = 30 * time.Millisecond
)

// stage is a fake, the adapter that plays on it, and an inbox that is empty.
type stage struct {
	Fake
	t     *testing.T
	ctx   context.Context // bounds every wait
	begun time.Time
	inbox *inbox
	known people
	words *words
}

// set starts a platform.
func set(t *testing.T, platform Platform) *stage {
	t.Helper()
	fake := platform(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	s := &stage{
		Fake: fake, t: t, ctx: ctx, begun: time.Now(), inbox: newInbox(), words: new(words),
		known: people{&fake.Self, map[string]adapters.User{}, map[string]event.ChannelType{}},
	}
	t.Cleanup(func() { // behind the end of the run, which is cleaned up before
		for _, secret := range fake.Secrets {
			if said := s.words.String(); strings.Contains(said, secret) {
				t.Errorf("%q stands in an error or in the log:\n%s", secret, said)
			}
		}
	})
	return s
}

// words are all errors and lines of the log.
type words struct {
	mu   sync.Mutex
	said bytes.Buffer
}

// Write implements io.Writer.
func (w *words) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.said.Write(p)
}

// String is what was said so far.
func (w *words) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.said.String()
}

// heard notes an error's words, and returns it.
func (s *stage) heard(err error) error {
	if err != nil {
		_, _ = s.words.Write([]byte(err.Error() + "\n"))
		var refused *adapters.RefusedError
		if errors.As(err, &refused) {
			_, _ = s.words.Write([]byte(refused.Hint + "\n"))
		}
	}
	return err
}

// must ends the test where there is an error.
func (s *stage) must(err error) {
	s.t.Helper()
	if s.heard(err) != nil {
		s.t.Fatal(err)
	}
}

// able is the adapter's ability, without which the test is skipped.
func able[Ability any](s *stage) Ability {
	s.t.Helper()
	ability, ok := s.Adapter.(Ability)
	if !ok {
		s.t.Skipf("the adapter is no %s", reflect.TypeFor[Ability]().Name())
	}
	return ability
}

// needs skips the test where the platform does not have what the words name.
func (s *stage) needs(has bool, words string) {
	s.t.Helper()
	if !has {
		s.t.Skipf("the platform has no %s", words)
	}
}

// run is one run of the adapter.
type run struct {
	s     *stage
	ups   chan event.Self
	ended chan error
	stop  func() // returns once Run has
}

// begin runs the adapter, and serves its hook, until the test ends.
func (s *stage) begin() *run {
	s.t.Helper()
	if s.Hook != nil {
		server := httptest.NewServer(able[adapters.Hook](s).Handler(s.inbox, func(string) {}))
		s.t.Cleanup(server.Close)
		s.Hook(server.URL)
	}
	return s.again()
}

// again runs the adapter.
func (s *stage) again() *run {
	s.t.Helper()
	r := &run{s: s, ups: make(chan event.Self, 100), ended: make(chan error, 1), stop: func() {}}
	runner, ok := s.Adapter.(adapters.Runner)
	if !ok {
		r.ups <- s.Self
		return r
	}
	running, cancel := context.WithCancel(s.ctx)
	finished := make(chan struct{})
	link := adapters.Link{
		Up:   func(self event.Self) { r.ups <- self },
		Down: func(err error) { _ = s.heard(err) },
		Log:  slog.New(slog.NewTextHandler(s.words, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	go func() {
		defer close(finished)
		r.ended <- s.heard(runner.Run(running, s.inbox, link))
	}()
	r.stop = func() {
		cancel()
		<-finished
	}
	s.t.Cleanup(r.stop)
	return r
}

// play runs the adapter, and returns once events can arrive.
func (s *stage) play() *run {
	s.t.Helper()
	r := s.begin()
	r.up()
	return r
}

// up waits until the adapter says that events can arrive.
func (r *run) up() event.Self {
	r.s.t.Helper()
	select {
	case self := <-r.ups:
		return self
	case err := <-r.ended:
		r.s.t.Fatalf("Run has ended: %v\n%s", err, r.s.words)
	case <-r.s.ctx.Done():
		r.s.t.Fatalf("nothing can arrive\n%s", r.s.words)
	}
	return event.Self{}
}

// end waits for the end of Run.
func (r *run) end() error {
	r.s.t.Helper()
	select {
	case err := <-r.ended:
		return err
	case <-r.s.ctx.Done():
		r.s.t.Fatalf("Run goes on\n%s", r.s.words)
	}
	return nil
}

// arrival is an envelope that came in, as it is read.
type arrival struct {
	envelope event.Envelope
	keys     event.Keys
	event    event.Event
}

// read reads an envelope, and learns of its channel's type.
func (s *stage) read(envelope event.Envelope) arrival {
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

// arrives waits for what makes the message with this id, or is about it.
func (s *stage) arrives(kind event.Kind, id string) arrival {
	s.t.Helper()
	envelope, ok := s.inbox.await(s.ctx, func(envelope event.Envelope) bool {
		keys := s.Adapter.Keys(envelope, s.known)
		return keys.Kind == kind && keys.Subject == id
	})
	if !ok {
		s.t.Fatalf("no %s about %s has arrived\n%s", kind, id, s.words)
	}
	return s.read(envelope)
}

// says has the asker say something, and waits for it.
func (s *stage) says(to adapters.Address, text string) arrival {
	s.t.Helper()
	s.needs(s.Say != nil, "way to say something")
	return s.arrives(event.KindMessage, s.Say(to, text).ID)
}

// asks has the asker begin a thread in a channel, and returns a post that answers.
func (s *stage) asks(channel, key string) adapters.Post {
	s.t.Helper()
	thread := s.says(adapters.Address{Channel: channel}, "a question").keys.Thread
	to, err := able[adapters.Sender](s).Address(thread)
	s.must(err)
	return adapters.Post{Key: key, Thread: thread, To: to, Text: "hello", Asker: s.Asker.ID, NotBefore: s.begun}
}

// send posts, which must succeed.
func (s *stage) send(post adapters.Post) (id string) {
	s.t.Helper()
	id, err := able[adapters.Sender](s).Send(s.ctx, post)
	s.must(err)
	return id
}

// shown is how our post stands there now; false where it does not.
func (s *stage) shown(to adapters.Address, id string) (Shown, bool) {
	for _, post := range s.Shown(to) {
		if post.ID == id {
			return post, true
		}
	}
	return Shown{}, false
}
