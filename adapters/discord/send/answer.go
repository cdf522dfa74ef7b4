package send

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/bwmarrin/discordgo"

	"parley/adapters"
	"parley/adapters/discord/call"
	"parley/adapters/discord/payload"
)

// answer edits the deferred response to a command. done is false if the post is not the first
// one of the answer, or if the response can no longer be edited; the post is then an ordinary
// message.
func (s *Sender) answer(ctx context.Context, post adapters.Post) (id string, done bool, err error) {
	asked := strings.TrimPrefix(post.To.Place, payload.CommandPrefix)
	age := s.client.Now().Sub(payload.TimeOf(asked))
	if age > payload.AnswerFor {
		return "", false, nil
	}
	mine, err := payload.BindResponse(ctx, s.memory.State, post, post.Key)
	switch {
	case err != nil:
		return "", false, &adapters.SendError{Failure: adapters.NotSent, Err: fmt.Errorf("read the interactions: %w", err)}
	case mine.ID == "":
		return "", false, nil
	}
	id, done, err = s.editResponse(ctx, post, mine, age)
	if failure, ok := errors.AsType[*adapters.SendError](err); ok && failure.Failure != adapters.Unclear {
		s.release(ctx, post)
	}
	return id, done, err
}

// release lets another post edit the response, because this one has not: a live preview that
// fails is not sent again, and the answer has another key. Without it, the answer is an ordinary
// message.
func (s *Sender) release(ctx context.Context, post adapters.Post) {
	if strings.HasPrefix(post.To.Place, payload.CommandPrefix) {
		_, _ = payload.BindResponse(ctx, s.memory.State, post, "")
	}
}

// dismiss deletes the deferred responses that no post has edited, of the commands of a channel up to
// the message that an ended run has answered: a run ended without a post, or answered a later message
// of its turn. It does not delete the response to a command whose turn comes later.
func (s *Sender) dismiss(ctx context.Context, sign adapters.Sign) error {
	last := strings.TrimPrefix(sign.Message, payload.CommandPrefix)
	list, err := payload.Interactions(ctx, s.memory.State)
	if err != nil {
		return &adapters.SendError{Failure: adapters.NotSent, Err: fmt.Errorf("read the interactions: %w", err)}
	}
	for _, i := range list {
		if i.Channel != sign.To.Channel || i.Key != "" || !payload.IsID(last) || payload.CompareIDs(i.ID, last) > 0 {
			continue
		}
		err := s.client.Send(ctx, http.MethodDelete, i.Hook()+"/messages/@original", nil, nil)
		if err == nil || call.Status(err) != 0 { // a refusal means that there is no response
			err = i.Forget(ctx, s.memory.State)
		}
		if err != nil {
			return call.WithAction("delete the response to a command", err)
		}
	}
	return nil
}

// responded is the age of an interaction at which it surely has a response.
const responded = 10 * time.Second

// editResponse edits the deferred response. While it may not exist yet, a refusal is no reason to
// post an ordinary message. The call can be repeated after any failure.
func (s *Sender) editResponse(ctx context.Context, post adapters.Post, asked payload.Interaction, age time.Duration) (id string, done bool, err error) {
	path := asked.Hook() + "/messages/@original"
	body := messageOf(post)
	id, err = s.publish(ctx, http.MethodPatch, path, post.File, body)
	switch code := call.Code(err); {
	case err == nil:
		return id, true, nil
	case code == discordgo.ErrCodeUnknownWebhook || code == discordgo.ErrCodeUnknownMessage || code == discordgo.ErrCodeInvalidWebhookTokenProvided:
		if age > responded {
			return "", false, nil
		}
		err = &adapters.SendError{Failure: adapters.NotSent, Err: err}
	}
	return "", false, call.WithAction("answer a command", err)
}

// change calls the route of a message of ours. If the bot may not do so in its channel, the message
// can only be part of the answer to a command, which people can use everywhere.
func (s *Sender) change(ctx context.Context, method, id string, post adapters.Post, body, answer any) error {
	post, err := payload.Placed(ctx, s.memory.State, post)
	if err != nil {
		return err
	}
	err = s.client.Send(ctx, method, call.MessagePath(post.To.Channel, id), body, answer)
	if asked, ok := payload.OpenInteraction(ctx, s.memory.State, post, s.client.Now()); ok && call.IsForbidden(err) {
		return s.client.Send(ctx, method, asked.Hook()+"/messages/"+id, body, answer)
	}
	return err
}

// followUp posts a further part of the answer to a command where the bot may not write. Discord
// enforces no nonce there.
// https://docs.discord.com/developers/interactions/receiving-and-responding#create-followup-message
func (s *Sender) followUp(ctx context.Context, asked payload.Interaction, post adapters.Post, body call.Message) (string, error) {
	body.Nonce, body.EnforceNonce, body.Reference = "", false, nil
	return s.publish(ctx, http.MethodPost, asked.Hook(), post.File, body)
}
