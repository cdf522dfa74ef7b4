package send

import (
	"context"
	"net/http"
	"regexp"
	"strings"

	"parley/adapters"
	"parley/adapters/discord/payload"
	"parley/adapters/emoji"
)

// customEmoji is an emoji of a server's own, as messages have it.
var customEmoji = regexp.MustCompile(`^<?a?:?([A-Za-z0-9_]{2,32}:[0-9]{15,21})>?$`)

// Emoji implements adapters.Reactor: Discord has the emoji themselves, and a server's own as name:id.
func (s *Sender) Emoji(given string) (string, bool) {
	if found := customEmoji.FindStringSubmatch(strings.TrimSpace(given)); found != nil {
		return found[1], true
	}
	return emoji.Picture(given)
}

// React implements adapters.Reactor.
// https://docs.discord.com/developers/resources/message#create-reaction
func (s *Sender) React(ctx context.Context, sign adapters.Sign) error {
	if !payload.IsID(sign.Message) {
		return adapters.Permanently("Discord has no message that can get the reaction")
	}
	return s.react(ctx, http.MethodPut, sign, sign.Text)
}
