package threads

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"unicode/utf8"

	"parley/adapters/web/exchange"
	"parley/adapters/web/payload"
	"parley/ingest/card"
	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/threads"
)

// maxContent bounds the content of a message, in characters.
const maxContent = 5000

// postChatMessage takes a message of a user, POST /api/v1/chat/threads/{thread_id}/messages, or of
// an agent outside Parley, POST /api/v1/chat/threads/{thread_id}/agent-messages
func (c call) postChatMessage(w http.ResponseWriter, r *http.Request, raw []byte) error {
	kind := event.Human
	if c.Actor.IsAgent() {
		kind = event.Bot
	}
	t, err := c.thread(r)
	if err != nil {
		return err
	}
	b, err := c.readChat(r.Context(), &t, raw, kind)
	if err == nil {
		b.ThreadID = t.ID
		err = c.Storage.Keep(r.Context(), w, c.Workspace, string(c.Actor), &b)
	}
	if err == nil && (asksAgent(b) || kind == event.Human && t.Mode == threads.ModeOpen) {
		err = c.MayAsk(w, r, c.Workspace, b)
	}
	if err != nil {
		return err
	}
	s, err := c.Send(r, c.Workspace, b)
	switch {
	case err != nil:
		return err
	case s.Message == nil:
		return exchange.Respond(w, http.StatusAccepted, map[string]any{"id": s.ID, "thread_id": t.ID})
	case s.known:
		return exchange.Respond(w, http.StatusOK, c.viewChat(r.Context(), t.ID, s.Message))
	}
	return exchange.Respond(w, http.StatusCreated, c.viewChat(r.Context(), t.ID, s.Message))
}

// readChat reads the body of a message of the caller in a thread, and completes it except for its thread.
// Its error is event.FieldErrors, or the store's.
func (c call) readChat(ctx context.Context, t *threads.Thread, raw []byte, kind event.SenderType) (b payload.Body, err error) {
	var mentions []payload.Actor
	if kind == event.Bot {
		b.Known = new(event.Known)
	}
	keys := []string{"content", "client_message_id", "metadata", "attachments"}
	faults := payload.Members(raw, func(m event.Extra) string {
		switch {
		case slices.Contains(keys, m.Key):
			return b.Set(m, nil)
		case string(m.Value) == "null" && (m.Key == "mentions" || m.Key == "base_seq" || m.Key == "latest_seen_seq"):
			return ""
		case m.Key == "mentions":
			return payload.ReadActors(m.Value, &mentions, payload.MaxMentions)
		case m.Key == "base_seq" && b.Known != nil:
			return readSeq(m.Value, &b.Known.BaseSeq)
		case m.Key == "latest_seen_seq" && b.Known != nil:
			return readSeq(m.Value, &b.Known.LatestSeenSeq)
		}
		return "is not a key of this message"
	})
	if payload.Unreadable(faults) {
		return b, faults
	}
	if n := utf8.RuneCountInString(b.Content); !slices.ContainsFunc(faults, func(f event.FieldError) bool { return f.Field == "content" }) {
		faults.Check(n >= 1 && n <= maxContent, "content", fmt.Sprintf("must have 1 to %d characters", maxContent))
	}
	if b.ClientMessageID == "" {
		b.MessageID = payload.NewID()
	}
	if !slices.ContainsFunc(faults, func(f event.FieldError) bool { return f.Field == event.KeyMentions }) {
		strangers, err := c.strangers(ctx, t, mentions)
		if err != nil {
			return b, err
		}
		faults = append(faults, strangers...)
	}
	metadata, more := c.chatMetadata(b.Metadata, kind, mentions)
	b.Metadata, b.TokenID = metadata, c.Token.ID
	return b, append(append(faults, more...), b.Unsent()...).Err()
}

// asksAgent reports whether a complete body mentions an agent of ours.
func asksAgent(b payload.Body) bool {
	m, err := event.ReadMetadata(b.Metadata)
	return err == nil && m.RecipientID != ""
}

func readSeq(value json.RawMessage, into **int64) string {
	var n int64
	if json.Unmarshal(value, &n) != nil || n < 0 {
		return "must be a thread_seq: 0 or more"
	}
	*into = &n
	return ""
}

// chatMetadata returns the metadata to store for a message of the caller. A mention of an agent
// of ours is its recipient; of several, the first.
func (c call) chatMetadata(raw []byte, kind event.SenderType, mentions []payload.Actor) ([]byte, event.FieldErrors) {
	own := c.AsCaller(kind)
	if kind == event.Bot {
		var err error
		if raw, err = card.Compile(raw); err != nil {
			return nil, card.Faults("metadata", err)
		}
	} else if faults := card.Check(raw, "metadata"); len(faults) > 0 {
		return nil, faults
	}
	m, err := event.ReadMetadata(raw)
	if raw == nil {
		m, err = event.Metadata{}, nil
	}
	var faults event.FieldErrors
	if errors.As(err, &faults) {
		return nil, faults
	}
	faults = own.RefusedClaims(&m)
	if len(faults) > 0 {
		return nil, faults
	}
	if len(mentions) > 0 {
		list, _ := json.Marshal(mentions) // texts always marshal
		m.Extra = append(m.Extra, event.Extra{Key: event.KeyMentions, Value: list})
	}
	for _, agent := range c.Agents {
		if m.RecipientID == "" && slices.Contains(mentions, payload.AgentActor(agent)) {
			m.RecipientID = "bot:" + agent
		}
	}
	stored := own.Own(m)
	_, faults = payload.ParseMetadata(stored)
	return stored, faults
}

// listChatMessages responds with a page of a thread's messages, without deleted ones: GET
// /api/v1/chat/threads/{thread_id}/messages?after=&before=&limit=&html=&work=
func (c call) listChatMessages(w http.ResponseWriter, r *http.Request) error {
	t, err := c.thread(r)
	if err != nil {
		return err
	}
	var faults event.FieldErrors
	page := pageOf(r, &faults)
	c.html, c.work = exchange.HTMLOf(r, &faults), workOf(r, &faults)
	if len(faults) > 0 {
		return faults
	}
	end, err := c.Streams.Begin(r.Context(), c.Owner())
	if err != nil {
		return err
	}
	defer end()
	list, err := c.Messages.ThreadMessages(r.Context(), c.Workspace, t.ID, page)
	if err != nil {
		return err
	}
	shown := slices.DeleteFunc(pointers(list), func(m *messages.Listed) bool { return !m.DeletedAt.IsZero() })
	return exchange.RespondList(w, "messages", shown, func(m *messages.Listed) any { return c.viewChat(r.Context(), t.ID, m) }, exchange.Member{Key: "next", Value: nextSeq(list, page)})
}
