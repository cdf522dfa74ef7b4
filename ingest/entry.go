package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal/budgets"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/record"
	"parley/ingest/journal/storage"
	"parley/ingest/work"
)

// errNeedsSelf means that an envelope waits for the workspace's own identity.
var errNeedsSelf = errors.New("the workspace's own identity is not known yet")

// errBeingSent means that an envelope may be our own post, whose id is not known yet.
var errBeingSent = errors.New("a post of ours that looks like this is being sent")

// unreadableError is the error of an envelope that can never be read.
type unreadableError struct{ error }

// keys reads an envelope's keys. If the payload or another node's entry in the store
// contains our identity, it reads them again.
func (in *Ingest) keys(ctx context.Context, w *workspace, envelope *event.Envelope) (event.Keys, error) {
	d, before := in.directory(ctx, w), w.Self()
	keys := w.config.Normalizer.Keys(*envelope, d)
	envelope.Parsed = keys.Parsed
	if introduce := w.config.Introduce; introduce != nil && !event.IsOurs(envelope.Transport) {
		if told := introduce(*envelope, before); told != before { // otherwise another identity may be known by now
			if err := in.setSelf(ctx, w, told); err != nil {
				return keys, err
			}
		}
	}
	if keys.Needs != "" || w.unintroduced() {
		if err := in.readSelf(ctx, w); err != nil {
			return keys, err
		}
	}
	if w.Self() != before {
		keys = w.config.Normalizer.Keys(*envelope, d)
	}
	return keys, d.err
}

// resolved is the event of an envelope, as far as the payload and the store show it.
type resolved struct {
	event.Event
	dedupe  string // the envelope's dedupe key
	channel string // empty if no payload has named it
	parent  string // of the channel; see event.Channel
}

// entry returns the record of an envelope: it resolves the event, judges it, and builds the
// record. Its errors are unreadableError, errNeedsSelf, errBeingSent, or the store's.
func (in *Ingest) entry(ctx context.Context, w *workspace, c *work.Claim, t task) (entry record.Entry, err error) {
	r, err := in.resolve(ctx, w, c, t)
	if err != nil {
		return entry, err
	}
	if m := r.Message; r.Kind == event.KindMessage && m != nil && m.OwnKey == "" && is(m.Metadata.IsFromMe) {
		if sending, err := in.Journal.Outbox.IsSending(ctx, c.Thread, m); err != nil || sending {
			return entry, cmp.Or(err, errBeingSent)
		}
	}
	g, err := in.judge(ctx, w, c, t, &r)
	if err != nil {
		return entry, err
	}
	entry = in.judged(w, c.Key, t.Envelope, &r, g)
	entry.Envelope, entry.MessageUUID = t.ID, t.MessageUUID
	return entry, nil
}

// judged returns the record of an event of a thread whose gate is known.
func (in *Ingest) judged(w *workspace, thread event.ThreadKey, envelope event.Envelope, r *resolved, g gate) record.Entry {
	switch m := r.Message; {
	case m == nil:
	case m.RunID != "":
		g.Coalesce, g.CoalesceMax = 0, 0 // no other message joins its run
	}
	entry := record.Entry{
		Workspace: w.config.ID, Event: r.Event, Origin: originOf(envelope, g.asGiven()), Agent: g.Agent,
		Coalesce: g.Coalesce, CoalesceMax: g.CoalesceMax, Decide: g.decide,
		Over: func(m *event.Message, look record.Look, spent budgets.Budget) record.Decision {
			over := g
			over.over, over.ends = true, spent.Until
			return over.decide(m, look)
		},
		Begin: in.Work.Room(work.Turns, g.Agent, w.config.ID) && !w.behind(thread),
	}
	entry.Notice = func(t record.Tell) outbox.Notice { return in.told(w.at(thread, t.Message, t.Sender), g, t) }
	if m := r.Message; isAnnounced(m) {
		entry.Announce = in.Notices.Announce(w.at(thread, m.ExternalID, m.Metadata.SenderID), m)
	}
	return entry
}

