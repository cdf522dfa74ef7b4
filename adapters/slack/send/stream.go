package send

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/slack-go/slack"

	"parley/adapters"
	"parley/adapters/slack/call"
	"parley/adapters/slack/payload"
)

// streamFeature is the key under which a refusal of streams is remembered. For one
// channel, the channel's id follows it.
const streamFeature = "streams"

// Streams reports whether the post may be a stream, as far as the sender knows. Only a
// reply can be a stream. In a channel it also needs an asker.
// https://docs.slack.dev/reference/methods/chat.startStream
func (s *Sender) Streams(post adapters.Post) bool {
	return s.settings.Preview == adapters.PreviewStream && payload.ThreadTS(post.To) != "" &&
		(post.Asker != "" || payload.IsDirect(post.To.Channel)) &&
		!s.client.Refuses(streamFeature) && !s.client.Refuses(streamFeature+post.To.Channel)
}

// noStreams are the codes of a kind of channel that has no streams.
var noStreams = []string{"method_not_supported_for_channel_type", "channel_type_not_supported"}

// Begin calls chat.startStream. If the app or the channel has no streams, Begin
// remembers that for an hour.
func (s *Sender) Begin(ctx context.Context, post adapters.Post) (string, error) {
	if !s.Streams(post) {
		return "", adapters.Permanently("slack does not support a stream for this post")
	}
	options := []slack.MsgOption{slack.MsgOptionTS(post.To.Place), slack.MsgOptionMarkdownText(post.Text)}
	if post.Asker != "" {
		self, err := s.client.Self(ctx)
		if err != nil {
			return "", &adapters.SendError{Failure: adapters.NotSent, Err: fmt.Errorf("begin a stream in slack channel %s: %w", post.To.Channel, err)}
		}
		options = append(options, slack.MsgOptionRecipientTeamID(self.TeamID), slack.MsgOptionRecipientUserID(post.Asker))
	}
	channel, ts, err := s.client.API.StartStreamContext(ctx, post.To.Channel, options...)
	if err == nil && ts == "" {
		err = errors.New("the answer has no message id")
	}
	switch {
	case call.IsUnavailable(err):
		s.client.Remember(streamFeature)
	case slices.Contains(noStreams, call.Code(err)):
		s.client.Remember(streamFeature + post.To.Channel)
	}
	if err != nil {
		return "", s.client.SendError("chat.startStream", post.To.Channel, err)
	}
	return payload.MessageID(payload.FirstOf(channel, post.To.Channel), ts), nil
}

// Append calls chat.appendStream. If Slack or a reader has ended the stream, the
// failure is Permanent, and the message can be edited. Slack documents no maximum age of a
// stream; users have measured five minutes, whether or not text is appended meanwhile.
// https://github.com/slackapi/node-slack-sdk/issues/2702
func (s *Sender) Append(ctx context.Context, id string, _ adapters.Post, text string) error {
	channel, ts, err := payload.SplitID(id)
	if err != nil || text == "" {
		return err
	}
	if _, _, err := s.client.API.AppendStreamContext(ctx, channel, ts, slack.MsgOptionMarkdownText(text)); err != nil {
		return s.client.SendError("chat.appendStream", channel, err)
	}
	return nil
}

// End calls chat.stopStream. A stream that has already ended is an error only if there
// is text to add.
func (s *Sender) End(ctx context.Context, id string, _ adapters.Post, text string) error {
	channel, ts, err := payload.SplitID(id)
	if err != nil {
		return err
	}
	var options []slack.MsgOption
	if text != "" {
		options = append(options, slack.MsgOptionMarkdownText(text))
	}
	_, _, err = s.client.API.StopStreamContext(ctx, channel, ts, options...)
	if err == nil || text == "" && call.Code(err) == notStreaming {
		return nil
	}
	return s.client.SendError("chat.stopStream", channel, err)
}

// streaming are the codes that may refuse the change of an open stream. Most of these codes have
// other meanings too.
var streaming = []string{"streaming_state_conflict", "cant_update_message", "cant_delete_message"}

// stop ends a stream without adding text. It is no error if there is no stream, or no
// stream that can be ended: the following call reports that.
func (s *Sender) stop(ctx context.Context, channel, ts string) (stopped bool, err error) {
	_, _, err = s.client.API.StopStreamContext(ctx, channel, ts)
	if code := call.Code(err); code != "" && call.Refusal("chat.stopStream", code) == adapters.Permanent {
		return false, nil
	}
	return err == nil, err
}

// notStreaming is Slack's code for a message that is not an open stream.
const notStreaming = "message_not_in_streaming_state"
