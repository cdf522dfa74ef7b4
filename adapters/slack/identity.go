package slack

import (
	"parley/adapters"
	"parley/ingest/event"
)

// Keys reads the values that the durable accept needs. A stored identity may be that of earlier
// credentials, so an event waits until it is the one that Slack has confirmed for this adapter's.
func (a *Adapter) Keys(envelope event.Envelope, facts adapters.Facts) event.Keys {
	stored, confirmed := facts.Self(), a.Client.KnownSelf()
	if confirmed != nil && confirmed.TeamID == stored.TeamID && confirmed.UserID == stored.UserID {
		return a.Normalizer.Keys(envelope, facts)
	}
	keys := a.Normalizer.Keys(envelope, nameless{facts})
	if keys.Result == nil {
		keys.Needs = "user"
	}
	return keys
}

// nameless are facts without our identity.
type nameless struct{ adapters.Facts }

func (nameless) Self() event.Self { return event.Self{} }
