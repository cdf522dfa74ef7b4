package payload

import (
	"cmp"
	"parley/adapters"
	"parley/ingest/event"
)

// SelfOf returns our identity, as far as an envelope's body names it. A callback names
// the app, and the team and bot user of an installation that may see the event. The
// other fields are zero. SelfOf returns false if the body names nothing. The body must
// be verified.
//
// A recording may contain the events of several teams and apps. A reader of a recording
// must not use the team or app of one envelope to judge the next one.
func SelfOf(envelope event.Envelope) (event.Self, bool) {
	self := Of(envelope).outer.self()
	return self, self != event.Self{}
}

func (o *wireOuter) self() event.Self {
	self := event.Self{AppID: o.APIAppID}
	if len(o.Authorizations) > 0 && o.Authorizations[0].isBot() {
		first := o.Authorizations[0]
		self.TeamID, self.UserID = first.TeamID, first.UserID
		if first.IsEnterpriseInstall {
			self.TeamID = FirstOf(first.EnterpriseID, first.TeamID)
		}
	}
	return self
}

func (a wireAuthorization) isBot() bool { return a.IsBot == nil || *a.IsBot }

// self returns our identity. It takes our user from the payload if facts do not know
// it.
func (p *Payload) self(facts adapters.Facts) event.Self {
	self := facts.Self()
	self.UserID = cmp.Or(self.UserID, p.outer.self().UserID)
	return self
}

// isForeign reports whether the event belongs to another team or app. In a channel that
// several teams share, the callback may name the team in which the event occurred; then
// an authorization names our team. An installation for a whole organisation is
// recognised by the organisation's id or by our user, because the team is only one of
// many.
func (p *Payload) isForeign(self event.Self) bool {
	o := &p.outer
	if self.AppID != "" && o.APIAppID != "" && self.AppID != o.APIAppID {
		return true
	}
	if self.TeamID == "" || (o.TeamID == "" && len(o.Authorizations) == 0) {
		return false
	}
	for _, a := range o.Authorizations {
		whole := a.IsEnterpriseInstall && (SameID(a.EnterpriseID, self.TeamID) || SameID(a.EnterpriseID, self.EnterpriseID))
		if a.TeamID == self.TeamID || SameID(a.UserID, self.UserID) || whole {
			return false
		}
	}
	return o.TeamID != self.TeamID && o.ContextTeamID != self.TeamID && o.EnterpriseID != self.TeamID
}

// earlyResult returns the payload's result if it needs no further processing. Parley
// ignores the messages of other teams, whether or not it can decode them.
func (p *Payload) earlyResult(self event.Self) *event.Result {
	if p.isForeign(self) {
		return event.Ignore(event.ReasonOtherWorkspace)
	}
	return p.result
}

// IsOwn reports whether our bot wrote the message.
func (m *Message) IsOwn(self event.Self) bool {
	return SameID(m.User, self.UserID) || SameID(m.BotID, self.BotID) ||
		(m.BotProfile != nil && SameID(m.BotProfile.AppID, self.AppID))
}
