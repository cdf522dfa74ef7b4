package backfill_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/adapters"
	"parley/adapters/backfill"
	"parley/adapters/supervise"
	"parley/ingest/event"
	"parley/ingest/journal/storage"
)

// world is a platform with its history, a store and an inbox, with a workspace between
// them. A thread is named "<channel>:<second of the first message>", a conversation
// "<channel>". Seconds count from the start of the test.
type world struct {
	*testing.T
	*backfill.Workspace
	begun  time.Time
	config backfill.Config
	hook   bool // envelopes arrive at a hook alone
	late   bool // the platform shows messages late
	woken  chan event.ThreadKey
	stop   func()

	mu        sync.Mutex
	channels  []string
	said      map[event.ThreadKey][]int // seconds, by thread
	log       []string                  // reads and accepts, in order
	accepted  map[string]bool
	slow      map[string]time.Duration // duration of a read, by channel or thread
	broken    map[string]error         // by channel or thread
	bug       string                   // the channel or thread whose read panics, or "channels"
	busy      error                    // of Accept
	refused   string                   // a message that is never accepted
	watermark time.Time
	arrived   int // second of the last known arrival
	gaps      map[string]event.Gap
	storing   time.Duration // duration of each call of the store
	commit    time.Duration // duration of each Accept after the envelope has its place
	suspended time.Duration // by which the workspace's clock is ahead of its timers
	recent    []event.ThreadKey
}

var _ adapters.Backfiller = (*world)(nil)

// slowWorld is a world whose platform shows messages late.
type slowWorld struct{ *world }

// HistoryLag implements adapters.SlowHistory.
func (slowWorld) HistoryLag() time.Duration { return 5 * time.Second }

func (w *world) second(t time.Time) int { return int(t.Sub(w.begun) / time.Second) }

func (w *world) at(second int) time.Time { return w.begun.Add(time.Duration(second) * time.Second) }

// now is the clock of the workspace.
func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Add(w.suspended)
}

func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = append(w.log, fmt.Sprintf(format, args...))
}

// Channels implements adapters.Backfiller.
func (w *world) Channels(context.Context) ([]string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stumble("channels")
	return w.channels, w.broken["channels"]
}

// Began implements adapters.Backfiller.
func (w *world) Began(thread event.ThreadKey) (channel string, at time.Time, ok bool) {
	channel, second, inThread := strings.Cut(string(thread), ":")
	if inThread {
		n, _ := strconv.Atoi(second)
		at = w.at(n)
	}
	return channel, at, true
}

// stumble panics if what has a bug. The caller holds the lock.
func (w *world) stumble(what string) {
	if w.bug == what {
		panic("a bug in the adapter")
	}
}

func (w *world) read(ctx context.Context, what string, read adapters.Reading) error {
	urgent := "in the background"
	w.mu.Lock()
	slow, err := w.slow[what], w.broken[what]
	w.mu.Unlock()
	select {
	case <-read.Urgent:
		urgent = "urgently"
	default:
	}
	w.note("read %s %d to %d %s", what, w.second(read.Gap.From), w.second(read.Gap.Until), urgent)
	if slow > 0 { // see advance
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(slow):
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stumble(what)
	return err
}

func (w *world) missed(thread event.ThreadKey, gap event.Gap) (list []adapters.Missed) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, second := range w.said[thread] {
		var m adapters.Missed
		if at := w.at(second); !at.Before(gap.From) && !at.After(gap.Until) {
			m.New = &event.Envelope{Transport: event.Backfilled, Body: fmt.Appendf(nil, "%s/%d", thread, second)}
		}
		list = append(list, m)
	}
	return list
}

// ReadThread implements adapters.Backfiller.
func (w *world) ReadThread(ctx context.Context, thread event.ThreadKey, read adapters.Reading) error {
	if err := w.read(ctx, string(thread), read); err != nil {
		return err
	}
	return read.Hand(thread, w.missed(thread, read.Gap))
}

// ReadChannel implements adapters.Backfiller: a thread with one message has no replies.
func (w *world) ReadChannel(ctx context.Context, read adapters.Reading) (found adapters.Found, err error) {
	if err := w.read(ctx, read.Gap.Channel, read); err != nil {
		return found, err
	}
	err = read.Hand(event.ThreadKey(read.Gap.Channel), w.missed(event.ThreadKey(read.Gap.Channel), read.Gap))
	w.mu.Lock()
	said := maps.Clone(w.said)
	w.mu.Unlock()
	for _, thread := range slices.Sorted(maps.Keys(said)) {
		channel, at, _ := w.Began(thread)
		switch {
		case channel != read.Gap.Channel || at.Before(read.Gap.From):
		case len(said[thread]) == 1:
			err = errors.Join(err, read.Hand(thread, w.missed(thread, read.Gap)))
		default:
			found.Threads = append(found.Threads, thread)
		}
	}
	return found, err
}

// Accept implements adapters.Inbox.
func (w *world) Accept(_ context.Context, envelope event.Envelope) (adapters.Receipt, error) {
	receipt, err := w.take(envelope)
	if w.commit > 0 {
		if envelope.Queued != nil {
			envelope.Queued()
		}
		advance(w.commit)
	}
	return receipt, err
}

func (w *world) take(envelope event.Envelope) (adapters.Receipt, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	id := string(envelope.Body)
	switch {
	case w.busy != nil:
		return adapters.Receipt{}, w.busy
	case w.refused == id:
		return adapters.Receipt{}, errors.Join(adapters.ErrBusy, errors.New("the row is too long"))
	}
	known := w.accepted[id]
	w.accepted[id] = true
	if !known {
		w.log = append(w.log, "accept "+id)
	}
	return adapters.Receipt{Duplicate: known}, nil
}

