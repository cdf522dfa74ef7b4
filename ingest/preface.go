package ingest

import (
	"context"
	"slices"
	"time"

	"parley/adapters"
	"parley/ingest/event"
	"parley/ingest/journal"
)

// prefaceTimeout is how long a turn waits for what was said before it.
const prefaceTimeout = 3 * time.Second

// Preface implements turn.Past: it stores what was said in a thread before the
// journal knew it, for the run that is the thread's first. Who would not be admitted
// with it is not stored.
func (in *Ingest) Preface(ctx context.Context, lease *journal.Lease, run *journal.Run, newest int) error {
	w := in.workspace(run.Platform, run.Workspace)
	if w == nil || w.config.Context == nil || len(run.Messages) == 0 {
		return nil
	}
	root, ok := w.config.Context.Root(run.ThreadKey)
	if !ok || slices.ContainsFunc(run.Messages, func(m journal.Message) bool { return m.ExternalID == root }) {
		return nil
	}
	settings := w.config.Settings(run.Channel)
	if !settings.Policy.PassiveMemory {
		return nil
	}
	known, err := in.journal.Knows(ctx, w.id, root, run.OpenedOn != "")
	if err != nil || known {
		return err
	}
	preface, list, err := in.before(ctx, w, gate{Settings: settings, kind: event.KindMessage, now: in.now}, run, newest)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		in.log.Warn("what was said in a thread before can't be read", "workspace", w.id, "err", err)
		preface.Gap = true
	}
	preface.Root = root
	return in.journal.SetPreface(ctx, lease, run, preface, list)
}

// before reads the thread's beginning, in time for the turn.
func (in *Ingest) before(ctx context.Context, w *workspace, g gate, run *journal.Run, newest int) (journal.Preface, []journal.Read, error) {
	ctx, cancel := context.WithTimeout(ctx, prefaceTimeout)
	defer cancel()
	before, err := w.config.Context.Before(ctx, run.ThreadKey, run.Messages[len(run.Messages)-1].ExternalID, newest)
	if err != nil {
		return journal.Preface{}, nil, err
	}
	return journal.Preface{Earlier: before.Earlier, Gap: before.Gap}, in.admitted(ctx, w, g, before), nil
}

// admitted are the messages of those who are admitted, and our own. One that can't
// be read is left out.
func (in *Ingest) admitted(ctx context.Context, w *workspace, g gate, before adapters.Before) (list []journal.Read) {
	for _, envelope := range before.Envelopes {
		var e event.Event
		err := guard(func() (err error) {
			e, err = w.normalize(ctx, envelope, &facts{workspace: w})
			return err
		})
		if err != nil {
			in.log.Warn("a message of a thread can't be read", "workspace", w.id, "err", err)
			continue
		}
		m := e.Message
		if e.Ignored != "" || m == nil || e.Kind != event.KindMessage {
			continue
		}
		read := journal.Read{Message: m, Metadata: g.metadata(m, passive(event.ReasonNoMention), event.AddressedNone)}
		switch {
		case m.Own:
			read.Agent = g.Agent
		case g.refuses(m.Metadata.SenderID, m.Channel.ID, m.Metadata.SenderType) != "":
			continue
		}
		list = append(list, read)
	}
	return list
}
