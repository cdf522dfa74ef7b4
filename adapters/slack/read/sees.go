package read

import (
	"context"
	"net/url"
	"slices"

	"parley/adapters/slack/call"
	"parley/adapters/slack/payload"
)

// Sees implements adapters.Viewer: the members of a channel can read it, and a public one everybody of the team who is no guest.
func (r *Reader) Sees(ctx context.Context, channel, user string) (bool, error) {
	if !payload.IsID(channel) || !payload.IsID(user) {
		return false, nil
	}
	var about struct {
		call.Answer
		Channel wireConversation `json:"channel"`
	}
	if err := r.client.Ask(ctx, "conversations.info", url.Values{"channel": {channel}}, &about); err != nil {
		return false, err
	}
	if about.Channel.kind() == "channel" {
		u, err := r.client.API.GetUserInfoContext(ctx, user)
		if err != nil {
			return false, err
		}
		if !u.IsStranger && !u.IsRestricted && !u.IsUltraRestricted {
			return !u.Deleted, nil
		}
	}
	member, query := false, url.Values{"channel": {channel}, "limit": {historyPage}}
	err := eachPage(query, func() (next string, err error) {
		var page struct {
			call.Answer
			Members []string `json:"members"`
		}
		if err := r.client.Ask(ctx, "conversations.members", query, &page); err != nil {
			return "", err
		}
		if member = slices.Contains(page.Members, user); member {
			return "", nil
		}
		return page.Next(query), nil
	})
	return member && err == nil, err
}
