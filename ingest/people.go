package ingest

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

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
		if _, isGroup := groupIn(entry); isGroup {
			return false
		}
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
	return isPerson(m) && (len(list) == 0 || g.isOn(list, m.Metadata.SenderID) || g.isIn(GroupsIn(list), m.Metadata.SenderID))
}

// isListed reports whether a list of the policy names a person, or one of the person's groups, or whether an approver has admitted the person.
func (g gate) isListed(sender string) bool {
	p := g.Policy
	return g.isOn(p.AllowUsers, sender) || g.isAdmitted(sender) || g.isIn(p.AllowRoles, sender) || g.isIn(p.AllowGroups, sender)
}

// isIn reports whether a sender of the workspace's own platform is in one of some groups. If the platform does not
// answer, nobody is in a group.
func (g gate) isIn(groups []string, sender string) bool {
	id, own := strings.CutPrefix(sender, g.senders+":")
	if len(groups) == 0 || !own || g.people == nil || event.IsOperator(sender) {
		return false
	}
	return slices.ContainsFunc(g.people.groupsOf(id), func(group string) bool { return slices.Contains(groups, group) })
}

// members are the groups of the people whom a gate judges. A gate asks the platform once for each
// person, before the transaction.
type members struct {
	ask   func(user string) []string
	mu    sync.Mutex
	known map[string][]string // by user
}

// members returns the members of a gate whose workspace has groups; nil for none.
func (w *workspace) members() *members {
	if w.config.Groups == nil {
		return nil
	}
	return &members{known: map[string][]string{}, ask: func(user string) []string {
		ctx, cancel := context.WithTimeout(context.Background(), groupsTime)
		defer cancel()
		return w.config.Groups(ctx, user)
	}}
}

// groupsTime bounds the wait for the groups of a person.
const groupsTime = 2 * time.Second

func (p *members) groupsOf(user string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	groups, known := p.known[user]
	if !known {
		groups = p.ask(user)
		p.known[user] = groups
	}
	return groups
}

// learn notes the groups of a message's sender, by the payload or by the platform.
func (g gate) learn(m *event.Message) {
	if g.people == nil {
		return
	}
	id, own := strings.CutPrefix(m.Metadata.SenderID, g.senders+":")
	switch {
	case !own:
	case m.Groups != nil:
		g.people.mu.Lock()
		defer g.people.mu.Unlock()
		g.people.known[id] = m.Groups
	default:
		g.people.groupsOf(id)
	}
}

// isPerson reports whether a platform or a token proves that a person wrote a message.
func isPerson(m *event.Message) bool {
	return m.Metadata.SenderType == event.Human && !m.TextMessage && m.Injected == nil && m.Internal == nil
}