// resolve reads the event of an envelope, and its channel from the store.
func (in *Ingest) resolve(ctx context.Context, w *workspace, c *work.Claim, t task) (r resolved, err error) {
	if t.keys == nil {
		keys, err := in.keys(ctx, w, &t.Envelope)
		if err != nil {
			return r, err
		}
		t.keys = &keys
	}
	if t.keys.Needs != "" && w.config.Facts == nil || w.unintroduced() {
		return r, errNeedsSelf
	}
	r.dedupe, r.parent = t.keys.Dedupe, t.keys.Channel.Parent
	if r.Event, err = in.normalize(ctx, w, t.Envelope); err != nil {
		return r, err
	}
	if r.Kind == event.KindMessage && r.Reaction != nil {
		if err := in.findQuoted(ctx, c, &r.Event); err != nil {
			return r, err
		}
	}
	if err := in.readQuoted(ctx, w, c, &r.Event); err != nil {
		return r, err
	}
	r.channel, err = in.channel(ctx, c, &r.Event)
	return r, err
}

// quotedTimeout bounds how long a message waits for the message that it answers.
const quotedTimeout = time.Second

// readQuoted reads a message that the event's message answers, if the payload has only its id and the journal does not know it,
// such as one from before Parley came.
func (in *Ingest) readQuoted(ctx context.Context, w *workspace, c *work.Claim, e *event.Event) error {
	m := e.Message
	if w.config.Quoted == nil || e.Kind != event.KindMessage || e.Ignored != "" || m == nil || m.ReplyTo == "" || m.Quoted != nil || w.rest.Now() {
		return nil
	}
	if known, err := in.Journal.Messages.Knows(ctx, w.config.ID, m.ReplyTo, true); err != nil || known {
		return err
	}
	reading, cancel := context.WithTimeout(ctx, quotedTimeout)
	defer cancel()
	envelope, err := w.config.Quoted.ReadQuoted(reading, m.ReplyTo)
	w.rest.Note(ctx, err)
	var found event.Event
	if err == nil {
		err = in.guard(func() (err error) {
			found, err = in.normalize(ctx, w, envelope)
			return err
		})
	}
	q := found.Message
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		in.Log.Warn("a message that another one answers cannot be read", "workspace", w.config.ID, "err", err)
		return nil
	case found.Ignored != "" || q == nil || q.Thread != c.Key:
		return nil
	}
	m.Quoted = &event.Quote{
		ExternalID: q.ExternalID, Name: q.Metadata.SenderDisplayName, MentionToken: q.Metadata.MentionToken, SenderID: q.Metadata.SenderID, Content: q.Content,
		Names: q.Names, Files: len(q.Attachments), Own: q.Own, SenderType: q.Metadata.SenderType, AltSenderID: q.AltSenderID, Attached: q.Attachments,
	}
	return nil
}

// quotedAge is the greatest age of a message to which a reaction in words can belong.
const quotedAge = 7 * 24 * time.Hour

// findQuoted makes a message whose words express a reaction a reaction, if the thread has the quoted
// message.
func (in *Ingest) findQuoted(ctx context.Context, c *work.Claim, e *event.Event) error {
	at := e.Message.SentAt
	if at.IsZero() {
		at = in.Now()
	}
	target, err := in.Journal.Outbox.Quoted(ctx, c.Thread, *e.Reaction.Quotes, at.Add(-quotedAge))
	if target == "" {
		e.Reaction = nil
		return err
	}
	e.Kind, e.Targets, e.Message = event.KindReaction, []string{target}, nil
	return err
}

