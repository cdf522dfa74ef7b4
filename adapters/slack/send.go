package slack

import (
	"context"
	"errors"
	"fmt"

	"github.com/slack-go/slack"

	"parley/adapters"
	"parley/ingest/event"
)

// Address takes a reply to the thread's channel, and under its root in a channel.
func (a *Adapter) Address(thread event.ThreadKey) (adapters.Address, error) {
	channel, root, err := parseThreadKey(thread)
	return adapters.Address{Channel: channel, Root: root}, err
}

// Send calls chat.postMessage once. The post carries its key as metadata, by
// which Find knows it again; links are not unfolded. The id is the message's
// external id, "<channel>/<ts>".
func (a *Adapter) Send(ctx context.Context, post adapters.Post) (string, error) {
	options := []slack.MsgOption{
		slack.MsgOptionText(post.Text, false), // Format has escaped it
		slack.MsgOptionDisableLinkUnfurl(),
		slack.MsgOptionDisableMediaUnfurl(),
		slack.MsgOptionMetadata(slack.SlackMetadata{
			EventType:    deliveryMetadata,
			EventPayload: map[string]any{"key": post.Key},
		}),
	}
	if post.To.Root != "" {
		options = append(options, slack.MsgOptionTS(post.To.Root))
	}
	channel, ts, err := a.api.PostMessageContext(ctx, post.To.Channel, options...)
	if err == nil && ts == "" {
		err = errors.New("the answer names no message")
	}
	if err != nil {
		return "", sendError(post.To.Channel, err)
	}
	return firstOf(channel, post.To.Channel) + "/" + ts, nil
}

// sendError says what a failed call left behind.
func sendError(channel string, err error) *adapters.SendError {
	failure := &adapters.SendError{Failure: adapters.Unclear} // an answer that can't be read
	var done *adapters.SendError
	var answer slack.SlackErrorResponse
	switch {
	case errors.As(err, &done):
		*failure = *done
	case errors.As(err, &answer):
		failure.Failure = refusal(answer.Err)
	}
	if failure.Failure == adapters.RateLimited {
		failure.RetryAfter = max(failure.RetryAfter, minRetry)
	}
	failure.Err = fmt.Errorf("post to slack channel %s: %w", channel, err)
	return failure
}

// refusal says what an ok:false left behind. A code is a refusal for good, the
// ones that are not known here too: the method looked at its arguments and did
// nothing, and would do the same again. The exceptions are what Slack itself
// documents as a passing state, or as one where "some aspect of the operation"
// may have succeeded.
// https://docs.slack.dev/reference/methods/chat.postMessage#errors
func refusal(code string) adapters.SendFailure {
	switch code {
	case "ratelimited", "rate_limited":
		return adapters.RateLimited
	case "fatal_error", "internal_error", "service_unavailable", "request_timeout":
		return adapters.Unclear
	case "team_added_to_org", "org_login_required": // while the workspace moves
		return adapters.NotSent
	default:
		return adapters.Permanent
	}
}
