package ingest

import (
	"context"
	"errors"

	"parley/adapters"
	"parley/ingest/event"
	"parley/ingest/journal/envelopes"
	"parley/ingest/journal/record"
	"parley/ingest/journal/storage"
	"parley/ingest/work"
)

// accept makes an envelope durable. If nothing that takes time is needed to record its message, and its
// thread is idle, the message is recorded in the same transaction.
func (in *Ingest) accept(ctx context.Context, w *workspace, request envelopes.AcceptRequest) (result envelopes.AcceptResult, recorded bool, err error) {
	if entry, ok := in.promptEntry(ctx, w, &request); ok {
		result, err = in.Journal.Recorder.AcceptEntry(ctx, request, entry, func(made envelopes.AcceptResult, r record.Result) {
			in.Observer.Accepted(&request.Envelope, request.Keys.Thread)
			p := pendingOf(made, request.Envelope, request.Keys)
			in.recorded(w, in.Work.Adopt(made.Claim, made.At), &p, entry.Agent, r)
			if r.Pending > 0 {
				in.Work.Wake(work.Intake, "", made.Thread)
			}
			recorded = true
		})
		if err == nil || storage.Unavailable(err) {
			return result, err == nil && recorded, err
		}
		// intake handles an error of the message itself
	}
	result, err = in.Journal.Envelopes.Accept(ctx, request)
	return result, false, err
}

// promptEntry returns the record of a person's message, except for the envelope's row. It returns false for
// other events, and if the record would need the platform or the store. It leaves a payload that was sent
// before to intake: if the payload ends the process, intake counts that.
func (in *Ingest) promptEntry(ctx context.Context, w *workspace, request *envelopes.AcceptRequest) (entry record.Entry, ok bool) {
	envelope, keys := request.Envelope, &request.Keys
	if keys.Kind != event.KindMessage || keys.Result != nil || keys.Needs != "" || keys.Thread == "" || !request.Claim || envelope.Retried ||
		envelope.Transport == event.Backfilled || len(envelope.Body) > maxPayload || w.unintroduced() {
		return entry, false
	}
	ctx, cancel := context.WithCancel(ctx)
	cancel() // any call that would wait fails
	r := resolved{dedupe: keys.Dedupe, parent: keys.Channel.Parent}
	err := in.guard(func() (err error) {
		d := in.directory(ctx, w)
		names := &rememberedNames{Names: d.Names}
		d.Names = names
		r.Event, err = normalize(ctx, w, envelope, d)
		return errors.Join(err, names.err)
	})
	m := r.Message
	if err != nil || r.Kind != event.KindMessage || r.Ignored != "" || r.Reaction != nil || w.config.Quoted != nil && m != nil && m.ReplyTo != "" || m == nil ||
		m.Metadata.SenderType != event.Human || m.OwnKey != "" || m.Metadata.IsFromMe != nil || m.Channel.ID == "" || isAnnounced(m) {
		return entry, false
	}
	r.channel = m.Channel.ID
	g, err := in.judge(ctx, w, nil, task{Pending: envelopes.Pending{Envelope: envelope}}, &r) // only a copy by a proxy bot needs the claim
	if err != nil {
		return entry, false
	}
	return in.judged(w, keys.Thread, envelope, &r, g), true
}

// errForgotten means that a name is not in memory.
var errForgotten = errors.New("a name is not in memory")

// rememberedNames are the names of a directory that its memory has, if they are looked up with a context
// that has ended.
type rememberedNames struct {
	Names
	err error // a name was not known
}

// User implements adapters.Directory.
func (n *rememberedNames) User(ctx context.Context, id string) (adapters.User, bool) {
	user, known := n.Names.User(ctx, id)
	if !known {
		n.err = errForgotten
	}
	return user, known
}
