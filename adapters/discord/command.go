package discord

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/bwmarrin/discordgo"

	"parley/adapters"
	"parley/ingest/wake"
)

const (
	// commandPrefix and actionPrefix begin the external ids of interactions, because an
	// interaction is no message.
	commandPrefix, actionPrefix = "command-", "action-"
	// askCommand is the name of the slash command, and askMessage that of the message command.
	askCommand, askMessage = "ask", "Ask about this"
	// answerFor is the age up to which an interaction is answered: its deferred response is edited,
	// and follow-up messages are posted. Discord's limit is 15 minutes.
	// https://docs.discord.com/developers/interactions/receiving-and-responding#followup-messages
	answerFor = 15*time.Minute - 10*time.Second
	// refuseFor bounds how long a deferred response waits for a refusal.
	refuseFor = 30 * time.Second
	// interactionsName is the name of the open interactions in the state.
	interactionsName = "interactions"
	// refusedKey is the Key of a refused command, whose response is a sentence that its sender alone
	// sees. A notice about the refusal edits it, and the end of a run does not delete it.
	refusedKey = "refused"
)

// refusedText is shown to a person whose command starts no turn.
const refusedText = "Sorry, I can't answer you here."

// interaction is a command or a press of a button. The token lets the bot respond; it is valid
// for 15 minutes.
type interaction struct {
	ID      string `json:"id"`
	App     string `json:"application_id"`
	Channel string `json:"channel_id"`
	Token   string `json:"token"`
	// Key is the key of the post that edits the deferred response; empty for none yet.
	Key  string                    `json:"key,omitempty"`
	Type discordgo.InteractionType `json:"type,omitempty"`
	Data struct {
		Type discordgo.ApplicationCommandType `json:"type"`
		Name string                           `json:"name"`
		// CustomID is the id of a used component.
		CustomID string `json:"custom_id,omitempty"`
	} `json:"data,omitzero"`
}

// hook is the path of the calls about the responses to the interaction.
func (i interaction) hook() string { return "/webhooks/" + i.App + "/" + i.Token }

// isCommand reports whether the interaction is a command that the bot registers.
func (i interaction) isCommand() bool {
	return i.Type == discordgo.InteractionApplicationCommand && isOurs(i.Data.Type, i.Data.Name)
}

// noteInteraction removes the token from an interaction's frame, so that it is not stored with
// the envelope. The token of a command goes to the state, because any node may answer.
func (a *accepts) noteInteraction(ctx context.Context, r received) (received, interaction, error) {
	var asked interaction
	if json.Unmarshal(r.data, &asked) != nil || !isSnowflake(asked.ID) || asked.Token == "" {
		return r, interaction{}, nil // intake reports the fault
	}
	hidden, _ := json.Marshal(asked.Token) // strings always encode
	r.body = bytes.ReplaceAll(r.body, hidden, []byte(`""`))
	if !asked.isCommand() {
		return r, asked, nil
	}
	err := adapters.UpdateList(ctx, a.state, interactionsName, func(list []interaction) []interaction {
		list = slices.DeleteFunc(list, func(i interaction) bool { return a.now().Sub(snowflakeTime(i.ID)) > answerFor })
		if slices.ContainsFunc(list, func(i interaction) bool { return i.ID == asked.ID }) {
			return list
		}
		return append(list, interaction{ID: asked.ID, App: asked.App, Channel: asked.Channel, Token: asked.Token})
	})
	if err != nil {
		return r, asked, fmt.Errorf("store an interaction: %w", err)
	}
	return r, asked, nil
}

// callback is a response to an interaction.
// https://docs.discord.com/developers/interactions/receiving-and-responding#interaction-response-object
type callback struct {
	Type discordgo.InteractionResponseType `json:"type"`
	Data *outgoing                         `json:"data,omitempty"`
}

