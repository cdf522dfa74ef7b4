package slack

import (
	"encoding/json"
	"slices"

	"parley/ingest/event"
)

// readEdit reads a message_changed. Slack sends it for much that nobody did: an
// unfurled link, a reply counted, a broadcast reply's echo.
func (p *payload) readEdit(raw []byte, path string) *payload {
	p.kind = event.KindEdit
	var change wireChange
	f := fields{path: path, faults: unmarshal(raw, &change, path)}
	f.channel("channel", change.Channel)
	now := new(wireMessage)
	f.path += "message."
	f.faults = append(f.faults, unmarshal(change.Message, now, f.path)...)
	p.message, p.channel, p.channelType, p.ts = now, change.Channel, change.ChannelType, now.TS
	switch {
	case now.Subtype == "tombstone": // a thread's root goes, its replies stay
		p.kind, p.message = event.KindDelete, nil
		f.timestamp("ts", now.TS)
		return p.settle(&f)
	case isObject(change.Message) && !isWords(now):
		return p.ignore(event.ReasonSystemMessage)
	}
	f.message(now)
	before := change.before()
	if len(f.faults) == 0 && !changed(before, now) {
		return p.ignore(event.ReasonNoChange)
	}
	if p.revision = revision(before, now); p.revision == "" {
		f.path = path
		f.timestamp("ts", change.TS)
		p.revision = change.TS
	}
	return p.settle(&f)
}

// before is what the message was, as far as that can be read: it only serves to
// compare. Nil where the payload does not tell.
func (c *wireChange) before() *wireMessage {
	if !isObject(c.PreviousMessage) {
		return nil
	}
	before := new(wireMessage)
	_ = json.Unmarshal(c.PreviousMessage, before)
	return before
}

// changed says whether the words or files of a message are others than before.
// Where the payload does not say what was before, the time of the edit decides.
func changed(before, now *wireMessage) bool {
	if before == nil {
		return now.editedAt() != ""
	}
	return content(before) != content(now) || !slices.EqualFunc(before.Files, now.Files, func(a, b wireFile) bool {
		return a.ID == b.ID && a.Name == b.Name && a.Mode == b.Mode
	})
}

// revision is the time of the edit, which tells this state of a message from its
// others. It is empty where nobody edited it: Slack changes a message without
// that when a bot's words stream in, or a file is taken away.
func revision(before, now *wireMessage) string {
	if before != nil && before.editedAt() == now.editedAt() {
		return ""
	}
	return now.editedAt()
}

// editedAt is the time of the last edit; empty for none.
func (m *wireMessage) editedAt() string {
	if m.Edited == nil {
		return ""
	}
	return m.Edited.TS
}

func (p *payload) readDelete(raw []byte, path string) *payload {
	p.kind = event.KindDelete
	var change wireChange
	f := fields{path: path, faults: unmarshal(raw, &change, path)}
	p.channel, p.channelType, p.ts = change.Channel, change.ChannelType, change.DeletedTS
	f.channel("channel", p.channel)
	f.timestamp("deleted_ts", p.ts)
	return p.settle(&f)
}
