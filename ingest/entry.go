package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"parley/ingest/event"
	"parley/ingest/journal"
)

// errNeedsSelf means that an envelope can't be judged before we know who we are.
var errNeedsSelf = errors.New("it is not known yet who we are")

// unreadableError is an envelope that nobody will ever be able to read.
type unreadableError struct{ err error }

// Error gives the cause's words, for the operator.
func (e *unreadableError) Error() string { return e.err.Error() }

// Unwrap gives the cause.
func (e *unreadableError) Unwrap() error { return e.err }

// entry makes of an envelope what can be recorded. Its errors are
// *unreadableError, errNeedsSelf, or the store's.
func (in *Ingest) entry(ctx context.Context, w *workspace, lease *journal.Lease, p task) (entry journal.Entry, err error) {
	keys, facts := p.keys, p.facts
	if facts == nil {
		if keys, facts, err = w.keys(ctx, p.Envelope); err != nil {
			return entry, err
		}
	}
	if keys.Needs != "" && w.config.Facts == nil {
		return entry, errNeedsSelf
	}
	e, err := w.normalize(ctx, p.Envelope, facts)
	if err != nil {
		return entry, &unreadableError{err}
	}
	if err := in.complete(ctx, w, &e); err != nil {
		return entry, err
	}
	channel, err := in.channel(ctx, lease, &e)
	if err != nil {
		return entry, err
	}
	settings := w.config.Settings(channel)
	g := gate{Settings: settings, kind: e.Kind, arrived: p.Envelope.ReceivedAt, now: in.now}
	if p.Envelope.Transport == event.CatchUp {
		g.Policy.MaxAge = settings.LateAge
	}
	if e.Ignored == "" && e.Kind == event.KindReaction {
		if e.Ignored = g.reaction(e.Reaction, channel, w.ownID()); e.Ignored == "" && settings.Policy.Reactions {
			if w.ownID() == "" && w.config.Facts == nil {
				return entry, errNeedsSelf // it may be ours
			}
			e.Message = w.doing(ctx, &e, keys.Dedupe, channel)
		}
	}
	if e.Ignored == "" && e.Viewing != nil {
		e.Ignored = g.refuses(e.Viewing.SenderID, channel, event.Human)
	}
	return journal.Entry{
		Envelope: p.ID, Workspace: w.id, Event: e, Origin: origin(p.Envelope), Agent: settings.Agent,
		Coalesce: settings.Coalesce, CoalesceMax: settings.CoalesceMax, Decide: g.decide,
		Begin: settings.Coalesce == 0 && in.desk.Soon(journal.Turns, settings.Agent),
	}, nil
}

// normalize says what an envelope means. A message has whole metadata.
func (w *workspace) normalize(ctx context.Context, envelope event.Envelope, f *facts) (event.Event, error) {
	ctx, cancel := context.WithTimeout(ctx, normalizeTimeout)
	defer cancel()
	e, err := w.config.Normalizer.Normalize(ctx, envelope, directory{f, w.config.Names})
	if err != nil || e.Ignored != "" || !e.Kind.MakesMessage() {
		return e, err
	}
	if e.Message == nil {
		return e, fmt.Errorf("the payload is a %s and holds no message", e.Kind)
	}
	return e, e.Message.Metadata.Validate()
}

// complete fills in who wrote an edited message, and where, as far as the edit's
// payload leaves it out: the stored message says.
func (in *Ingest) complete(ctx context.Context, w *workspace, e *event.Event) error {
	if e.Kind != event.KindEdit || e.Message == nil || len(e.Targets) == 0 {
		return nil
	}
	m := &e.Message.Metadata
	if m.SenderID != "" && m.ChannelExternalID != "" {
		return nil
	}
	raw, err := in.journal.StoredMetadata(ctx, w.id, e.Targets[0])
	if err != nil || raw == nil {
		return err
	}
	stored, err := event.ReadMetadata(raw)
	if err != nil {
		return fmt.Errorf("metadata of %s: %w", e.Targets[0], err)
	}
	if m.SenderID == "" {
		m.Source, m.SenderID, m.SenderDisplayName, m.SenderType = stored.Source, stored.SenderID, stored.SenderDisplayName, stored.SenderType
		m.MentionToken, m.IsFromMe = stored.MentionToken, stored.IsFromMe
	}
	m.ChannelExternalID = cmp.Or(m.ChannelExternalID, stored.ChannelExternalID)
	m.Edited()
	return nil
}

// channel is where an event happens: as its message says, else where its thread is.
func (in *Ingest) channel(ctx context.Context, lease *journal.Lease, e *event.Event) (string, error) {
	if e.Message != nil && e.Message.Channel.ID != "" {
		return e.Message.Channel.ID, nil
	}
	if e.Ignored != "" {
		return "", nil
	}
	channel, err := in.journal.ThreadChannel(ctx, lease.Thread)
	if e.Message != nil {
		e.Message.Channel.ID = channel
	}
	return channel, err
}

func origin(envelope event.Envelope) journal.Origin {
	switch {
	case envelope.Platform == event.Web:
		return journal.API
	case envelope.Transport == event.CatchUp:
		return journal.Late
	}
	return journal.Live
}
