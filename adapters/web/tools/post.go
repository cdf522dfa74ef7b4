package tools

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"parley/adapters"
	"parley/adapters/web/exchange"
	"parley/adapters/web/payload"
	"parley/adapters/web/speak"
	"parley/ingest/event"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/storage"
)

type postMessage struct {
	Workspace string `json:"workspace,omitempty" jsonschema:"the id of the workspace; without it, the token's own"`
	Channel   string `json:"channel,omitempty" jsonschema:"the platform's id of a channel; give one of channel, user and thread_id"`
	User      string `json:"user,omitempty" jsonschema:"the platform's id of a person"`
	ThreadID  string `json:"thread_id,omitempty" jsonschema:"the UUID of a thread"`
	Content   string `json:"content" jsonschema:"Markdown"`
	Key       string `json:"key,omitempty" jsonschema:"of at most 200 bytes: a repetition with the same key is the same post, and is not posted again"`
}

// postMessage stores a post, which is sent soon, also after a restart.
func (c call) postMessage(ctx context.Context, in postMessage) (out speak.PostView, err error) {
	workspace, err := c.workspace(in.Workspace, mayPost)
	if err != nil {
		return out, err
	}
	s := adapters.Speech{
		Workspace: workspace, To: adapters.Target{Channel: in.Channel, User: in.User, Thread: strings.ToLower(in.ThreadID)}, Text: event.Text(in.Content),
		By: c.by, Key: in.Key,
		May: func(channel string) error { return c.MayPost(workspace, channel) },
	}
	if err = speak.Check(s, false).Err(); err == nil && s.To.User != "" {
		err = s.May("") // before the platform is asked
	}
	if err != nil {
		return out, err
	}
	switch {
	case s.Key == "":
		s.Key = c.key
	case c.view != nil: // a key is the token's own
		s.Key = c.view.run.ID + "/" + s.Key
	}
	p, _, err := c.Outbox.Speak(ctx, s)
	return speak.View(p), err
}

type react struct {
	Workspace string `json:"workspace,omitempty" jsonschema:"the id of the workspace; without it, the token's own"`
	MessageID string `json:"message_id" jsonschema:"the id of the message, as the other tools return it"`
	Emoji     string `json:"emoji" jsonschema:"one emoji, such as 👍, or its name, such as +1"`
}

type reacted struct {
	State outbox.State `json:"state" jsonschema:"pending, sending, sent, unknown or failed"`
}

// react stores a reaction, which is sent soon, also after a restart. A repetition changes nothing.
func (c call) react(ctx context.Context, in react) (out reacted, err error) {
	workspace, err := c.workspace(in.Workspace, mayPost)
	if err != nil {
		return out, err
	}
	r := adapters.Reaction{
		Workspace: workspace, Message: strings.ToLower(in.MessageID), Emoji: in.Emoji, May: func(channel string) error { return c.MayPost(workspace, channel) },
	}
	if !payload.IsUUID(r.Message) {
		return out, event.FieldErrors{{Field: "message_id", Message: "must be a UUID"}}
	}
	if out.State, err = c.Outbox.React(ctx, r); errors.Is(err, storage.ErrNotFound) {
		err = exchange.Fail(http.StatusNotFound, "not-found", "the workspace has no such message")
	}
	return out, err
}
