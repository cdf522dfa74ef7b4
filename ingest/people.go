package ingest

import (
	"slices"
	"strings"

	"parley/ingest/event"
)

// isOn reports whether a list of people or bots has a sender, whose whole sender_id is compared. An entry without a
// namespace means a sender of the workspace's own platform. On a workspace of our own API, where callers choose their ids, an
// entry with a colon is a whole sender_id. No list is asked about operators: their role admits them, and a sender_id that a
// caller has chosen makes nobody one.
func (g gate) isOn(list []string, sender string) bool {
	if event.IsOperator(sender) {
		return false
	}
	return slices.ContainsFunc(list, func(entry string) bool {
		isWhole := g.API && strings.Contains(entry, ":")
		return entry == sender || !isWhole && g.senders+":"+entry == sender
	})
}

// admits reports whether a list admits a sender. A nil list admits everybody, an empty one nobody.
func (g gate) admits(list []string, sender string) bool { return list == nil || g.isOn(list, sender) }

// approves reports whether the sender of a message may answer approvals of an agent. Nobody speaks for an approver: a program
// cannot prove who its sender is, nor the telephone network.
func (g gate) approves(agent string, m *event.Message) bool {
	list := g.Approvers(agent)
	return isPerson(m) && (len(list) == 0 || g.isOn(list, m.Metadata.SenderID))
}

// isPerson reports whether a platform or a token proves that a person wrote a message.
func isPerson(m *event.Message) bool {
	return m.Metadata.SenderType == event.Human && !m.TextMessage && m.Injected == nil && m.Internal == nil
}
