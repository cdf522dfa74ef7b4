package read

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/slack-go/slack"

	"parley/adapters"
	"parley/adapters/slack/call"
	"parley/adapters/slack/payload"
	"parley/ingest/event"
)

// LookupUser calls users.info. The returned name is the one that Slack shows: the
// display name, else the full name, else the handle.
func (r *Reader) LookupUser(ctx context.Context, id string) (adapters.User, error) {
	user, err := r.client.API.GetUserInfoContext(ctx, id)
	if answer, ok := errors.AsType[slack.SlackErrorResponse](err); ok && answer.Err == "user_not_found" {
		err = fmt.Errorf("%w: %w", err, adapters.ErrNoName)
	}
	if err != nil {
		return adapters.User{}, fmt.Errorf("look up slack user %s: %w", id, err)
	}
	name := payload.FirstOf(user.Profile.DisplayName, user.Profile.RealName, user.RealName, user.Name)
	return adapters.User{DisplayName: event.Text(name), IsBot: user.IsBot || user.ID == payload.Slackbot}, nil
}

// LookupMention returns the name of a channel, from conversations.info. People who see a message need not see
// a private channel that it names, unless they are in it.
func (r *Reader) LookupMention(ctx context.Context, in, token string) (string, error) {
	id := strings.TrimSuffix(strings.TrimPrefix(token, "<#"), ">")
	var answer struct {
		call.Answer
		Channel wireConversation `json:"channel"`
	}
	err := adapters.ErrNoName
	if strings.HasPrefix(token, "<#") && payload.IsID(id) {
		err = r.client.Ask(ctx, "conversations.info", url.Values{"channel": {id}}, &answer)
	}
	isOpen := answer.Channel.kind() == "channel" || id == in
	if err == nil && (!isOpen || answer.Channel.Name == "") || call.Code(err) == "channel_not_found" {
		err = adapters.ErrNoName
	}
	if err != nil {
		return "", fmt.Errorf("look up slack channel %s: %w", id, err)
	}
	return event.Text(answer.Channel.Name), nil
}

// LookupPlace returns the names of the team and of a channel with its topic, from conversations.info. Direct messages have no name
// that a person has given.
func (r *Reader) LookupPlace(ctx context.Context, channel string) (event.Place, error) {
	team, err := r.client.TeamName(ctx)
	if err != nil {
		return event.Place{}, err
	}
	place := event.Place{Workspace: event.Text(team)}
	var answer struct {
		call.Answer
		Channel wireConversation `json:"channel"`
	}
	switch err = r.client.Ask(ctx, "conversations.info", url.Values{"channel": {channel}}, &answer); {
	case call.Code(err) == "channel_not_found" || call.Code(err) == "missing_scope":
		return place, nil
	case err != nil:
		return event.Place{}, fmt.Errorf("look up slack channel %s: %w", channel, err)
	}
	if c := answer.Channel; !c.IsIM && !c.IsMPIM {
		place.Channel, place.Topic = event.Text(c.Name), payload.TopicOf(c.Topic.Value)
	}
	return place, nil
}
