package slack

import (
	"context"
	"fmt"

	"github.com/slack-go/slack"

	"parley/adapters"
	"parley/ingest/event"
)

// slackbot is a bot although users.info does not call it one.
const slackbot = "USLACKBOT"

// LookupUser asks users.info. The name is the one that Slack shows: what the
// user chose to be called, else the full name, else the handle.
func (a *Adapter) LookupUser(ctx context.Context, id string) (adapters.User, error) {
	user, err := a.api.GetUserInfoContext(ctx, id)
	if err != nil {
		return adapters.User{}, fmt.Errorf("look up slack user %s: %w", id, err)
	}
	name := firstOf(user.Profile.DisplayName, user.Profile.RealName, user.RealName, user.Name)
	return adapters.User{DisplayName: event.Text(name), IsBot: user.IsBot || user.ID == slackbot}, nil
}

// LookupChannel asks conversations.info for a channel's name, without the #. A
// direct message has none: its name is empty.
func (a *Adapter) LookupChannel(ctx context.Context, id string) (string, error) {
	channel, err := a.api.GetConversationInfoContext(ctx, &slack.GetConversationInfoInput{ChannelID: id})
	if err != nil {
		return "", fmt.Errorf("look up slack channel %s: %w", id, err)
	}
	return event.Text(channel.Name), nil
}
