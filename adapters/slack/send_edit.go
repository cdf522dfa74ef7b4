package slack

import (
	"context"
	"fmt"
	"strings"

	"github.com/slack-go/slack"

	"parley/adapters"
)

// Edit makes a message of ours show a text, with chat.update. A stream can't be
// edited while it is open, so where there may be one it is ended before.
func (a *Adapter) Edit(ctx context.Context, id string, post adapters.Post) error {
	channel, ts, ok := splitID(id)
	if !ok {
		return permanent(fmt.Sprintf("%q is no slack message", id))
	}
	return a.change(ctx, "chat.update", channel, ts, post, func() error {
		return a.content(post.Text, func(content slack.MsgOption) error {
			// The empty blocks take away what an earlier text had.
			_, _, _, err := a.api.UpdateMessageContext(ctx, channel, ts, slack.MsgOptionBlocks(), content)
			return err
		})
	})
}

// Remove takes a message of ours away, with chat.delete.
func (a *Adapter) Remove(ctx context.Context, id string, post adapters.Post) error {
	channel, ts, ok := splitID(id)
	if !ok {
		return permanent(fmt.Sprintf("%q is no slack message", id))
	}
	return a.change(ctx, "chat.delete", channel, ts, post, func() error {
		_, _, err := a.api.DeleteMessageContext(ctx, channel, ts)
		if refusedCode(err) == "message_not_found" {
			return nil
		}
		return err
	})
}

// change calls a method that changes a message, after it has ended the stream that
// the message may be. Where that did not look like one and Slack refuses as it does
// with a stream, it is tried once more as one.
func (a *Adapter) change(ctx context.Context, method, channel, ts string, post adapters.Post, call func() error) error {
	stopped := false
	if a.mayStream(post) {
		var err error
		if stopped, err = a.stop(ctx, channel, ts); err != nil {
			return sendError("chat.stopStream", channel, err)
		}
	}
	err := call()
	if !stopped && isRefused(err, isStreaming) {
		var unstopped error
		if stopped, unstopped = a.stop(ctx, channel, ts); unstopped != nil {
			return sendError("chat.stopStream", channel, unstopped)
		}
		if stopped {
			err = call()
		}
	}
	if err != nil {
		return sendError(method, channel, err)
	}
	return nil
}

// isStreaming tells the codes with which Slack refuses to change an open stream;
// most of them mean other things too.
func isStreaming(code string) bool {
	switch code {
	case "streaming_state_conflict", "cant_update_message", "cant_delete_message":
		return true
	}
	return false
}

// stop ends a stream as it stands. That there is none, or none that can be ended, is
// no error: what follows will tell.
func (a *Adapter) stop(ctx context.Context, channel, ts string) (stopped bool, err error) {
	_, _, err = a.api.StopStreamContext(ctx, channel, ts)
	if code := refusedCode(err); code != "" && refusal("chat.stopStream", code) == adapters.Permanent {
		return false, nil
	}
	return err == nil, err
}

// splitID takes a message's external id apart.
func splitID(id string) (channel, ts string, ok bool) {
	channel, ts, _ = strings.Cut(id, "/")
	return channel, ts, isID(channel) && isTimestamp(ts)
}
