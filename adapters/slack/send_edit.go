package slack

import (
	"context"
	"slices"

	"github.com/slack-go/slack"

	"parley/adapters"
	"parley/adapters/slack/payload"
)

// Edit replaces the text of a message of ours with chat.update. An open stream can't be
// edited, so Edit stops the stream that the message turns out to be.
func (a *Adapter) Edit(ctx context.Context, id string, post adapters.Post) error {
	return a.change(ctx, "chat.update", id, func(channel, ts string) error {
		return a.sendText(post.Text, post.Buttons, func(content slack.MsgOption) error {
			// The empty blocks remove the blocks of an earlier text.
			_, _, _, err := a.api.UpdateMessageContext(ctx, channel, ts, slack.MsgOptionBlocks(), content)
			return err
		})
	})
}

// Remove deletes a message of ours with chat.delete. A deleted message is no error.
func (a *Adapter) Remove(ctx context.Context, id string, _ adapters.Post) error {
	return a.change(ctx, "chat.delete", id, func(channel, ts string) error {
		_, _, err := a.api.DeleteMessageContext(ctx, channel, ts)
		if refusedCode(err) == "message_not_found" {
			return nil
		}
		return err
	})
}

// change calls a method that changes a message. If Slack refuses the call as it refuses it
// for an open stream, change stops the stream and calls once more.
// https://docs.slack.dev/reference/methods/chat.update#errors
func (a *Adapter) change(ctx context.Context, method, id string, call func(channel, ts string) error) error {
	channel, ts, err := payload.SplitID(id)
	if err != nil {
		return err
	}
	err = call(channel, ts)
	if slices.Contains(streaming, refusedCode(err)) {
		stopped, stopErr := a.stop(ctx, channel, ts)
		if stopErr != nil {
			return a.sendError("chat.stopStream", channel, stopErr)
		}
		if stopped {
			err = call(channel, ts)
		}
	}
	if err != nil {
		return a.sendError(method, channel, err)
	}
	return nil
}
