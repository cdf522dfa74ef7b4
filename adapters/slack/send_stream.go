package slack

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"parley/adapters"
)

// streamAge is how old a stream may grow here. Slack documents no lifetime; people
// have measured five minutes, whatever is appended meanwhile.
// https://github.com/slackapi/node-slack-sdk/issues/2702
const streamAge = 4*time.Minute + 30*time.Second

// streams is what the refusal of streams is remembered under, for one channel with
// its id behind it.
const streams = "streams"

// Streams says whether the post may be a stream, as far as we know: a reply, since
// only those can be, and in a channel one to somebody.
// https://docs.slack.dev/reference/methods/chat.startStream
func (a *Adapter) Streams(post adapters.Post) bool {
	return a.config.Preview == adapters.PreviewStream && post.To.Root != "" &&
		(post.Asker != "" || isDirect(post.To.Channel)) &&
		!a.refusals.holds(streams, a.now()) && !a.refusals.holds(streams+post.To.Channel, a.now())
}

func isDirect(channel string) bool { return strings.HasPrefix(channel, "D") }

// isOtherKind tells the codes of a kind of channel that has no streams.
func isOtherKind(code string) bool {
	return code == "method_not_supported_for_channel_type" || code == "channel_type_not_supported"
}

// Begin calls chat.startStream. Where this app, or a channel, has no streams, that is
// remembered for a while.
func (a *Adapter) Begin(ctx context.Context, post adapters.Post) (string, error) {
	if !a.Streams(post) {
		return "", permanent("slack has no streams here")
	}
	options := []slack.MsgOption{slack.MsgOptionTS(post.To.Root), slack.MsgOptionMarkdownText(post.Text)}
	if post.Asker != "" {
		self, err := a.knownSelf(ctx)
		if err != nil {
			return "", &adapters.SendError{Failure: adapters.NotSent, Err: fmt.Errorf("begin a stream in slack channel %s: %w", post.To.Channel, err)}
		}
		options = append(options, slack.MsgOptionRecipientTeamID(self.TeamID), slack.MsgOptionRecipientUserID(post.Asker))
	}
	channel, ts, err := a.api.StartStreamContext(ctx, post.To.Channel, options...)
	if err == nil && ts == "" {
		err = errors.New("the answer names no message")
	}
	switch {
	case isRefused(err, isUnavailable):
		a.refusals.remember(streams, a.now())
	case isRefused(err, isOtherKind):
		a.refusals.remember(streams+post.To.Channel, a.now())
	}
	if err != nil {
		return "", sendError("chat.startStream", post.To.Channel, err)
	}
	return messageID(firstOf(channel, post.To.Channel), ts), nil
}

// Append calls chat.appendStream. That Slack has ended the stream, or its reader, is
// Permanent: the message can be edited then.
func (a *Adapter) Append(ctx context.Context, id string, _ adapters.Post, text string) error {
	channel, ts, ok := splitID(id)
	switch {
	case !ok:
		return permanent(fmt.Sprintf("%q is no slack message", id))
	case text == "":
		return nil
	}
	if _, _, err := a.api.AppendStreamContext(ctx, channel, ts, slack.MsgOptionMarkdownText(text)); err != nil {
		return sendError("chat.appendStream", channel, err)
	}
	return nil
}

// End calls chat.stopStream. That the stream has ended already is an error only where
// something was to be added.
func (a *Adapter) End(ctx context.Context, id string, _ adapters.Post, text string) error {
	channel, ts, ok := splitID(id)
	if !ok {
		return permanent(fmt.Sprintf("%q is no slack message", id))
	}
	var options []slack.MsgOption
	if text != "" {
		options = append(options, slack.MsgOptionMarkdownText(text))
	}
	_, _, err := a.api.StopStreamContext(ctx, channel, ts, options...)
	if err == nil || text == "" && refusedCode(err) == notStreaming {
		a.ended.add(id)
		return nil
	}
	return sendError("chat.stopStream", channel, err)
}

// PostEphemeral calls chat.postEphemeral: one user alone sees it, until Slack is loaded anew.
func (a *Adapter) PostEphemeral(ctx context.Context, post adapters.Post) error {
	if post.Asker == "" {
		return permanent("nobody is known who could be told")
	}
	err := a.content(post.Text, func(content slack.MsgOption) error {
		options := []slack.MsgOption{content}
		if post.To.Root != "" {
			options = append(options, slack.MsgOptionTS(post.To.Root))
		}
		_, err := a.api.PostEphemeralContext(ctx, post.To.Channel, post.Asker, options...)
		return err
	})
	if err != nil {
		return sendError("chat.postEphemeral", post.To.Channel, err)
	}
	return nil
}
