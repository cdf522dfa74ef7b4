package slack

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/slack-go/slack"

	"parley/adapters"
)

// Edit replaces the text of a message of ours with chat.update. An open stream can't be
// edited, so Edit first stops the stream that the message may be.
func (a *Adapter) Edit(ctx context.Context, id string, post adapters.Post) error {
	channel, ts, ok := splitID(id)
	if !ok {
		return notAMessage(id)
	}
	return a.change(ctx, "chat.update", channel, ts, post, func() error {
		return a.sendText(post.Text, func(content slack.MsgOption) error {
			// The empty blocks remove the blocks of an earlier text.
			_, _, _, err := a.api.UpdateMessageContext(ctx, channel, ts, slack.MsgOptionBlocks(), content)
			return err
		})
	})
}

// Remove deletes a message of ours with chat.delete. A deleted message is no error.
func (a *Adapter) Remove(ctx context.Context, id string, post adapters.Post) error {
	channel, ts, ok := splitID(id)
	if !ok {
		return notAMessage(id)
	}
	return a.change(ctx, "chat.delete", channel, ts, post, func() error {
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
func (a *Adapter) change(ctx context.Context, method, channel, ts string, post adapters.Post, call func() error) error {
	stopped := a.closedStreams.has(messageID(channel, ts))
	if !stopped && a.Streams(post) {
		var err error
		if stopped, err = a.stop(ctx, channel, ts); err != nil {
			return sendError("chat.stopStream", channel, err)
		}
	}
	err := call()
	if !stopped && isRefused(err, isStreaming) {
		var stopErr error
		if stopped, stopErr = a.stop(ctx, channel, ts); stopErr != nil {
			return sendError("chat.stopStream", channel, stopErr)
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

// isStreaming reports whether the code may refuse the change of an open stream. Most of
// these codes have other meanings too.
func isStreaming(code string) bool {
	switch code {
	case "streaming_state_conflict", "cant_update_message", "cant_delete_message":
		return true
	}
	return false
}

// stop ends a stream without adding text. It is no error if there is no stream, or no
// stream that can be ended: the following call reports that.
func (a *Adapter) stop(ctx context.Context, channel, ts string) (stopped bool, err error) {
	_, _, err = a.api.StopStreamContext(ctx, channel, ts)
	code := refusedCode(err)
	if err == nil || code == notStreaming {
		a.closedStreams.add(messageID(channel, ts))
	}
	if code != "" && refusal("chat.stopStream", code) == adapters.Permanent {
		return false, nil
	}
	return err == nil, err
}

// notStreaming is Slack's code for a message that is not an open stream.
const notStreaming = "message_not_in_streaming_state"

// maxClosedStreams bounds the remembered messages that are not open streams. Slack
// allows far fewer stops than edits per minute.
// https://docs.slack.dev/reference/methods/chat.stopStream
const maxClosedStreams = 4096

// closedStreams are messages that are not open streams and never become one again.
type closedStreams struct {
	mu  sync.Mutex
	ids map[string]bool
}

func (e *closedStreams) add(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ids == nil || len(e.ids) >= maxClosedStreams {
		e.ids = map[string]bool{}
	}
	e.ids[id] = true
}

func (e *closedStreams) has(id string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.ids[id]
}

// splitID splits a message's external id into its channel and ts.
func splitID(id string) (channel, ts string, ok bool) {
	channel, ts, _ = strings.Cut(id, "/")
	return channel, ts, isID(channel) && isTimestamp(ts)
}

// notAMessage returns the permanent failure for an id that splitID can't split.
func notAMessage(id string) *adapters.SendError {
	return permanent(fmt.Sprintf("%q is not a slack message", id))
}
