package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"parley/adapters"
	"parley/ingest/event"
	"parley/ingest/wake"
)

const (
	// maxConnections is Slack's limit for the open connections of one app, on all its
	// nodes together.
	// https://docs.slack.dev/apis/events-api/using-socket-mode#connections
	maxConnections = 10
	// MaxSockets bounds Settings.Sockets. It leaves two connections for sockets that Slack
	// has asked us to replace.
	MaxSockets = maxConnections - 2
	// maxFrame bounds one frame, in bytes. Slack's frames have a few kilobytes.
	maxFrame = 1 << 20
	// lastRetry is the number of the retry after which Slack gives up an event.
	// https://docs.slack.dev/apis/events-api/#retries
	lastRetry = 3
	// warnEvery is the minimum time between two warnings.
	warnEvery = 10 * time.Second
)

// Times are the time limits of Socket Mode.
type Times struct {
	Open      time.Duration // the websocket's handshake
	Hello     time.Duration // Slack's hello, after the handshake
	Ping      time.Duration // between two pings of ours
	Silence   time.Duration // without anything from Slack, after which a socket is dead; Slack sends pings and answers ours
	Write     time.Duration // one frame of ours
	OrderWait time.Duration // maximum wait of a frame for its place in the order of the commits
	Flush     time.Duration // maximum wait of a new socket for the frames on their way over the old one
	Drain     time.Duration // from the hello of a socket's replacement until we close the socket
	CloseWait time.Duration // maximum wait for Slack's answer to our close

	MinAge                 time.Duration // age from which a socket is replaced at once; bounds the number of sockets a minute
	BackoffMin, BackoffMax time.Duration // maximum wait after the first failure, and after many
	DownAfter              time.Duration // time without a socket after which the workspace is down
	CountAgain             time.Duration // from a hello that counts connections of other programs until a socket is replaced to count them again
}

func defaultTimes() Times {
	return Times{
		Open: 10 * time.Second, Hello: 10 * time.Second, Ping: 10 * time.Second, Silence: 30 * time.Second,
		Write: 5 * time.Second, OrderWait: time.Second, Flush: time.Second, Drain: 10 * time.Second, CloseWait: time.Second,
		MinAge: 200 * time.Millisecond, BackoffMin: time.Second, BackoffMax: time.Minute, DownAfter: 30 * time.Second, CountAgain: 2 * time.Minute,
	}
}

// sockets keeps the configured number of sockets open. Each has a keeper.
type sockets struct {
	receiver   *Receiver
	times      Times
	accept     func(event.Envelope) error // calls the inbox; a stop does not cancel the call
	link       adapters.Link
	spares     chan struct{}  // holds a value for each connection that is open beside the configured ones
	placing    chan struct{}  // holds a value while a frame gets its place in the order of the commits
	goroutines sync.WaitGroup // the readers and pingers of the sockets, and the sockets that are being retired

	mu      sync.Mutex
	changed wake.Signal   // a field below has changed
	open    int           // sockets that are ready and have not ended
	gap     chan struct{} // nil without an unreported gap; closed when the gap is reported
	appID   string
	cause   error // of the last failure
	warned  time.Time
}

// RunSockets keeps sockets open until ctx ends or Slack refuses the credentials. When
// it returns, every durably accepted frame is acknowledged.
func (rc *Receiver) RunSockets(ctx context.Context, inbox adapters.Inbox, self event.Self, link adapters.Link) error {
	noting := notingInbox{inbox, rc}
	s := &sockets{
		receiver: rc, times: rc.Times, link: link,
		accept: func(e event.Envelope) (err error) {
			defer adapters.Recover(link.Log, &err)
			_, err = noting.Accept(context.WithoutCancel(ctx), e)
			return err
		},
		spares: make(chan struct{}, maxConnections-rc.settings.Sockets), placing: make(chan struct{}, 1),
		changed: wake.NewSignal(),
	}
	running, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var keepers sync.WaitGroup
	untilError := func(f func(context.Context) error) {
		keepers.Go(func() {
			if err := f(running); err != nil {
				stop(err)
			}
		})
	}
	untilError(func(ctx context.Context) error { return rc.watch(ctx, link) })
	for range rc.settings.Sockets {
		untilError(s.keep)
	}
	s.watch(running, self)
	keepers.Wait()
	s.goroutines.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return context.Cause(running)
}

// watch reports to the supervisor whether events can arrive, until ctx ends.
func (s *sockets) watch(ctx context.Context, self event.Self) {
	timer := time.NewTimer(s.times.DownAfter)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.changed:
		case <-timer.C:
			s.link.Down(s.downError())
			continue
		}
		s.mu.Lock()
		open, gap := s.open, s.gap
		if open == 0 {
			gap = nil // the next socket reports it
		} else {
			s.gap = nil
		}
		self.AppID = s.appID
		s.mu.Unlock()
		if gap != nil {
			s.link.Log.Info("slack's events can arrive", "sockets", open, "app", self.AppID)
			s.link.Up(self)
			close(gap)
		}
		if open > 0 {
			timer.Stop()
		} else {
			timer.Reset(s.times.DownAfter)
		}
	}
}

// downError returns the error for a workspace without an open socket; it wraps the last
// failure.
func (s *sockets) downError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cause == nil {
		return errors.New("no socket is open")
	}
	return fmt.Errorf("no socket is open: %w", s.cause)
}

// update changes fields that watch reads, and signals watch.
func (s *sockets) update(f func()) {
	s.mu.Lock()
	f()
	s.mu.Unlock()
	s.changed.Set()
}

// gapReportWait bounds the wait of a new socket's events for the report of the gap
// before them.
const gapReportWait = time.Second

// connected counts a socket over which events can arrive. If there was a gap, connected
// waits, at most for gapReportWait, until watch has reported it, so that the events of
// the socket come after the gap.
func (s *sockets) connected(appID string) {
	var gap chan struct{}
	s.update(func() {
		if appID != "" {
			s.appID = appID
		}
		if s.open == 0 {
			s.gap = cmp.Or(s.gap, make(chan struct{}))
			gap = s.gap
		}
		s.open++
	})
	if gap != nil {
		await(gap, gapReportWait)
	}
}

// countOthers reports how many of the app's connections are not ours. Those that we may have open are ours: Slack counts a connection
// before its hello. https://docs.slack.dev/apis/events-api/using-socket-mode#hello
func (s *sockets) countOthers(connections int) int {
	others := max(0, connections-s.receiver.settings.Sockets-len(s.spares))
	if s.link.Others != nil {
		s.link.Others(others)
	}
	return others
}

// warn stores the error for downError, and logs it as a warning. If the last warning is more
// recent than warnEvery, it logs at debug level instead.
func (s *sockets) warn(message string, err error, args ...any) {
	now, log := time.Now(), s.link.Log.Debug
	s.mu.Lock()
	s.cause = err
	if now.Sub(s.warned) >= warnEvery {
		log, s.warned = s.link.Log.Warn, now
	}
	s.mu.Unlock()
	log(message, append(args, "err", err)...)
}