// judge returns the gate of the event's channel. The journal asks the gate about messages
// when it records them. judge itself judges quotations, forwards and reactions. The age of a
// resubmitted envelope counts up to its resubmission, because its sender does not wait for the answer
// any more.
func (in *Ingest) judge(ctx context.Context, w *workspace, c *work.Claim, t task, r *resolved) (gate, error) {
	g := w.gate(event.Channel{ID: r.channel, Parent: r.parent})
	g.kind, g.server, g.arrived, g.now = r.Kind, r.Server, cmp.Or(t.Resubmitted, t.Envelope.ReceivedAt), in.Now
	if t.Envelope.Transport == event.Backfilled {
		g.Policy.MaxAge = g.lateAge(w.memory.since)
	}
	if r.Message != nil {
		if g.unproxy(r.Message) {
			if err := in.nameAuthor(ctx, c, r.Message); err != nil {
				return g, err
			}
		}
		in.throughApp(ctx, w, g, r.Message)
		g.learn(r.Message)
		g.hide(r.Message)
		switch agent, ok := askedAgent(r.Message); {
		case r.Message.Internal != nil:
			g.Agent = r.Message.Internal.Agent
		case r.Message.Answers != "" && ok: // an operator's answer to the agent of a workstream
			g.Agent = agent
		case r.Message.Injected != nil:
			if err := in.takeInjected(ctx, w, &g, r.Message); err != nil {
				return g, err
			}
		case !ok || g.Asks == nil:
		case g.Asks(agent):
			g.Agent = agent
		default:
			g.notForUs = true
		}
		if err := in.readAbove(ctx, w, &g, r.Message); err != nil {
			return g, err
		}
	}
	g.pause = in.Pauses.Of(w.config.ID, r.channel, r.parent, g.Agent)
	if r.Ignored != "" || r.Kind != event.KindReaction {
		return g, nil
	}
	if r.Reaction.IsFromMe != nil && *r.Reaction.IsFromMe && len(r.Targets) > 0 { // the owner of the account may have reacted, or we
		if ours, err := in.Journal.Outbox.Reacted(ctx, w.config.ID, r.Reaction.Emoji, r.Targets[0]); err != nil || ours {
			r.Ignored = event.ReasonOwnMessage
			return g, err
		}
	}
	return g, w.react(ctx, g, r)
}

// readAbove finds the thread of ours below whose first post a command stands, if the command is about the work there.
func (in *Ingest) readAbove(ctx context.Context, w *workspace, g *gate, m *event.Message) (err error) {
	if m.ReplyTo == "" {
		return nil
	}
	if command := g.command(m); command == record.CommandStop || command == record.CommandStatus {
		g.above, err = in.Notices.Above(ctx, w.config.ID, m.ReplyTo)
	}
	return err
}

// askedAgent returns the agent that a message names as its recipient.
func askedAgent(m *event.Message) (agent string, ok bool) {
	return strings.CutPrefix(m.Metadata.RecipientID, "bot:")
}

// normalize returns the event of an envelope. A message has complete metadata.
func (in *Ingest) normalize(ctx context.Context, w *workspace, envelope event.Envelope) (event.Event, error) {
	ctx, cancel := context.WithTimeout(ctx, normalizeTimeout)
	defer cancel()
	return normalize(ctx, w, envelope, in.directory(ctx, w))
}

func normalize(ctx context.Context, w *workspace, envelope event.Envelope, d *directory) (event.Event, error) {
	e, err := w.config.Normalizer.Normalize(ctx, envelope, d)
	if err == nil && e.Ignored == "" && e.Kind.MakesMessage() {
		if err = fmt.Errorf("the payload is a %s without a message", e.Kind); e.Message != nil {
			err = e.Message.Metadata.Validate()
		}
	}
	switch {
	case d.err != nil:
		return e, fmt.Errorf("read a channel's type: %w", d.err)
	case err != nil && !storage.Unavailable(err):
		return e, unreadableError{err}
	}
	return e, err
}

// channel returns the channel of an event: its message's, else its thread's.
func (in *Ingest) channel(ctx context.Context, c *work.Claim, e *event.Event) (string, error) {
	if e.Message != nil && e.Message.Channel.ID != "" {
		return e.Message.Channel.ID, nil
	}
	if e.Ignored != "" {
		return "", nil
	}
	channel, err := in.Journal.Threads.ThreadChannel(ctx, c.Thread)
	if e.Message != nil {
		e.Message.Channel.ID = channel
	}
	return channel, err
}
