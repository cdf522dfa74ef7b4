package slack

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"time"

	"parley/adapters"
	"parley/ingest/event"
)

const (
	// maxSockets is how many one app may have open at a time, on all its machines.
	// https://docs.slack.dev/apis/events-api/using-socket-mode#connections
	maxSockets = 10
	// maxUnderWay is how many frames may wait for custody at a time, in a workspace.
	maxUnderWay = 64
	// maxFrame bounds one frame, in bytes; Slack's are a few kilobytes.
	maxFrame = 1 << 20
	// lastRetry is the repetition of an event after which Slack gives it up.
	// https://docs.slack.dev/apis/events-api/#retries
	lastRetry = 3
	// burst is how many sockets that end young are followed at once: to wait then may
	// be to miss something, and not to wait may be hundreds of sockets a minute.
	burst = 10
	// warnEvery is how often the log hears of trouble.
	warnEvery = 10 * time.Second
)

// socketTimes say how long each thing may take.
type socketTimes struct {
	open    time.Duration // the websocket's handshake
	hello   time.Duration // Slack's first word
	ping    time.Duration // between two pings of ours
	silence time.Duration // after which a socket is dead: Slack pings it, and answers our pings
	write   time.Duration // one frame of ours
	slot    time.Duration // that a frame waits for one of maxUnderWay
	lead    time.Duration // that a frame waits for the one before in its conversation
	catchUp time.Duration // that a new socket waits for what is on its way over the old one
	drain   time.Duration // from Slack's word that a socket shall go until we close it
	goodbye time.Duration // that Slack has to answer our closing it

	young            time.Duration // how old a socket must be for another one to follow it at once, any number of times
	pace             time.Duration // that another one waits at most, after burst young ones
	backMin, backMax time.Duration // what is waited at most after the first failure, and after many
	crowded          time.Duration // that is waited at least where there are too many sockets
	patience         time.Duration // after which a workspace without a socket is down
}

func defaultSocketTimes() socketTimes {
	return socketTimes{
		open: 10 * time.Second, hello: 10 * time.Second, ping: 10 * time.Second, silence: 30 * time.Second,
		write: 5 * time.Second, slot: 2 * time.Second, lead: time.Second, catchUp: time.Second, drain: 10 * time.Second, goodbye: time.Second,
		young: time.Second, pace: 500 * time.Millisecond, backMin: time.Second, backMax: time.Minute,
		crowded: 30 * time.Second, patience: 30 * time.Second,
	}
}

// sockets keeps the configured number of sockets open. Each has a keeper, which
// opens the next one before it gives up the one before where Slack says in time
// that it shall go.
type sockets struct {
	adapter *Adapter
	times   socketTimes
	accept  func(event.Envelope) error // the inbox's; the order to stop does not end it
	link    adapters.Link
	places  chan struct{} // taken by each socket, until its connection is closed
	slots   chan struct{} // taken by each frame under way
	order   order
	ending  sync.WaitGroup // the sockets that are being retired

	mu       sync.Mutex
	changed  chan struct{}   // has room for one signal that something below has changed
	open     int             // greeted and not ended
	retiring []*socket       // those that still serve beside their successors, as they came
	gaps     int             // times that events could arrive, after they could not
	untold   []chan struct{} // of the gaps that nobody was told of; closed then
	stopped  bool            // nobody is told of any more
	lost     bool            // Slack has given up an event that we could not take
	appID    string
	cause    error     // of the last trouble
	until    time.Time // nobody may ask for a socket before
	warned   time.Time
	silent   int // warnings since then
}

// runSockets keeps sockets open until ctx ends or Slack refuses us. Nothing that
// was taken over is left unacknowledged when it returns.
func (a *Adapter) runSockets(ctx context.Context, inbox adapters.Inbox, self event.Self, link adapters.Link) error {
	s := &sockets{
		adapter: a, times: a.times, link: link,
		accept: func(e event.Envelope) error {
			_, err := inbox.Accept(context.WithoutCancel(ctx), e)
			return err
		},
		places: make(chan struct{}, maxSockets), slots: make(chan struct{}, maxUnderWay), changed: make(chan struct{}, 1),
	}
	running, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var keepers sync.WaitGroup
	for range a.config.Sockets {
		keepers.Go(func() {
			if err := guarded(func() error { return s.keep(running) }); err != nil {
				stop(err)
			}
		})
	}
	s.watch(running, self)
	keepers.Wait()
	s.ending.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return context.Cause(running)
}

