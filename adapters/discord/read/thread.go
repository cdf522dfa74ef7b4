package read

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"

	"github.com/bwmarrin/discordgo"

	"parley/adapters"
	"parley/adapters/discord/call"
	"parley/adapters/discord/payload"
	"parley/ingest/event"
)

// Root returns the id of the message that a thread was opened on, or that began a forum post:
// the id of the thread itself. A channel that is no thread has no message with its id.
func (r *Reader) Root(thread event.ThreadKey) (id string, ok bool) {
	to, err := payload.AddressOf(r.workspace, thread, "")
	return to.Channel, err == nil
}

// ReadHistory reads a thread up to the message upTo. In a channel that is no thread it reads nothing.
func (r *Reader) ReadHistory(ctx context.Context, thread event.ThreadKey, upTo string, newest int) (before adapters.ThreadHistory, err error) {
	to, err := payload.AddressOf(r.workspace, thread, "")
	if err != nil {
		return before, err
	}
	if _, known := r.memory.Servers.Place(to.Channel); known != nil && !known.IsThread() {
		return before, nil
	}
	c, err := r.channel(ctx, to.Channel)
	switch {
	case call.Code(err) == discordgo.ErrCodeUnknownChannel: // a question's own thread is not open yet
		return before, nil
	case err != nil:
		return before, err
	case !c.IsThread():
		return before, nil
	}
	list, err := r.latest(ctx, c.ID, upTo, newest)
	if err != nil {
		return before, fmt.Errorf("read discord thread %s: %w", c.ID, err)
	}
	if len(list) >= min(newest, historyPage-1) { // the page may be full; the thread also has the message upTo
		before.Earlier = max(c.MessageCount-len(list)-1, 0)
	}
	root, err := r.threadRoot(ctx, c)
	if err != nil {
		return before, fmt.Errorf("read the root of discord thread %s: %w", c.ID, err)
	}
	if root != nil {
		list = append([]historyMessage{*root}, list...)
	}
	for _, m := range list {
		before.Envelopes = append(before.Envelopes, *r.envelope("MESSAGE_CREATE", event.Reread, c.ParentID, m.live(c.GuildID, r.nick(ctx, c.GuildID, m))))
	}
	return before, nil
}

// latest returns the latest messages of a thread before upTo, oldest first, without its root.
func (r *Reader) latest(ctx context.Context, thread, upTo string, newest int) (list []historyMessage, err error) {
	query := url.Values{"limit": {strconv.Itoa(min(newest+1, historyPage))}}
	if payload.IsID(upTo) {
		query.Set("before", upTo)
	}
	if list, _, err = r.messages(ctx, thread, query); err != nil {
		return nil, err
	}
	// Discord itself writes a starter message, to show the root of the thread.
	list = slices.DeleteFunc(list, func(m historyMessage) bool {
		return m.ID == thread || m.Type == discordgo.MessageTypeThreadStarterMessage
	})
	list = list[:min(len(list), newest)]
	slices.Reverse(list)
	return list, nil
}

// threadRoot returns the root of a thread as a message of the thread; nil if it is gone. It is in
// the parent, except for a forum post.
func (r *Reader) threadRoot(ctx context.Context, thread *discordgo.Channel) (*historyMessage, error) {
	for _, channel := range []string{thread.ParentID, thread.ID} {
		var raw json.RawMessage
		err := r.client.Get(ctx, call.MessagePath(channel, thread.ID), &raw)
		if err != nil {
			if status := call.Status(err); status != 0 && status != 401 {
				continue // not there, or not visible
			}
			return nil, err
		}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(raw, &fields); err != nil {
			return nil, err
		}
		fields["channel_id"], _ = json.Marshal(thread.ID) // strings always encode
		if raw, err = json.Marshal(fields); err != nil {
			return nil, err
		}
		if list := decodePage([]json.RawMessage{raw}); len(list) == 1 {
			return &list[0], nil
		}
	}
	return nil, nil
}
