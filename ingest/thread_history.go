package ingest

import (
	"context"
	"slices"
	"time"

	"parley/adapters"
	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/record"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/threads"
)

// historyTimeout bounds how long a turn waits for the thread's earlier messages.
const historyTimeout = 3 * time.Second

// ReadHistory implements turn.History. It stores the messages of a thread from before the
// journal knew it, for the thread's first run. It stores nothing of refused senders. While the
// platform hangs it reads nothing, because each read would hold a slot of the agent.
func (in *Ingest) ReadHistory(ctx context.Context, claim *threads.Claim, run *runs.Run, newest int) error {
	w := in.workspace(run.Platform, run.Workspace)
	if w == nil || w.config.Context == nil || len(run.Messages) == 0 {
		return nil
	}
	root, ok := w.config.Context.Root(run.ThreadKey)
	if !ok || slices.ContainsFunc(run.Messages, func(m messages.Message) bool { return m.ExternalID == root }) {
		return nil
	}
	g := w.gate(event.Channel{ID: run.Channel, Parent: run.Parent})
	if !g.Policy.PassiveMemory {
		return nil
	}
	known, err := in.Journal.Messages.Knows(ctx, w.config.ID, root, run.OpenedOn != "")
	if err != nil || known {
		return err
	}
	reading, cancel := context.WithTimeout(ctx, historyTimeout)
	defer cancel()
	history := adapters.ThreadHistory{Gap: true}
	if !w.rest.Now() {
		read, err := w.config.Context.ReadHistory(reading, run.ThreadKey, run.Messages[len(run.Messages)-1].ExternalID, newest)
		w.rest.Note(ctx, err)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			in.Log.Warn("earlier messages of a thread cannot be read", "workspace", w.config.ID, "err", err)
		default:
			history = read
		}
	}
	g.kind, g.now = event.KindMessage, in.Now
	list := in.admitted(reading, w, g, history)
	return in.Journal.Recorder.SetThreadHistory(ctx, claim, run, runs.ThreadHistory{Earlier: history.Earlier, Gap: history.Gap, Root: root}, list)
}

// admitted returns the messages of admitted senders, and our own. It leaves out messages
// that cannot be read.
func (in *Ingest) admitted(ctx context.Context, w *workspace, g gate, history adapters.ThreadHistory) (list []record.Read) {
	for _, envelope := range history.Envelopes {
		var e event.Event
		err := in.guard(func() (err error) {
			e, err = in.normalize(ctx, w, envelope)
			return err
		})
		if err != nil {
			in.Log.Warn("a message of a thread cannot be read", "workspace", w.config.ID, "err", err)
			continue
		}
		m := e.Message
		if e.Ignored != "" || m == nil || e.Kind != event.KindMessage {
			continue
		}
		g.channel, g.server = m.Channel, e.Server
		g.unproxy(m)
		g.hide(m)
		read := record.Read{Message: m, Metadata: g.metadata(m, passive(event.ReasonNoMention), event.AddressedNone)}
		switch {
		case m.Own:
			read.Agent = g.Agent
		case g.refusesHere(senderOf(m), m.Channel) != "":
			continue
		}
		list = append(list, read)
	}
	return list
}
