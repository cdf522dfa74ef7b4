package slack

import (
	"context"
	"fmt"
	"strings"
	"sync"

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
	stopped := a.ended.has(messageID(channel, ts))
	if !stopped && a.Streams(post) {
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
	code := refusedCode(err)
	if err == nil || code == notStreaming {
		a.ended.add(messageID(channel, ts))
	}
	if code != "" && refusal("chat.stopStream", code) == adapters.Permanent {
		return false, nil
	}
	return err == nil, err
}

// notStreaming is what Slack says of a message that is no open stream.
const notStreaming = "message_not_in_streaming_state"

// maxEnded is how many messages are remembered that are no open streams: Slack ends
// far fewer a minute than it edits.
// https://docs.slack.dev/reference/methods/chat.stopStream
const maxEnded = 4096

// ended are messages that are no open streams, and will never be again.
type ended struct {
	mu  sync.Mutex
	ids map[string]bool
}

func (e *ended) add(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ids == nil || len(e.ids) >= maxEnded {
		e.ids = map[string]bool{}
	}
	e.ids[id] = true
}

func (e *ended) has(id string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.ids[id]
}

// splitID takes a message's external id apart.
func splitID(id string) (channel, ts string, ok bool) {
	channel, ts, _ = strings.Cut(id, "/")
	return channel, ts, isID(channel) && isTimestamp(ts)
}
