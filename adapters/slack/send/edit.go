package send

import (
	"context"
	"slices"

	"github.com/slack-go/slack"

	"parley/adapters"
	"parley/adapters/slack/call"
	"parley/adapters/slack/payload"
)

// Edit replaces the text of a message of ours with chat.update. An open stream can't be
// edited, so Edit stops the stream that the message turns out to be.
func (s *Sender) Edit(ctx context.Context, id string, post adapters.Post) error {
	return s.change(ctx, "chat.update", id, func(channel, ts string) error {
		return s.sendContent(post, func(content slack.MsgOption) error {
			// The empty blocks remove the blocks of an earlier text.
			_, _, _, err := s.client.API.UpdateMessageContext(ctx, channel, ts, slack.MsgOptionBlocks(), content)
			return err
		})
	})
}

// Remove deletes a message of ours with chat.delete. A deleted message is no error.
func (s *Sender) Remove(ctx context.Context, id string, _ adapters.Post) error {
	return s.change(ctx, "chat.delete", id, func(channel, ts string) error {
		_, _, err := s.client.API.DeleteMessageContext(ctx, channel, ts)
		if call.Code(err) == "message_not_found" {
			return nil
		}
		return err
	})
}

// change calls a method that changes a message. If Slack refuses the call as it refuses it
// for an open stream, change stops the stream and calls once more.
// https://docs.slack.dev/reference/methods/chat.update#errors
func (s *Sender) change(ctx context.Context, method, id string, do func(channel, ts string) error) error {
	channel, ts, err := payload.SplitID(id)
	if err != nil {
		return err
	}
	err = do(channel, ts)
	if slices.Contains(streaming, call.Code(err)) {
		stopped, stopErr := s.stop(ctx, channel, ts)
		if stopErr != nil {
			return s.client.SendError("chat.stopStream", channel, stopErr)
		}
		if stopped {
			err = do(channel, ts)
		}
	}
	if err != nil {
		return s.client.SendError(method, channel, err)
	}
	return nil
}
