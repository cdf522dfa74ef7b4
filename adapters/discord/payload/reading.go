package payload

import (
	"parley/ingest/event"
)

// Place returns the server and the channel of the event; both are empty if it has none.
func (p *Payload) Place() (guild, channel string) { return p.guild, p.channel.ID }

// Target returns the channel and the first message that the payload creates, changes or refers to. It
// returns false for a faulty payload, and for one about no message.
func (p *Payload) Target() (channel, message string, ok bool) {
	if p.err != nil || len(p.targets) == 0 {
		return "", "", false
	}
	return p.channel.ID, p.targets[0], true
}

// OwnPost returns the nonce and the id of the message that the payload brings, if the message is ours.
func (p *Payload) OwnPost(self event.Self) (nonce, id string, ok bool) {
	if p.kind != event.KindMessage || p.message == nil || !p.message.author.is(self) {
		return "", "", false
	}
	return p.message.nonce, p.message.id, true
}

// DirectChannel returns the channel of a direct message that the payload brings; empty for any other
// payload.
func (p *Payload) DirectChannel() string {
	if p.kind != event.KindMessage || p.err != nil || p.guild != "" {
		return ""
	}
	return p.channel.ID
}
