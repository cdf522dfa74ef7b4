package send

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/bwmarrin/discordgo"

	"parley/adapters"
	"parley/adapters/discord/call"
	"parley/adapters/discord/payload"
	"parley/ingest/event"
)

// Address returns the thread's channel. Its Place is the id of the answered message.
func (s *Sender) Address(thread event.ThreadKey, answered string) (adapters.Address, error) {
	return payload.AddressOf(s.workspace, thread, answered)
}

// Send posts a message under its key as an enforced nonce. The first post of an answer to a
// command edits the deferred response, and further ones follow it up where the bot may not write.
// A post in a thread that does not exist yet opens the thread.
func (s *Sender) Send(ctx context.Context, post adapters.Post) (string, error) {
	if strings.HasPrefix(post.To.Place, payload.CommandPrefix) {
		if id, done, err := s.answer(ctx, post); done || err != nil {
			return id, err
		}
	}
	post, err := s.openThread(ctx, post)
	if err != nil {
		return "", err
	}
	body := messageOf(post)
	body.Nonce, body.EnforceNonce = post.Key, post.Key != ""
	replies := "reply " + post.To.Channel
	refer := s.settings.Reply && payload.IsID(post.To.Place) && s.client.Paces.Left(replies, s.client.Now()) == 0
	if refer {
		body.Reference = &discordgo.MessageReference{MessageID: post.To.Place, FailIfNotExists: new(bool)}
	}
	path := "/channels/" + post.To.Channel + "/messages"
	id, err := s.publish(ctx, http.MethodPost, path, post.File, body)
	if refer && call.Code(err) == discordgo.ErrCodeCannotReplyWithoutPermissionToReadMessageHistory { // the call had no effect
		s.client.Paces.Rest(replies, s.client.Now().Add(repliesFor))
		body.Reference = nil
		id, err = s.publish(ctx, http.MethodPost, path, post.File, body)
	}
	if call.IsForbidden(err) {
		if asked, ok := payload.OpenInteraction(ctx, s.memory.State, post, s.client.Now()); ok {
			id, err = s.followUp(ctx, asked, post, body)
		}
	}
	if err != nil {
		return "", call.WithAction("post in discord channel "+post.To.Channel, err)
	}
	s.memory.Nonces.Add(post.Key, id)
	return id, nil
}

// publish calls a route that posts or edits, with a file unless that is nil, and returns the id of the
// message.
func (s *Sender) publish(ctx context.Context, method, path string, file *adapters.File, body call.Message) (id string, err error) {
	var sent sent
	if file == nil {
		err = s.client.Send(ctx, method, path, body, &sent)
	} else {
		err = s.sendFile(ctx, method, path, file, body, &sent)
	}
	if err == nil && !payload.IsID(sent.ID) {
		err = &adapters.SendError{Failure: adapters.Unclear, Err: errors.New("the answer has no message id")}
	}
	if err == nil && sent.drops(body) {
		err = s.showPlain(ctx, method, path, sent.ID, body)
	}
	return sent.ID, err
}

// sent is the answer to a call that posts or edits.
type sent struct {
	ID     string
	Embeds []json.RawMessage
}

// drops reports whether Discord has dropped the embeds of a body: the bot may not embed links there.
func (s sent) drops(body call.Message) bool { return len(body.Embeds) > 0 && len(s.Embeds) == 0 }

// asPlain returns a body that shows its card as text.
func asPlain(body call.Message) call.Message {
	body.Content, body.Embeds, body.Flags = body.Plain, nil, discordgo.MessageFlagsSuppressEmbeds
	body.Nonce, body.EnforceNonce, body.Reference = "", false, nil
	return body
}

// showPlain makes a message show its card as text. The call that posts may be repeated under its nonce, and then repeats this one.
func (s *Sender) showPlain(ctx context.Context, method, path, id string, body call.Message) error {
	switch {
	case method == http.MethodPatch:
	case strings.HasSuffix(path, "/messages"):
		path += "/" + id
	default: // of an interaction
		path += "/messages/" + id
	}
	return s.client.Send(ctx, http.MethodPatch, path, asPlain(body), nil)
}

// messageOf returns the part of a body that is the post's own.
func messageOf(post adapters.Post) call.Message {
	body := call.NewMessage(post.Text)
	body.Components = components(post.Buttons)
	return withCard(body, post)
}

// Edit replaces the text, the card and the buttons of a message of ours.
func (s *Sender) Edit(ctx context.Context, id string, post adapters.Post) error {
	if !payload.IsID(id) {
		return adapters.Permanently(fmt.Sprintf("%q is not a message of discord", id))
	}
	body := struct {
		call.Message
		Components []discordgo.MessageComponent `json:"components"` // an empty list removes the buttons
	}{Message: messageOf(post)}
	body.Components = append([]discordgo.MessageComponent{}, body.Message.Components...)
	var now sent
	err := s.change(ctx, http.MethodPatch, id, post, body, &now)
	if err == nil && now.drops(body.Message) {
		body.Message = asPlain(body.Message)
		err = s.change(ctx, http.MethodPatch, id, post, body, nil)
	}
	if err != nil {
		return call.WithAction("edit in discord channel "+post.To.Channel, err)
	}
	return nil
}

// Remove deletes a message of ours. A deleted message is no error.
func (s *Sender) Remove(ctx context.Context, id string, post adapters.Post) error {
	if !payload.IsID(id) {
		return adapters.Permanently(fmt.Sprintf("%q is not a message of discord", id))
	}
	err := s.change(ctx, http.MethodDelete, id, post, nil, nil)
	if err != nil && call.Code(err) != discordgo.ErrCodeUnknownMessage {
		return call.WithAction("delete in discord channel "+post.To.Channel, err)
	}
	return nil
}

// repliesFor is the time for which the refusal of references in a channel is remembered.
const repliesFor = time.Hour
