package live

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/bwmarrin/discordgo"

	"parley/adapters"
	"parley/adapters/discord/call"
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
	return r, asked, asked.Remember(ctx, a.memory.State, a.client.Now())
}

// refuseFor bounds how long a deferred response waits for a refusal.
const refuseFor = 30 * time.Second

// callback is a response to an interaction.
// https://docs.discord.com/developers/interactions/receiving-and-responding#interaction-response-object
type callback struct {
	Type discordgo.InteractionResponseType `json:"type"`
	Data *call.Message                     `json:"data,omitempty"`
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
	refused := call.NewMessage(words)
	refused.Flags |= discordgo.MessageFlagsEphemeral
	runs, known := outcome(ctx, inbox, receipt, a.Limits.Look)
	if known && !runs {
		_, _ = payload.BindResponse(ctx, a.memory.State, adapters.Post{To: adapters.Address{Place: payload.CommandPrefix + asked.ID}}, payload.RefusedKey)
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
	err := a.client.Send(ctx, http.MethodDelete, asked.Hook()+"/messages/@original", nil, nil)
	if err == nil {
		err = a.client.Send(ctx, http.MethodPost, asked.Hook(), refused, nil)
	}
	if err != nil {
		a.link.Log.Warn("the refusal of a command is not shown", "err", err)
	}
}

// refusedPress is shown to a person whose press of a button of ours answers nothing.
const refusedPress = "This question is closed or this button does nothing any more, or it isn't for you."

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
		if err = a.client.Send(ctx, http.MethodPost, path, response, nil); err == nil || call.Code(err) == discordgo.ErrCodeInteractionHasAlreadyBeenAcknowledged {
			return
		}
		if call.Code(err) != 0 || !wake.After(ctx, acceptPause) {
			break
		}
	}
	if ctx.Err() == nil {
		a.link.Log.Warn("an interaction gets no response in time", "interaction", asked.ID, "err", err)
	}
}
