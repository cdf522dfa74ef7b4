package ingest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal"
)

// Gaps knows where a workspace's earlier messages are still to be read, and hears
// what will have to be read; adapters.CatchUp is one. Both are called concurrently.
type Gaps interface {
	// Aside says whether what comes in at a place is to be kept aside, until done is called.
	Aside(place string) (done func(), aside bool)
	// Refused says that custody was refused.
	Refused()
}

const (
	// asideBatch is how many envelopes are let in at once.
	asideBatch = 100
	// asideMost is how long something may be kept aside. Whoever keeps it lets it in
	// long before, if it lives.
	asideMost = 30 * time.Second
)

// aside keeps a message out of its thread where what was said before it is still to
// be read; ok is false where there is no need, as for one that begins a thread.
func (w *workspace) aside(ctx context.Context, a journal.Acceptance) (custody journal.Custody, ok bool, err error) {
	if w.config.Gaps == nil || a.Keys.Kind != event.KindMessage || a.Keys.Opens || a.Keys.Settled != nil || a.Envelope.Transport == event.CatchUp {
		return custody, false, nil
	}
	done, ok := w.config.Gaps.Aside(a.Keys.Channel.ID)
	if !ok {
		return custody, false, nil
	}
	defer done()
	custody, err = w.journal.PutAside(ctx, a)
	return custody, true, err
}

// misses notes that an envelope was refused custody: the platform may give it up.
// What was caught up with is handed over again.
func (w *workspace) misses(envelope event.Envelope) {
	if w.config.Gaps != nil && envelope.Transport != event.CatchUp {
		w.config.Gaps.Refused()
	}
}

// Release lets in what was kept aside in a workspace's channels, those that which
// names: what was said there before is in custody by now.
func (in *Ingest) Release(ctx context.Context, platform event.Platform, workspace string, which func(channel string) bool) error {
	w := in.workspace(platform, workspace)
	if w == nil {
		return nil
	}
	channels, err := in.journal.AsideChannels(ctx, w.id, time.Time{})
	if err != nil {
		return fmt.Errorf("look what was kept aside: %w", err)
	}
	for _, channel := range slices.DeleteFunc(channels, func(c string) bool { return !which(c) }) {
		if err := in.release(ctx, w, channel); err != nil {
			return fmt.Errorf("let in what was kept aside: %w", err)
		}
	}
	return nil
}

// forsaken lets in what another node has kept aside, and has ended since. What this
// node keeps aside itself is not its concern.
func (in *Ingest) forsaken(ctx context.Context, w *workspace) error {
	channels, err := in.journal.AsideChannels(ctx, w.id, in.now().Add(-asideMost))
	if err != nil {
		return err
	}
	for _, channel := range channels {
		if w.config.Gaps != nil {
			if done, aside := w.config.Gaps.Aside(channel); aside {
				done()
				continue
			}
		}
		if err := in.release(ctx, w, channel); err != nil {
			return err
		}
	}
	return nil
}

// release lets in what was kept aside in a channel, in the order in which it came.
// What was read from the platform meanwhile is known by its key.
func (in *Ingest) release(ctx context.Context, w *workspace, channel string) error {
	for {
		list, err := in.journal.AsideIn(ctx, w.id, channel, asideBatch)
		if err != nil || len(list) == 0 {
			return err
		}
		for _, kept := range list {
			t := task{Pending: journal.Pending{Envelope: kept.Envelope}}
			custody, err := in.custody(ctx, w, &t, false)
			if err != nil {
				return err
			}
			in.accepted(w, t, custody)
			if err := in.journal.DropAside(ctx, kept.ID); err != nil {
				return err
			}
		}
	}
}
