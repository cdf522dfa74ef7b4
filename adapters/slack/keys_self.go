package slack

import (
	"parley/adapters"
	"parley/ingest/event"
)

// SelfOf tells who we are as far as an envelope's body says it: a callback names the team
// and the bot user of an installation that may see its event, and the app. The
// body must be verified. Other fields are zero, and false means that it says
// nothing.
//
// A recording may hold the events of several teams and apps; who reads one must
// not take the team or the app from an envelope and judge the next by it.
func SelfOf(envelope event.Envelope) (event.Self, bool) {
	self := payloadOf(envelope).outer.self()
	return self, self != event.Self{}
}

func (o *wireOuter) self() event.Self {
	self := event.Self{AppID: o.APIAppID}
	if len(o.Authorizations) > 0 && o.Authorizations[0].IsBot {
		first := o.Authorizations[0]
		self.TeamID, self.UserID = first.TeamID, first.UserID
		if first.IsEnterpriseInstall {
			self.TeamID = firstOf(first.EnterpriseID, first.TeamID)
		}
	}
	return self
}

// self is who we are, filled in from the payload where facts do not know our user.
func (p *payload) self(facts adapters.Facts) event.Self {
	self := facts.Self()
	if self.UserID == "" {
		self.UserID = p.outer.self().UserID
	}
	return self
}

// isForeign says whether the event is another team's or app's. In a channel that
// teams share, the callback may name the team where the event arose; then an
// authorization names ours. An installation for a whole organisation is told by
// the organisation's id, or by our user: the team is one of many there.
func (p *payload) isForeign(self event.Self) bool {
	o := &p.outer
	if self.AppID != "" && o.APIAppID != "" && self.AppID != o.APIAppID {
		return true
	}
	if self.TeamID == "" || (o.TeamID == "" && len(o.Authorizations) == 0) {
		return false
	}
	for _, a := range o.Authorizations {
		whole := a.IsEnterpriseInstall && (same(a.EnterpriseID, self.TeamID) || same(a.EnterpriseID, self.EnterpriseID))
		if a.TeamID == self.TeamID || same(a.UserID, self.UserID) || whole {
			return false
		}
	}
	return o.TeamID != self.TeamID && o.ContextTeamID != self.TeamID && o.EnterpriseID != self.TeamID
}

// settled is the payload's end, if there is nothing to keep: the words of other
// teams are nobody's business here, readable or not.
func (p *payload) settled(self event.Self) *event.Fate {
	if p.isForeign(self) {
		return event.Ignore(event.ReasonOtherWorkspace)
	}
	return p.fate
}

// isOwn says whether we wrote the message.
func (m *wireMessage) isOwn(self event.Self) bool {
	return same(m.User, self.UserID) || same(m.BotID, self.BotID) ||
		(m.BotProfile != nil && same(m.BotProfile.AppID, self.AppID))
}

// same compares two ids; what is not known is like nothing.
func same(a, b string) bool { return a != "" && a == b }