// respond responds to an accepted interaction. A person whom the policy refuses, and one whose press
// of a button answers no question, sees a sentence alone. Otherwise the response is deferred; the
// answer to a command edits it.
func (a *accepts) respond(ctx context.Context, inbox adapters.Inbox, receipt adapters.Receipt, asked interaction) {
	words, deferred := refusedText, discordgo.InteractionResponseDeferredChannelMessageWithSource
	isPress := asked.Type == discordgo.InteractionMessageComponent
	switch {
	case isPress && !strings.HasPrefix(asked.Data.CustomID, adapters.ButtonPrefix):
		a.callback(ctx, asked, callback{Type: discordgo.InteractionResponseDeferredMessageUpdate})
		return
	case isPress:
		words, deferred = refusedPress, discordgo.InteractionResponseDeferredMessageUpdate
	case !asked.isCommand():
		return
	}
	refused := content(words)
	refused.Flags |= discordgo.MessageFlagsEphemeral
	runs, known := outcome(ctx, inbox, receipt, a.limits.look)
	if known && !runs {
		_, _ = a.bind(ctx, adapters.Post{To: adapters.Address{Place: commandPrefix + asked.ID}}, refusedKey)
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
	err := a.send(ctx, http.MethodDelete, asked.hook()+"/messages/@original", nil, nil)
	if err == nil {
		err = a.send(ctx, http.MethodPost, asked.hook(), refused, nil)
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
func (a *accepts) callback(ctx context.Context, asked interaction, response callback) {
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
	asked := strings.TrimPrefix(post.To.Place, commandPrefix)
	age := a.now().Sub(snowflakeTime(asked))
	if age > answerFor {
		return "", false, nil
	}
	mine, err := a.bind(ctx, post, post.Key)
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

// bind stores the key of the post that edits the response to a command, and returns the
// interaction; a zero one if it is unknown or bound to another post.
func (a *Adapter) bind(ctx context.Context, post adapters.Post, key string) (mine interaction, err error) {
	asked := strings.TrimPrefix(post.To.Place, commandPrefix)
	err = adapters.UpdateList(ctx, a.state, interactionsName, func(list []interaction) []interaction {
		mine = interaction{}
		for i := range list {
			if list[i].ID == asked && slices.Contains([]string{"", refusedKey, post.Key}, list[i].Key) {
				list[i].Key = key
				mine = list[i]
			}
		}
		return list
	})
	return mine, err
}

// release lets another post edit the response, because this one has not: a live preview that
// fails is not sent again, and the answer has another key. Without it, the answer is an ordinary
// message.
func (a *Adapter) release(ctx context.Context, post adapters.Post) {
	if strings.HasPrefix(post.To.Place, commandPrefix) {
		_, _ = a.bind(ctx, post, "")
	}
}

// dismiss deletes the deferred responses that no post has edited, of the commands of a channel up to
// the message that an ended run has answered: a run ended without a post, or answered a later message
// of its turn. It does not delete the response to a command whose turn comes later.
func (a *Adapter) dismiss(ctx context.Context, sign adapters.Sign) error {
	last := strings.TrimPrefix(sign.Message, commandPrefix)
	list, err := adapters.GetList[interaction](ctx, a.state, interactionsName)
	if err != nil {
		return &adapters.SendError{Failure: adapters.NotSent, Err: fmt.Errorf("read the interactions: %w", err)}
	}
	for _, i := range list {
		if i.Channel != sign.To.Channel || i.Key != "" || !isSnowflake(last) || compareIDs(i.ID, last) > 0 {
			continue
		}
		err := a.send(ctx, http.MethodDelete, i.hook()+"/messages/@original", nil, nil)
		if err == nil || refusedStatus(err) != 0 { // a refusal means that there is no response
			err = adapters.UpdateList(ctx, a.state, interactionsName, func(list []interaction) []interaction {
				return slices.DeleteFunc(list, func(other interaction) bool { return other.ID == i.ID })
			})
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
func (a *Adapter) editResponse(ctx context.Context, post adapters.Post, asked interaction, age time.Duration) (id string, done bool, err error) {
	path := asked.hook() + "/messages/@original"
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
	post, err := a.placed(ctx, post)
	if err != nil {
		return err
	}
	err = a.send(ctx, method, messagePath(post.To.Channel, id), body, nil)
	if asked, ok := a.open(ctx, post); ok && isForbidden(err) {
		return a.send(ctx, method, asked.hook()+"/messages/"+id, body, nil)
	}
	return err
}

// open returns the command that a post answers, if Discord still takes messages about it.
func (a *Adapter) open(ctx context.Context, post adapters.Post) (asked interaction, ok bool) {
	id, isCommand := strings.CutPrefix(post.To.Place, commandPrefix)
	if !isCommand || a.now().Sub(snowflakeTime(id)) > answerFor {
		return interaction{}, false
	}
	list, _ := adapters.GetList[interaction](ctx, a.state, interactionsName) // without it, the refusal stands
	at := slices.IndexFunc(list, func(i interaction) bool { return i.ID == id })
	if at < 0 {
		return interaction{}, false
	}
	return list[at], true
}

// followUp posts a further part of the answer to a command where the bot may not write. Discord
// enforces no nonce there.
// https://docs.discord.com/developers/interactions/receiving-and-responding#create-followup-message
func (a *Adapter) followUp(ctx context.Context, asked interaction, post adapters.Post, body outgoing) (string, error) {
	body.Nonce, body.EnforceNonce, body.Reference = "", false, nil
	return a.publish(ctx, http.MethodPost, asked.hook(), post.File, body)
}

// commands are the commands of the bot. Those without options ask the agent nothing.
var commands = []discordgo.ApplicationCommand{
	{Type: discordgo.ChatApplicationCommand, Name: askCommand, Description: "Ask the agent", Options: []*discordgo.ApplicationCommandOption{
		{Type: discordgo.ApplicationCommandOptionString, Name: "question", Description: "Your question", Required: true},
	}},
	{Type: discordgo.MessageApplicationCommand, Name: askMessage},
	{Type: discordgo.ChatApplicationCommand, Name: "new", Description: "Begin a new context here"},
	{Type: discordgo.ChatApplicationCommand, Name: "status", Description: "Tell what the agent is doing here"},
	{Type: discordgo.ChatApplicationCommand, Name: "stop", Description: "Stop what the agent is doing here"},
}

// upsertCommands registers the commands globally. Commands with other names stay.
// https://docs.discord.com/developers/interactions/application-commands#create-global-application-command
func (a *accepts) upsertCommands(ctx context.Context, app string) {
	for wait := a.limits.backoffMin; ; wait = min(2*wait, a.limits.backoffMax) {
		var err error
		for _, c := range commands {
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
