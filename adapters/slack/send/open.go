package send

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"parley/adapters/slack/call"
	"parley/adapters/slack/payload"
)

// opened is the answer of conversations.open.
type opened struct {
	call.Answer
	Channel struct{ ID string }
}

// OpenDirect returns the channel of the direct messages with a user. Slack opens it once.
// https://docs.slack.dev/reference/methods/conversations.open
func (s *Sender) OpenDirect(ctx context.Context, user string) (string, error) {
	var answer opened
	err := s.client.Call(ctx, "conversations.open", url.Values{"users": {user}}, &answer)
	if err == nil && !payload.IsChannel(answer.Channel.ID) {
		err = errors.New("the answer has no channel")
	}
	if err == nil {
		return answer.Channel.ID, nil
	}
	failure := s.client.SendError("conversations.open", user, err)
	failure.Err = err
	if call.Code(err) == "missing_scope" {
		failure.Err = fmt.Errorf("%w: add the scope im:write to the app, and install it again", err)
	}
	return "", failure
}