// panicError is a panic that was caught.
type panicError struct {
	value any
	stack []byte
}

// Error gives the panic's words, and where it was.
func (e *panicError) Error() string { return fmt.Sprintf("panic: %v\n%s", e.value, e.stack) }

// guarded makes a panic of f an error.
func guarded(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &panicError{p, debug.Stack()}
		}
	}()
	return f()
}

// watch tells who runs us whether events can arrive, until ctx ends.
func (s *sockets) watch(ctx context.Context, self event.Self) {
	patience := time.NewTimer(s.times.patience)
	defer patience.Stop()
	defer s.deaf()
	seen, waiting := 0, true
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.changed:
		case <-patience.C:
			s.link.Down(s.why())
		}
		s.mu.Lock()
		open, gaps, untold := s.open, s.gaps, s.untold
		s.untold = nil
		self.AppID = s.appID
		s.mu.Unlock()
		if gaps != seen {
			seen = gaps
			s.link.Log.Info("slack's events arrive", "sockets", open, "app", self.AppID)
			s.link.Up(self)
		}
		tell(untold)
		switch {
		case open > 0:
			patience.Stop()
			waiting = false
		case !waiting:
			patience.Reset(s.times.patience)
			waiting = true
		}
	}
}

func tell(untold []chan struct{}) {
	for _, told := range untold {
		close(told)
	}
}

// deaf says that nobody is told of gaps any more.
func (s *sockets) deaf() {
	s.mu.Lock()
	defer s.mu.Unlock()
	tell(s.untold)
	s.untold, s.stopped = nil, true
}

// why is the last trouble, for who asks why nothing is open.
func (s *sockets) why() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cause == nil {
		return errors.New("no socket is open")
	}
	return fmt.Errorf("no socket is open: %w", s.cause)
}

// change changes what watch looks at.
func (s *sockets) change(f func()) {
	s.mu.Lock()
	f()
	s.mu.Unlock()
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// toldWithin is how long an event waits until it is told that those before it may
// have been missed.
const toldWithin = time.Second

// greeted counts a socket that events can arrive over. It returns once it is told
// that there was a gap, if there was one: what arrives then comes after the gap.
func (s *sockets) greeted(appID string) {
	var told chan struct{}
	s.change(func() {
		if appID != "" {
			s.appID = appID
		}
		if s.open == 0 {
			s.gaps++
		}
		if s.open == 0 && !s.stopped {
			told = make(chan struct{})
			s.untold = append(s.untold, told)
		}
		s.open++
	})
	if told == nil {
		return
	}
	select {
	case <-told:
	case <-time.After(toldWithin):
	}
}

func (s *sockets) ended() { s.change(func() { s.open-- }) }

// trouble keeps the error for who asks why nothing is open, and warns of it.
func (s *sockets) trouble(what string, err error, args ...any) {
	s.mu.Lock()
	s.cause = err
	s.mu.Unlock()
	s.warn(what, append(args, "err", err)...)
}

// warn logs a warning, unless there was one a moment ago: then only who debugs
// reads it.
func (s *sockets) warn(what string, args ...any) {
	now := time.Now()
	s.mu.Lock()
	quiet := now.Sub(s.warned) < warnEvery
	if quiet {
		s.silent++
	}
	silent := s.silent
	if !quiet {
		s.warned, s.silent = now, 0
	}
	s.mu.Unlock()
	if quiet {
		s.link.Log.Debug(what, args...)
	} else {
		s.link.Log.Warn(what, append(args, "others", silent)...)
	}
}

// pause waits, and returns early with false when ctx ends.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// upTo is a random duration, so that those who failed together do not come back
// together.
func upTo(most time.Duration) time.Duration { return rand.N(max(most, 1)) }
