package send

import (
	"context"
	"errors"

	"github.com/slack-go/slack"

	"parley/adapters"
	"parley/adapters/slack/payload"
	"parley/ingest/event"
)

// Address returns the thread's channel. For a thread under a message, its Place is the
// root's ts. For the answer to a command outside such threads, it is "command-<id>".
func (s *Sender) Address(thread event.ThreadKey, answered string) (adapters.Address, error) {
	return payload.Address(thread, answered)
}

// Send calls chat.postMessage; it calls twice if the workspace refuses markdown blocks.
// The post's metadata carries its key, by which Find recognises it. The returned id is the
// message's external id, "<channel>/<ts>". A post with a file is uploaded. The answer to a command
// in a channel without the bot goes to the command's response URL.
func (s *Sender) Send(ctx context.Context, post adapters.Post) (string, error) {
	if post.File != nil {
		return s.sendFile(ctx, post)
	}
	options := []slack.MsgOption{
		slack.MsgOptionMetadata(slack.SlackMetadata{
			EventType:    payload.DeliveryMetadata,
			EventPayload: map[string]any{"key": post.Key},
		}),
	}
	if ts := payload.ThreadTS(post.To); ts != "" {
		options = append(options, slack.MsgOptionTS(ts))
	}
	channel, ts := "", ""
	err := s.sendContent(post, func(content slack.MsgOption) (err error) {
		channel, ts, err = s.client.API.PostMessageContext(ctx, post.To.Channel, append(options, content)...)
		return err
	})
	if err == nil && ts == "" {
		err = errors.New("the answer has no message id")
	}
	if ok, failed := s.respond(ctx, post, err, "in_channel"); ok {
		if failed != nil {
			return "", s.client.SendError("answer a command", post.To.Channel, failed)
		}
		return responseID(post), nil
	}
	if err != nil {
		return "", s.client.SendError("chat.postMessage", post.To.Channel, err)
	}
	return payload.MessageID(payload.FirstOf(channel, post.To.Channel), ts), nil
}

// EphemeralAddress returns the place beside the answered message: Slack shows an ephemeral message only in a thread that has a reply.
// https://docs.slack.dev/reference/methods/chat.postEphemeral#arg_thread_ts
func (s *Sender) EphemeralAddress(to adapters.Address, answered string) adapters.Address {
	return payload.Beside(to, answered)
}

// PostEphemeral calls chat.postEphemeral. Only one user sees the post, until that user reloads
// Slack.
func (s *Sender) PostEphemeral(ctx context.Context, post adapters.Post) error {
	if post.Asker == "" {
		return adapters.Permanently("the post has no asker who could see it")
	}
	err := s.sendText(post.Text, nil, func(content slack.MsgOption) error {
		options := []slack.MsgOption{content}
		if ts := payload.ThreadTS(post.To); ts != "" {
			options = append(options, slack.MsgOptionTS(ts))
		}
		_, err := s.client.API.PostEphemeralContext(ctx, post.To.Channel, post.Asker, options...)
		return err
	})
	if ok, failed := s.respond(ctx, post, err, "ephemeral"); ok {
		err = failed
	}
	if err != nil {
		return s.client.SendError("chat.postEphemeral", post.To.Channel, err)
	}
	return nil
}
