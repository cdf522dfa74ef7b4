package read

import (
	"context"
	"net/url"

	"parley/adapters/slack/call"
	"parley/adapters/slack/payload"
	"parley/ingest/event"
)

const (
	// historyPage is the number of messages or channels that one call reads. Slack advises
	// at most 200.
	// https://docs.slack.dev/reference/methods/conversations.history#arguments
	historyPage = "200"
	// memberTypes are the kinds of channels that a bot can be in.
	// https://docs.slack.dev/reference/methods/users.conversations#arguments
	memberTypes = "public_channel,private_channel,mpim,im"
)

// wireConversation has a channel's name and the fields that define its type.
// https://docs.slack.dev/reference/objects/conversation-object
type wireConversation struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	IsIM      bool   `json:"is_im"`
	IsMPIM    bool   `json:"is_mpim"`
	IsPrivate bool   `json:"is_private"`
	Topic     struct {
		Value string `json:"value"`
	} `json:"topic"`
}

// kind returns the type in the terms of Slack's events.
func (c wireConversation) kind() string {
	switch {
	case c.IsIM:
		return "im"
	case c.IsMPIM:
		return "mpim"
	case c.IsPrivate:
		return "group"
	}
	return "channel"
}

// Channels returns the channels and conversations that have the bot as a member. It
// skips the kinds that the app may not list. If the app may list no kind, it returns a
// *adapters.RefusedError.
func (r *Reader) Channels(ctx context.Context) ([]string, error) {
	channels, err := r.members(ctx, memberTypes)
	if call.Code(err) != "missing_scope" {
		return channels, err
	}
	var denied error
	for _, kind := range [...]string{"public_channel", "private_channel", "mpim", "im"} {
		some, err := r.members(ctx, kind)
		switch {
		case call.Code(err) == "missing_scope":
			denied = err
		case err != nil:
			return nil, err
		}
		channels = append(channels, some...)
	}
	if len(channels) == 0 {
		return nil, denied
	}
	return channels, nil
}

func (r *Reader) members(ctx context.Context, kinds string) (channels []string, err error) {
	query := url.Values{"types": {kinds}, "exclude_archived": {"true"}, "limit": {historyPage}}
	err = eachPage(query, func() (next string, err error) {
		var page struct {
			call.Answer
			Channels []wireConversation `json:"channels"`
		}
		if err := r.client.Paced(ctx, nil, "users.conversations", query, &page); err != nil {
			return "", err
		}
		for _, c := range page.Channels {
			if payload.IsID(c.ID) {
				r.kinds.Store(c.ID, c.kind())
				channels = append(channels, c.ID)
			}
		}
		return page.Next(query), nil
	})
	return channels, err
}

// TypeOf implements adapters.ChannelTyper.
func (r *Reader) TypeOf(ctx context.Context, channel string) (event.ChannelType, error) {
	urgent := make(chan struct{})
	close(urgent)
	kind, err := r.kind(ctx, urgent, channel)
	if err != nil {
		return event.ChannelUnknown, err
	}
	return payload.ChannelOf(channel, kind).Type, nil
}

// kind returns a channel's type in Slack's terms. A backfilled payload must carry it,
// because a group conversation's id does not reveal the type.
func (r *Reader) kind(ctx context.Context, urgent <-chan struct{}, channel string) (string, error) {
	if kind, ok := r.kinds.Load(channel); ok {
		return kind.(string), nil
	}
	var answer struct {
		call.Answer
		Channel wireConversation `json:"channel"`
	}
	if err := r.client.Paced(ctx, urgent, "conversations.info", url.Values{"channel": {channel}}, &answer); err != nil {
		return "", err
	}
	r.kinds.Store(channel, answer.Channel.kind())
	return answer.Channel.kind(), nil
}