// stores waits for the duration of a call of the store.
func (w *world) stores() {
	w.mu.Lock()
	storing := w.storing
	w.mu.Unlock()
	advance(storing)
}

// Gaps implements backfill.Store.
func (w *world) Gaps(_ context.Context, _ string, now time.Time) (time.Time, []event.Gap, error) {
	w.stores()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.watermark.After(now) {
		w.watermark = w.at(w.arrived)
	}
	for channel, gap := range w.gaps {
		if gap.From.After(now) {
			gap.From = w.at(w.arrived)
		}
		gap.Until = slices.MinFunc([]time.Time{gap.Until, now}, time.Time.Compare)
		w.gaps[channel] = gap
	}
	return w.watermark, slices.Collect(maps.Values(w.gaps)), nil
}

// OpenGaps implements backfill.Store.
func (w *world) OpenGaps(_ context.Context, _ string, gaps []event.Gap, watermark time.Time) error {
	w.stores()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.busy != nil {
		return w.busy
	}
	for _, gap := range gaps {
		gap.From, gap.Until = time.UnixMicro(gap.From.UnixMicro()), time.UnixMicro(gap.Until.UnixMicro())
		w.gaps[gap.Channel] = w.gaps[gap.Channel].Union(gap)
	}
	if watermark.After(w.watermark) {
		w.watermark = watermark
	}
	return nil
}

// CloseGap implements backfill.Store.
func (w *world) CloseGap(_ context.Context, _ string, read event.Gap, lag time.Duration) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	gap := w.gaps[read.Channel]
	switch {
	case gap.From.Before(read.From):
	case gap.Until.After(read.Until):
		if from := read.Until.Add(-lag); from.After(gap.From) {
			gap.From = from
		}
		w.gaps[read.Channel] = gap
	default:
		delete(w.gaps, read.Channel)
	}
	return nil
}

// RecentThreads implements backfill.Store.
func (w *world) RecentThreads(_ context.Context, _, channel string, _ time.Time, _ int) ([]event.ThreadKey, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(w.recent), func(t event.ThreadKey) bool { return !strings.HasPrefix(string(t), channel+":") }), nil
}

func (w *world) AcquireLease(context.Context, string, time.Duration) (bool, error) { return true, nil }

func (w *world) ReleaseLease(context.Context, string) error { return nil }

// inWorld runs a test in a bubble, in a workspace with the channels a and b that was last
// connected an hour ago. It is up at once, unless set changes that.
func inWorld(t *testing.T, set, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{
			T: t, begun: time.Now(), config: backfill.DefaultConfig(), woken: make(chan event.ThreadKey, 1000), channels: []string{"a", "b"},
			said: map[event.ThreadKey][]int{}, accepted: map[string]bool{}, slow: map[string]time.Duration{}, broken: map[string]error{}, gaps: map[string]event.Gap{},
		}
		w.watermark = w.at(-3600)
		if set != nil {
			set(w)
		}
		w.start()
		test(w)
		w.stop()
	})
}

// start starts the workspace, as a new process does.
func (w *world) start() {
	w.Helper()
	var err error
	var platform adapters.Backfiller = w
	if w.late {
		platform = slowWorld{w}
	}
	w.Workspace, err = backfill.New(w.Context(), backfill.Parts{
		ID: "acme", Platform: platform, HookOnly: w.hook, Inbox: w, Store: w, Lease: supervise.Lease{Store: w},
		Config: func() backfill.Config { return w.config }, Now: w.now, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		w.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.Context())
	var running sync.WaitGroup
	running.Go(func() { w.Workspace.Run(ctx) })
	w.stop = func() {
		cancel()
		running.Wait()
	}
}

// up connects the workspace.
func (w *world) up() {
	w.Helper()
	w.Up(w.Context())
	synctest.Wait()
}

// turn asks whether a thread's turn may begin, and returns the answer.
func (w *world) turn(thread event.ThreadKey) string {
	w.Helper()
	ready, gap := w.Ready(thread, func() { w.woken <- thread })
	switch {
	case !ready:
		return "waits"
	case gap:
		return "begins with a gap"
	}
	return "begins"
}

// begins waits until a thread's turn may begin. It returns how it begins, and after how long.
func (w *world) begins(thread event.ThreadKey) string {
	w.Helper()
	asked := time.Now()
	for {
		how := w.turn(thread)
		if how != "waits" {
			return fmt.Sprintf("%s after %v", how, time.Since(asked).Round(time.Second))
		}
		for <-w.woken != thread {
			continue
		}
	}
}

// history returns the reads and accepts since the last call.
func (w *world) history() []string {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	log := w.log
	w.log = nil
	return log
}

// open returns the stored gaps as texts.
func (w *world) open() (words []string) {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, channel := range slices.Sorted(maps.Keys(w.gaps)) {
		words = append(words, fmt.Sprintf("%s %d to %d", channel, w.second(w.gaps[channel].From), w.second(w.gaps[channel].Until)))
	}
	return words
}

// moved returns the second of the stored watermark.
func (w *world) moved() int {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.second(w.watermark)
}

// known returns the accepted messages.
func (w *world) known() []string {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.accepted))
}

// change changes the world under its lock.
func (w *world) change(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

func same[T any](t *world, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// advance moves the bubble's clock on by d. A timer that has expired already would do, but with
// the race detector two of them at the same moment crash Go 1.26.
func advance(d time.Duration) {
	if d > 0 {
		<-time.After(d)
	}
}

var errDown = fmt.Errorf("%w: the disk is full", storage.ErrUnavailable)
