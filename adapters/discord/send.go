package discord

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/bwmarrin/discordgo"

	"parley/adapters"
	"parley/adapters/discord/payload"
	"parley/ingest/event"
)

// maxAllowed is the greatest number of users in allowed_mentions.
// https://docs.discord.com/developers/resources/message#allowed-mentions-object
const maxAllowed = 100

// Address returns the thread's channel. Its Place is the id of the answered message.
func (a *Adapter) Address(thread event.ThreadKey, answered string) (adapters.Address, error) {
	return payload.AddressOf(a.workspace, thread, answered)
}

// outgoing is the body of a call that posts or edits. discordgo's has no nonce.
// https://docs.discord.com/developers/resources/message#create-message
type outgoing struct {
	Content         string                           `json:"content"`
	Flags           discordgo.MessageFlags           `json:"flags"`
	AllowedMentions discordgo.MessageAllowedMentions `json:"allowed_mentions"`
	Nonce           string                           `json:"nonce,omitempty"`
	EnforceNonce    bool                             `json:"enforce_nonce,omitempty"`
	Reference       *discordgo.MessageReference      `json:"message_reference,omitempty"`
	Components      []discordgo.MessageComponent     `json:"components,omitempty"`
}

// content returns the part of a body that posts and edits share. It pings the users whose tokens
// are in the text: Format has disabled all tokens but those of known users. Links have no previews.
func content(text string) outgoing {
	mentions := discordgo.MessageAllowedMentions{Parse: []discordgo.AllowedMentionType{}}
	for _, match := range mentionToken.FindAllStringSubmatch(text, -1) {
		if len(mentions.Users) < maxAllowed && !slices.Contains(mentions.Users, match[1]) {
			mentions.Users = append(mentions.Users, match[1])
		}
	}
	return outgoing{Content: text, Flags: discordgo.MessageFlagsSuppressEmbeds, AllowedMentions: mentions}
}

// mentionToken matches the token of a user.
var mentionToken = regexp.MustCompile(`<@!?([0-9]{1,20})>`)

// Send posts a message under its key as an enforced nonce. The first post of an answer to a
// command edits the deferred response, and further ones follow it up where the bot may not write. A post in a thread that does not exist yet opens it.
func (a *Adapter) Send(ctx context.Context, post adapters.Post) (string, error) {
	if strings.HasPrefix(post.To.Place, payload.CommandPrefix) {
		if id, done, err := a.answer(ctx, post); done || err != nil {
			return id, err
		}
	}
	post, err := a.openThread(ctx, post)
	if err != nil {
		return "", err
	}
	body := content(post.Text)
	body.Components = components(post.Buttons)
	body.Nonce, body.EnforceNonce = post.Key, post.Key != ""
	replies := "reply " + post.To.Channel
	refer := a.config.Reply && payload.IsID(post.To.Place) && a.paces.left(replies, a.now()) == 0
	if refer {
		body.Reference = &discordgo.MessageReference{MessageID: post.To.Place, FailIfNotExists: new(bool)}
	}
	path := "/channels/" + post.To.Channel + "/messages"
	id, err := a.publish(ctx, http.MethodPost, path, post.File, body)
	if refer && refusedCode(err) == discordgo.ErrCodeCannotReplyWithoutPermissionToReadMessageHistory { // the call had no effect
		a.paces.rest(replies, a.now().Add(repliesFor))
		body.Reference = nil
		id, err = a.publish(ctx, http.MethodPost, path, post.File, body)
	}
	if isForbidden(err) {
		if asked, ok := payload.OpenInteraction(ctx, a.state, post, a.now()); ok {
			id, err = a.followUp(ctx, asked, post, body)
		}
	}
	if err != nil {
		return "", sendError("post in discord channel "+post.To.Channel, err)
	}
	a.nonces.add(post.Key, id)
	return id, nil
}

// publish calls a route that posts or edits, with a file unless that is nil, and returns the id of the
// message.
func (a *Adapter) publish(ctx context.Context, method, path string, file *adapters.File, body outgoing) (id string, err error) {
	var sent struct{ ID string }
	if file == nil {
		err = a.send(ctx, method, path, body, &sent)
	} else {
		err = a.sendFile(ctx, method, path, file, body, &sent)
	}
	if err == nil && !payload.IsID(sent.ID) {
		err = &adapters.SendError{Failure: adapters.Unclear, Err: errors.New("the answer has no message id")}
	}
	return sent.ID, err
}

// Edit replaces the text and the buttons of a message of ours.
func (a *Adapter) Edit(ctx context.Context, id string, post adapters.Post) error {
	if !payload.IsID(id) {
		return adapters.Permanently(fmt.Sprintf("%q is not a message of discord", id))
	}
	body := struct {
		outgoing
		Components []discordgo.MessageComponent `json:"components"` // an empty list removes the buttons
	}{content(post.Text), append([]discordgo.MessageComponent{}, components(post.Buttons)...)}
	err := a.change(ctx, http.MethodPatch, id, post, body)
	if err != nil {
		return sendError("edit in discord channel "+post.To.Channel, err)
	}
	return nil
}

// Remove deletes a message of ours. A deleted message is no error.
func (a *Adapter) Remove(ctx context.Context, id string, post adapters.Post) error {
	if !payload.IsID(id) {
		return adapters.Permanently(fmt.Sprintf("%q is not a message of discord", id))
	}
	err := a.change(ctx, http.MethodDelete, id, post, nil)
	if err != nil && refusedCode(err) != discordgo.ErrCodeUnknownMessage {
		return sendError("delete in discord channel "+post.To.Channel, err)
	}
	return nil
}

func messagePath(channel, id string) string { return "/channels/" + channel + "/messages/" + id }

// repliesFor is the time for which the refusal of references in a channel is remembered.
const repliesFor = time.Hour
