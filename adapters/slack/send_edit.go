package slack

import (
	"context"

	"github.com/slack-go/slack"

	"parley/adapters"
)

// Edit replaces the text of a message of ours with chat.update. An open stream can't be
// edited, so Edit first stops the stream that the message may be.
func (a *Adapter) Edit(ctx context.Context, id string, post adapters.Post) error {
	return a.change(ctx, "chat.update", id, post, func(channel, ts string) error {
		return a.sendText(post.Text, post.Buttons, func(content slack.MsgOption) error {
			// The empty blocks remove the blocks of an earlier text.
			_, _, _, err := a.api.UpdateMessageContext(ctx, channel, ts, slack.MsgOptionBlocks(), content)
			return err
		})
	})
}

// Remove deletes a message of ours with chat.delete. A deleted message is no error.
func (a *Adapter) Remove(ctx context.Context, id string, post adapters.Post) error {
	return a.change(ctx, "chat.delete", id, post, func(channel, ts string) error {
		_, _, err := a.api.DeleteMessageContext(ctx, channel, ts)
		if refusedCode(err) == "message_not_found" {
			return nil
		}
		return err
	})
}

// change calls a method that changes a message. If the message may be a stream, change
// stops the stream before the call. If the message did not look like a stream, but
// Slack refuses the call as it refuses it for a stream, change stops the stream and
// calls once more.
func (a *Adapter) change(ctx context.Context, method, id string, post adapters.Post, call func(channel, ts string) error) error {
	channel, ts, err := splitID(id)
	if err != nil {
		return err
	}
	stopped := a.closedStreams.has(id)
	if !stopped && a.Streams(post) {
		if stopped, err = a.stop(ctx, channel, ts); err != nil {
			return a.sendError("chat.stopStream", channel, err)
		}
	}
	err = call(channel, ts)
	if !stopped && isRefused(err, isStreaming) {
		var stopErr error
		if stopped, stopErr = a.stop(ctx, channel, ts); stopErr != nil {
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
