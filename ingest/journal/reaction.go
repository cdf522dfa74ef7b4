package journal

import (
	"fmt"
	"slices"
	"strings"

	"parley/ingest/event"
)

// reaction puts an emoji on the target, or takes it away.
func (r *recording) reaction() error {
	known, err := oneMessage(r.tx, `workspace = ? AND external_id = ?`, r.Workspace, r.Event.Targets[0])
	if err == nil && known == nil {
		known, err = oneMessage(r.tx, `author = 'agent' AND run = (
			SELECT run FROM deliveries WHERE workspace = ? AND platform_id = ?)`, r.Workspace, r.Event.Targets[0])
	}
	if err != nil {
		return err
	}
	if known == nil {
		return r.unknown(event.ReasonUnknownMessage) // a post of ours that is no reply takes none
	}
	r.out.Message = known
	if !known.DeletedAt.IsZero() {
		r.ignore(event.ReasonDeleted)
		return nil
	}
	if r.isElsewhere(known) {
		return nil
	}
	if err := known.load(r.tx); err != nil {
		return err
	}
	reactions, changed := react(known.Reactions, *r.Event.Reaction)
	if !changed {
		r.ignore(event.ReasonNoChange)
		return nil
	}
	known.Reactions = reactions
	column, err := pack(reactions, len(reactions) == 0)
	if err != nil {
		return err
	}
	r.out.Reaction = r.Event.Reaction
	r.out.Fate = event.Fate{Disposition: event.Updated}
	if err := r.tx.Later(nil, nil, `UPDATE messages SET reactions = ? WHERE id = ?`, column, known.Row); err != nil {
		return err
	}
	return r.doing(known)
}

// doing stores the message that a reaction is, if the entry has one, beside what
// the reaction did to its target, which it quotes. Where policy keeps none, or it
// is there already, the reaction is what has been done.
func (r *recording) doing(target *Message) error {
	if r.Event.Message == nil {
		return nil
	}
	m := *r.Event.Message
	there, err := oneMessage(r.tx, `workspace = ? AND external_id = ?`, r.Workspace, m.ExternalID)
	if err != nil || there != nil {
		return err
	}
	if m.Quoted, err = quoteOf(target); err != nil {
		return err
	}
	seen, err := r.viewed(&m, nil)
	if err != nil {
		return err
	}
	decision, err := r.Decide(seen, r)
	if err != nil || decision.Ignore || decision.Note {
		return err
	}
	return r.insert(seen, decision)
}

// maxQuote bounds the words of a quotation that is made here, in bytes; a block
// shows fewer.
const maxQuote = 4 << 10

// quoteOf is a stored message as another one quotes it.
func quoteOf(m *Message) (*event.Quote, error) {
	q := &event.Quote{ExternalID: m.ExternalID, SenderID: m.SenderID, Content: m.Content, Files: int(m.files), Own: m.Author == ByAgent}
	if len(q.Content) > maxQuote {
		q.Content = strings.ToValidUTF8(q.Content[:maxQuote], "")
	}
	if q.Own {
		return q, nil
	}
	metadata, err := event.ReadMetadata(m.Metadata)
	if err != nil {
		return nil, fmt.Errorf("message %d: metadata: %w", m.Row, err)
	}
	q.Name, q.MentionToken = metadata.SenderDisplayName, metadata.MentionToken
	return q, nil
}

// maxReactions bounds what one message keeps.
const maxReactions = 1000

// react applies one reaction to a list, and says whether that changed it.
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
