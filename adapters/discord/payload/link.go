package payload

import (
	"net/url"
	"strings"

	"parley/adapters"
)

// MessageOf reads the link of a message, such as
// https://discord.com/channels/41771983423143937/127121515262115840/1267190211223752704, or its id. The place of a direct
// message is @me. It returns false for another text.
func MessageOf(ref string) (m adapters.MessageRef, ok bool) {
	m.ID = ref
	if link, err := url.Parse(ref); err == nil && link.Scheme == "https" {
		parts := strings.Split(strings.Trim(link.Path, "/"), "/")
		host := strings.TrimPrefix(strings.TrimPrefix(link.Hostname(), "ptb."), "canary.")
		if len(parts) != 4 || parts[0] != "channels" || host != "discord.com" && host != "discordapp.com" {
			return adapters.MessageRef{}, false
		}
		m.Channel, m.ID = parts[2], parts[3]
	}
	if !IsID(m.ID) || len(m.ID) < minID {
		return adapters.MessageRef{}, false
	}
	m.SentAt = TimeOf(m.ID)
	return m, true
}

// minID is the number of digits of the ids of Discord's first months.
const minID = 15
