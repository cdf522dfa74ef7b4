package record

import (
	"slices"
	"strings"

	"parley/ingest/event"
	"parley/ingest/journal/messages"
)

// reaction adds an emoji to the target, or removes it.
func (r *recordTx) reaction() {
	known := r.stored(r.Event.Targets[0])
	if known == nil {
		known = messages.ReplyOf(r.Txn, r.Workspace, r.Event.Targets[0])
	}
	if known == nil {
		r.unknown(event.ReasonUnknownMessage) // a post of ours that is no reply has no reactions
		return
	}
	if !r.mayChange(known) {
		return
	}
	messages.LoadFiles(r.Txn, known)
	reactions, changed := react(known.Reactions, *r.Event.Reaction)
	if !changed {
		r.ignore(event.ReasonNoChange)
		return
	}
	r.out.Reaction = r.Event.Reaction
	r.out.Result = event.Result{Disposition: event.Updated}
	r.recordReaction(known)
	known.AddEnvelope(r.Envelope) // a reaction that was typed repeats words of its target
	messages.SetReactions(r.Txn, known, reactions)
}

// recordReaction stores the message that a reaction makes, if the entry has one. The
// message quotes the reaction's target. If the policy stores no message, or it is stored
// already, the outcome is the change of the target alone.
func (r *recordTx) recordReaction(target *messages.Message) {
	if r.Event.Message == nil {
		return
	}
	m := *r.Event.Message
	if r.stored(m.ExternalID) != nil {
		return
	}
	m.Quoted = r.quote(target)
	if decision := r.decide(&m, nil); !decision.Ignore && !decision.Note {
		r.insert(&m, decision, 0)
	}
}

// maxQuote bounds the bytes of a quotation that is made here; a block shows fewer.
const maxQuote = 4 << 10

// quote returns a stored message as a quotation.
func (r *recordTx) quote(m *messages.Message) *event.Quote {
	q := &event.Quote{ExternalID: m.ExternalID, SenderID: m.SenderID, Content: m.Content, Files: int(m.FileCount), Own: m.Author == messages.ByAgent}
	if len(q.Content) > maxQuote {
		q.Content = strings.ToValidUTF8(q.Content[:maxQuote], "")
	}
	if q.Own {
		return q
	}
	metadata := messages.MetadataOf(r.Txn, m)
	q.Name, q.MentionToken = metadata.SenderDisplayName, metadata.MentionToken
	return q
}

// maxReactions bounds the reactions that one message keeps.
const maxReactions = 1000

// react applies one reaction to a list, and reports whether that changed it.
func react(list []event.Reaction, x event.Reaction) ([]event.Reaction, bool) {
	same := func(y event.Reaction) bool {
		if x.All {
			return x.Emoji == "" || y.Emoji == x.Emoji
		}
		return y.Emoji == x.Emoji && y.SenderID == x.SenderID && y.Part == x.Part
	}
	if x.Removed || x.All {
		left := slices.DeleteFunc(slices.Clone(list), same)
		return left, len(left) != len(list)
	}
	if slices.ContainsFunc(list, same) || len(list) >= maxReactions {
		return list, false
	}
	return append(slices.Clone(list), x), true
}
