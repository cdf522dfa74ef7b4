package backfill

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"parley/adapters"
	"parley/ingest/event"
	"parley/ingest/journal/storage"
	"parley/ingest/wake"
)

const (
	// recentThreads bounds the threads of one channel that are read although the channel's
	// pages do not show whether they have missed messages.
	recentThreads = 50
	// channelsAtATime bounds the channels that are read at the same time: the answers to missed messages
	// need not wait for a call for each other channel.
	channelsAtATime = 4
	// acceptPause is the wait before a refused message is offered again. acceptTries
	// bounds the attempts if the store works.
	acceptPause, acceptTries = time.Second, 3
)

// background reads the gaps whenever gaps may exist. One node does it at a time.
func (w *Workspace) background(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.wake.read:
			_ = w.Lease.While(ctx, func(ctx context.Context) error {
				w.retry(ctx, "read missed messages", w.wake.read, w.round)
				return nil
			})
		}
	}
}

// channelRead is the reading of one channel's gap.
type channelRead struct {
	gap      event.Gap
	messages tally
	threads  []event.ThreadKey // that are still to be read
}

// round reads each gap once, earliest begin first, and several channels at a time. Each thread needs a
// call of its own, so one goroutine reads the threads of the channels that others have read. A channel
// that fails does not stop the others; its error is part of the result.
func (w *Workspace) round(ctx context.Context) error {
	if err := w.refresh(ctx); err != nil {
		return err
	}
	w.mu.Lock()
	gaps := slices.SortedFunc(maps.Values(w.stored), func(a, b event.Gap) int {
		return cmp.Or(a.From.Compare(b.From), cmp.Compare(a.Channel, b.Channel))
	})
	w.mu.Unlock()
	channels, read := make(chan event.Gap, len(gaps)), make(chan *channelRead, len(gaps))
	for _, gap := range gaps {
		channels <- gap
	}
	close(channels)
	var failed failures
	var readers, threads sync.WaitGroup
	threads.Go(func() {
		for c := range read {
			err := w.readThreads(ctx, c)
			if err == nil {
				err = w.Store.CloseGap(ctx, w.ID, c.gap, clockLag)
			}
			failed.add(err)
		}
	})
	for range min(channelsAtATime, len(gaps)) {
		readers.Go(func() {
			for gap := range channels {
				if ctx.Err() == nil {
					failed.add(w.readGap(ctx, gap, read))
				}
			}
		})
	}
	readers.Wait()
	close(read)
	threads.Wait()
	return errors.Join(failed.all, w.refresh(ctx))
}

// failures joins errors of several goroutines.
type failures struct {
	mu  sync.Mutex
	all error
}

func (f *failures) add(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = errors.Join(f.all, err)
}

// readGap reads the gap of a channel, and closes it if no threads are left to be read; else it passes
// the rest on.
func (w *Workspace) readGap(ctx context.Context, gap event.Gap, rest chan<- *channelRead) error {
	c := &channelRead{gap: gap}
	if err := w.unlessRefused(w.readChannel(ctx, c), "channel", gap.Channel); err != nil {
		return err
	}
	if len(c.threads) > 0 {
		rest <- c
		return nil
	}
	return w.Store.CloseGap(ctx, w.ID, gap, clockLag)
}

// unlessRefused logs a refusal that only the operator can resolve, and returns every
// other error.
func (w *Workspace) unlessRefused(err error, args ...any) error {
	var refused *adapters.RefusedError
	if !errors.As(err, &refused) {
		return err
	}
	w.Log.Warn("missed messages cannot be read", append(args, "err", refused.Err, "hint", refused.Hint)...)
	return nil
}

// readChannel reads the messages of a channel's gap that are outside of threads.
func (w *Workspace) readChannel(ctx context.Context, c *channelRead) (err error) {
	channel := c.gap.Channel
	defer adapters.Recover(w.Log, &err, "channel", channel)
	config, reach := w.Config(), w.reach(c.gap)
	if config.MaxAge == 0 || reach.From.After(c.gap.Until) {
		return nil
	}
	found, err := w.Platform.ReadChannel(ctx, adapters.Reading{
		Gap: reach, Messages: config.Messages,
		Hand: func(thread event.ThreadKey, list []adapters.Missed) error {
			return w.once(ctx, thread, c.gap, func(*threadRead) error { return w.hand(ctx, list, &c.messages) })
		},
	})
	if err != nil {
		return err
	}
	recent, err := w.Store.RecentThreads(ctx, w.ID, channel, reach.From.Add(-config.MaxAge), recentThreads)
	if err != nil {
		return err
	}
	c.threads = w.newestFirst(c.gap, reach, slices.Concat(found.Threads, recent))
	w.Log.Info("missed messages of a channel are read", "channel", channel, "messages", c.messages.stored.Load(), "known", c.messages.known.Load(), "cut", found.Cut)
	return nil
}

