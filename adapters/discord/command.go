package discord

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/bwmarrin/discordgo"

	"parley/adapters"
	"parley/adapters/discord/payload"
	"parley/ingest/wake"
)

// refusedText is shown to a person whose command starts no turn.
const refusedText = "Sorry, I can't answer you here."

// noteInteraction removes the token from an interaction's frame, so that it is not stored with
// the envelope. The token of a command goes to the state, because any node may answer.
func (a *accepts) noteInteraction(ctx context.Context, r received) (received, payload.Interaction, error) {
	var asked payload.Interaction
	if json.Unmarshal(r.data, &asked) != nil || !payload.IsID(asked.ID) || asked.Token == "" {
		return r, payload.Interaction{}, nil // intake reports the fault
	}
	hidden, _ := json.Marshal(asked.Token) // strings always encode
	r.body = bytes.ReplaceAll(r.body, hidden, []byte(`""`))
	if !asked.IsCommand() {
		return r, asked, nil
	}
	return r, asked, asked.Remember(ctx, a.state, a.now())
}

// refuseFor bounds how long a deferred response waits for a refusal.
const refuseFor = 30 * time.Second

// callback is a response to an interaction.
// https://docs.discord.com/developers/interactions/receiving-and-responding#interaction-response-object
type callback struct {
	Type discordgo.InteractionResponseType `json:"type"`
	Data *outgoing                         `json:"data,omitempty"`
}

// respond responds to an accepted interaction. A person whom the policy refuses, and one whose press
// of a button answers no question, sees a sentence alone. Otherwise the response is deferred; the
// answer to a command edits it.
func (a *accepts) respond(ctx context.Context, inbox adapters.Inbox, receipt adapters.Receipt, asked payload.Interaction) {
	words, deferred := refusedText, discordgo.InteractionResponseDeferredChannelMessageWithSource
	isPress := asked.Type == discordgo.InteractionMessageComponent
	switch {
	case isPress && !strings.HasPrefix(asked.Data.CustomID, adapters.ButtonPrefix):
		a.callback(ctx, asked, callback{Type: discordgo.InteractionResponseDeferredMessageUpdate})
		return
	case isPress:
		words, deferred = refusedPress, discordgo.InteractionResponseDeferredMessageUpdate
	case !asked.IsCommand():
		return
	}
	refused := content(words)
	refused.Flags |= discordgo.MessageFlagsEphemeral
	runs, known := outcome(ctx, inbox, receipt, a.limits.look)
	if known && !runs {
		_, _ = payload.BindResponse(ctx, a.state, adapters.Post{To: adapters.Address{Place: payload.CommandPrefix + asked.ID}}, payload.RefusedKey)
		a.callback(ctx, asked, callback{discordgo.InteractionResponseChannelMessageWithSource, &refused})
		return
	}
	a.callback(ctx, asked, callback{Type: deferred})
	if known || isPress {
		return
	}
	if runs, known = outcome(ctx, inbox, receipt, refuseFor); !known || runs {
		return
	}
	err := a.send(ctx, http.MethodDelete, asked.Hook()+"/messages/@original", nil, nil)
	if err == nil {
		err = a.send(ctx, http.MethodPost, asked.Hook(), refused, nil)
	}
	if err != nil {
		a.link.Log.Warn("the refusal of a command is not shown", "err", err)
	}
}

// refusedPress is shown to a person whose press of a button of ours answers nothing.
const refusedPress = "This question is closed, or you can't answer it."

