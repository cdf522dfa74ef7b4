package send

import (
	"context"

	"github.com/slack-go/slack"

	"parley/adapters"
	"parley/adapters/emoji"
	"parley/adapters/slack/call"
	"parley/adapters/slack/payload"
)

// Emoji implements adapters.Reactor: Slack has names, also of the team's own emoji.
func (s *Sender) Emoji(given string) (string, bool) { return emoji.Name(given) }

// React implements adapters.Reactor.
// https://docs.slack.dev/reference/methods/reactions.add
func (s *Sender) React(ctx context.Context, sign adapters.Sign) error {
	channel, ts, err := payload.SplitID(sign.Message)
	if err != nil {
		return adapters.Permanently(err.Error())
	}
	err = s.client.API.AddReactionContext(ctx, sign.Text, slack.NewRefToMessage(channel, ts))
	if err != nil && call.Code(err) != "already_reacted" {
		return s.client.SendError("reactions.add", channel, err)
	}
	return nil
}