// readThreads reads the threads of a channel's gap, until it has as many messages as
// configured.
func (w *Workspace) readThreads(ctx context.Context, c *channelRead) error {
	var failures []error
	for i, thread := range c.threads {
		if c.messages.stored.Load() >= int64(w.Config().Messages) {
			w.Log.Info("a channel has more missed messages than catch_up.messages", "channel", c.gap.Channel, "unread_threads", len(c.threads)-i)
			break
		}
		err := w.once(ctx, thread, c.gap, func(r *threadRead) error { return w.readThread(ctx, r, &c.messages) })
		if failures = append(failures, w.unlessRefused(err, "thread", thread)); ctx.Err() != nil {
			break
		}
	}
	return errors.Join(append(failures, ctx.Err())...)
}

// newestFirst returns the threads that need a ReadThread, each once.
func (w *Workspace) newestFirst(gap, reach event.Gap, threads []event.ThreadKey) []event.ThreadKey {
	w.mu.Lock()
	defer w.mu.Unlock()
	began := map[event.ThreadKey]time.Time{}
	for _, thread := range threads {
		_, at, ok := w.Platform.Began(thread)
		if ok && !at.IsZero() && !at.After(reach.Until) && !w.threads[thread].succeeded(gap) {
			began[thread] = at
		}
	}
	return slices.SortedFunc(maps.Keys(began), func(a, b event.ThreadKey) int {
		return cmp.Or(began[b].Compare(began[a]), cmp.Compare(a, b))
	})
}

// once reads a thread, unless it was read already. A turn of the thread then needs no
// read of its own. If a turn is reading it, that read counts.
func (w *Workspace) once(ctx context.Context, thread event.ThreadKey, gap event.Gap, read func(*threadRead) error) error {
	for {
		w.mu.Lock()
		r := w.threads[thread]
		mine := r == nil || r.ended && !r.succeeded(gap)
		if mine {
			r = w.newRead(thread, gap)
		}
		w.mu.Unlock()
		if mine {
			return w.end(r, read(r))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-r.done:
		}
		if r.succeeded(gap) {
			return nil
		}
	}
}

// tally counts the messages that were read: those that are new, and those that were stored before.
type tally struct{ stored, known atomic.Int64 }

// handBatch bounds the messages that are accepted together.
const handBatch = 100

// hand hands messages over and counts the new ones.
func (w *Workspace) hand(ctx context.Context, list []adapters.Missed, messages *tally) error {
	for batch := range slices.Chunk(list, handBatch) {
		errs := adapters.InOrder(ctx, len(batch), func(i int, placed func(), _ *event.Batch) error {
			return w.handOne(ctx, batch[i], placed, messages)
		})
		if err := cmp.Or(ctx.Err(), cmp.Or(errs...)); err != nil {
			return err
		}
	}
	return nil
}

// handOne hands a message over, and counts it if it is new. A known message may have been
// changed since. placed is called when the message has its place before the next ones.
func (w *Workspace) handOne(ctx context.Context, m adapters.Missed, placed func(), messages *tally) (err error) {
	defer adapters.Recover(w.Log, &err)
	known := true
	if m.New != nil {
		envelope := *m.New
		envelope.Queued = placed
		known, err = w.accept(ctx, envelope)
	}
	switch {
	case err != nil:
	case !known:
		messages.stored.Add(1)
	case m.Change != nil:
		messages.known.Add(1)
		_, err = w.accept(ctx, *m.Change)
	default:
		messages.known.Add(1)
	}
	return err
}

// accept offers an envelope until it is durable. An envelope that is refused although the
// store works is left out, so that it does not stop the others.
func (w *Workspace) accept(ctx context.Context, envelope event.Envelope) (known bool, err error) {
	for try := 1; ; try++ {
		receipt, err := w.Inbox.Accept(ctx, envelope)
		switch {
		case err == nil:
			return receipt.Duplicate, nil
		case ctx.Err() != nil:
			return false, ctx.Err()
		case try >= acceptTries && err != adapters.ErrBusy && !storage.Unavailable(err):
			w.Log.Error("a missed message cannot be stored", "err", err)
			return true, nil
		}
		wake.After(ctx, acceptPause)
	}
}
