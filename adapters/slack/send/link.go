package send

import (
	"context"
	"net/url"
	"strings"

	"parley/adapters"
	"parley/adapters/slack/payload"
)

// Link returns the permalink of a message; empty for one at a response URL, which has no id.
// https://docs.slack.dev/reference/methods/chat.getPermalink
func (s *Sender) Link(ctx context.Context, to adapters.Address, id string) string {
	channel, ts, err := payload.SplitID(id)
	if err != nil {
		return ""
	}
	team, err := s.client.TeamURL(ctx)
	if err != nil {
		return ""
	}
	link := team.JoinPath("archives", channel, "p"+strings.ReplaceAll(ts, ".", ""))
	if root := payload.ThreadTS(to); root != "" && root != ts {
		link.RawQuery = url.Values{"thread_ts": {root}, "cid": {channel}}.Encode()
	}
	return link.String()
}