// outcome waits for the decision about an envelope.
func outcome(ctx context.Context, inbox adapters.Inbox, receipt adapters.Receipt, within time.Duration) (runs, known bool) {
	results, ok := inbox.(adapters.Results)
	if !ok {
		return false, false
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return results.Runs(ctx, receipt.ID)
}

// callback makes the response to an interaction, at most three times. "Already acknowledged" is
// success.
func (a *accepts) callback(ctx context.Context, asked payload.Interaction, response callback) {
	path := "/interactions/" + asked.ID + "/" + asked.Token + "/callback"
	var err error
	for range 3 {
		if err = a.send(ctx, http.MethodPost, path, response, nil); err == nil || refusedCode(err) == discordgo.ErrCodeInteractionHasAlreadyBeenAcknowledged {
			return
		}
		if refusedCode(err) != 0 || !wake.After(ctx, acceptPause) {
			break
		}
	}
	if ctx.Err() == nil {
		a.link.Log.Warn("an interaction gets no response in time", "interaction", asked.ID, "err", err)
	}
}

// answer edits the deferred response to a command. done is false if the post is not the first
// one of the answer, or if the response can no longer be edited; the post is then an ordinary
// message.
func (a *Adapter) answer(ctx context.Context, post adapters.Post) (id string, done bool, err error) {
	asked := strings.TrimPrefix(post.To.Place, payload.CommandPrefix)
	age := a.now().Sub(payload.TimeOf(asked))
	if age > payload.AnswerFor {
		return "", false, nil
	}
	mine, err := payload.BindResponse(ctx, a.state, post, post.Key)
	switch {
	case err != nil:
		return "", false, &adapters.SendError{Failure: adapters.NotSent, Err: fmt.Errorf("read the interactions: %w", err)}
	case mine.ID == "":
		return "", false, nil
	}
	id, done, err = a.editResponse(ctx, post, mine, age)
	if failure, ok := errors.AsType[*adapters.SendError](err); ok && failure.Failure != adapters.Unclear {
		a.release(ctx, post)
	}
	return id, done, err
}

// release lets another post edit the response, because this one has not: a live preview that
// fails is not sent again, and the answer has another key. Without it, the answer is an ordinary
// message.
func (a *Adapter) release(ctx context.Context, post adapters.Post) {
	if strings.HasPrefix(post.To.Place, payload.CommandPrefix) {
		_, _ = payload.BindResponse(ctx, a.state, post, "")
	}
}

// dismiss deletes the deferred responses that no post has edited, of the commands of a channel up to
// the message that an ended run has answered: a run ended without a post, or answered a later message
// of its turn. It does not delete the response to a command whose turn comes later.
func (a *Adapter) dismiss(ctx context.Context, sign adapters.Sign) error {
	last := strings.TrimPrefix(sign.Message, payload.CommandPrefix)
	list, err := payload.Interactions(ctx, a.state)
	if err != nil {
		return &adapters.SendError{Failure: adapters.NotSent, Err: fmt.Errorf("read the interactions: %w", err)}
	}
	for _, i := range list {
		if i.Channel != sign.To.Channel || i.Key != "" || !payload.IsID(last) || payload.CompareIDs(i.ID, last) > 0 {
			continue
		}
		err := a.send(ctx, http.MethodDelete, i.Hook()+"/messages/@original", nil, nil)
		if err == nil || refusedStatus(err) != 0 { // a refusal means that there is no response
			err = i.Forget(ctx, a.state)
		}
		if err != nil {
			return sendError("delete the response to a command", err)
		}
	}
	return nil
}

// responded is the age of an interaction at which it surely has a response.
const responded = 10 * time.Second

// editResponse edits the deferred response. While it may not exist yet, a refusal is no reason to
// post an ordinary message. The call can be repeated after any failure.
func (a *Adapter) editResponse(ctx context.Context, post adapters.Post, asked payload.Interaction, age time.Duration) (id string, done bool, err error) {
	path := asked.Hook() + "/messages/@original"
	body := content(post.Text)
	body.Components = components(post.Buttons)
	id, err = a.publish(ctx, http.MethodPatch, path, post.File, body)
	switch code := refusedCode(err); {
	case err == nil:
		return id, true, nil
	case code == discordgo.ErrCodeUnknownWebhook || code == discordgo.ErrCodeUnknownMessage || code == discordgo.ErrCodeInvalidWebhookTokenProvided:
		if age > responded {
			return "", false, nil
		}
		err = &adapters.SendError{Failure: adapters.NotSent, Err: err}
	}
	return "", false, sendError("answer a command", err)
}

// change calls the route of a message of ours. If the bot may not do so in its channel, the message
// can only be part of the answer to a command, which people can use everywhere.
func (a *Adapter) change(ctx context.Context, method, id string, post adapters.Post, body any) error {
	post, err := payload.Placed(ctx, a.state, post)
	if err != nil {
		return err
	}
	err = a.send(ctx, method, messagePath(post.To.Channel, id), body, nil)
	if asked, ok := payload.OpenInteraction(ctx, a.state, post, a.now()); ok && isForbidden(err) {
		return a.send(ctx, method, asked.Hook()+"/messages/"+id, body, nil)
	}
	return err
}

// followUp posts a further part of the answer to a command where the bot may not write. Discord
// enforces no nonce there.
// https://docs.discord.com/developers/interactions/receiving-and-responding#create-followup-message
func (a *Adapter) followUp(ctx context.Context, asked payload.Interaction, post adapters.Post, body outgoing) (string, error) {
	body.Nonce, body.EnforceNonce, body.Reference = "", false, nil
	return a.publish(ctx, http.MethodPost, asked.Hook(), post.File, body)
}

// upsertCommands registers the commands globally. Commands with other names stay.
// https://docs.discord.com/developers/interactions/application-commands#create-global-application-command
func (a *accepts) upsertCommands(ctx context.Context, app string) {
	for wait := a.limits.backoffMin; ; wait = min(2*wait, a.limits.backoffMax) {
		var err error
		for _, c := range payload.Commands {
			if err == nil {
				err = a.send(ctx, http.MethodPost, "/applications/"+app+"/commands", c, nil)
			}
		}
		if err == nil || ctx.Err() != nil {
			return
		}
		a.link.Log.Warn("the commands are not registered", "err", err)
		if refusedStatus(err) != 0 || !wake.After(ctx, wait) {
			return
		}
	}
}
