package payload

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bwmarrin/discordgo"

	"parley/adapters"
)

const (
	// AnswerFor is the age up to which an interaction is answered: its deferred response is edited,
	// and follow-up messages are posted. Discord's limit is 15 minutes.
	// https://docs.discord.com/developers/interactions/receiving-and-responding#followup-messages
	AnswerFor = 15*time.Minute - 10*time.Second
	// interactionsName is the name of the open interactions in the state.
	interactionsName = "interactions"
	// RefusedKey is the Key of a refused command, whose response is a sentence that its sender alone
	// sees. A notice about the refusal edits it, and the end of a run does not delete it.
	RefusedKey = "refused"
)

// Interaction is a command or a press of a button. The token lets the bot respond; it is valid
// for 15 minutes.
type Interaction struct {
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

// Hook is the path of the calls about the responses to the interaction.
func (i Interaction) Hook() string { return "/webhooks/" + i.App + "/" + i.Token }

// IsCommand reports whether the interaction is a command that the bot registers.
func (i Interaction) IsCommand() bool {
	return i.Type == discordgo.InteractionApplicationCommand && isOurs(i.Data.Type, i.Data.Name)
}

// Remember stores the interaction with its token, because any node may answer. It removes the
// interactions that can no longer be answered.
func (i Interaction) Remember(ctx context.Context, state adapters.State, now time.Time) error {
	err := adapters.UpdateList(ctx, state, interactionsName, func(list []Interaction) []Interaction {
		list = slices.DeleteFunc(list, func(old Interaction) bool { return now.Sub(TimeOf(old.ID)) > AnswerFor })
		if slices.ContainsFunc(list, func(known Interaction) bool { return known.ID == i.ID }) {
			return list
		}
		return append(list, Interaction{ID: i.ID, App: i.App, Channel: i.Channel, Token: i.Token})
	})
	if err != nil {
		return fmt.Errorf("store an interaction: %w", err)
	}
	return nil
}

// BindResponse stores the key of the post that edits the response to a command, and returns the
// interaction; a zero one if it is unknown or bound to another post.
func BindResponse(ctx context.Context, state adapters.State, post adapters.Post, key string) (mine Interaction, err error) {
	asked := strings.TrimPrefix(post.To.Place, CommandPrefix)
	err = adapters.UpdateList(ctx, state, interactionsName, func(list []Interaction) []Interaction {
		mine = Interaction{}
		for i := range list {
			if list[i].ID == asked && slices.Contains([]string{"", RefusedKey, post.Key}, list[i].Key) {
				list[i].Key = key
				mine = list[i]
			}
		}
		return list
	})
	return mine, err
}

// OpenInteraction returns the command that a post answers, if Discord still takes messages about it.
func OpenInteraction(ctx context.Context, state adapters.State, post adapters.Post, now time.Time) (asked Interaction, ok bool) {
	id, isCommand := strings.CutPrefix(post.To.Place, CommandPrefix)
	if !isCommand || now.Sub(TimeOf(id)) > AnswerFor {
		return Interaction{}, false
	}
	list, _ := Interactions(ctx, state) // without it, the refusal stands
	at := slices.IndexFunc(list, func(i Interaction) bool { return i.ID == id })
	if at < 0 {
		return Interaction{}, false
	}
	return list[at], true
}

// Interactions returns the stored interactions.
func Interactions(ctx context.Context, state adapters.State) ([]Interaction, error) {
	return adapters.GetList[Interaction](ctx, state, interactionsName)
}

// Forget removes the interaction from the state.
func (i Interaction) Forget(ctx context.Context, state adapters.State) error {
	return adapters.UpdateList(ctx, state, interactionsName, func(list []Interaction) []Interaction {
		return slices.DeleteFunc(list, func(other Interaction) bool { return other.ID == i.ID })
	})
}
