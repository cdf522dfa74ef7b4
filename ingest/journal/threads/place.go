package threads

import "parley/ingest/event"

// Place is a thread with its place on its platform.
type Place struct {
	Thread    int64
	ThreadKey event.ThreadKey
	ThreadID  string // the UUID by which agents know the thread
	Workspace string
	Platform  event.Platform
	Channel   string // empty if no payload has named it
	Parent    string // of the channel; see event.Channel
	// OpenedOn is the external id of the message of another thread on which the thread
	// was opened; empty for none.
	OpenedOn string
}

// dest is the scan target for the columns key, uuid, workspace, platform, channel, parent and opened_on.
func (p *Place) dest() []any {
	return []any{(*string)(&p.ThreadKey), &p.ThreadID, &p.Workspace, (*string)(&p.Platform), &p.Channel, &p.Parent, &p.OpenedOn}
}
