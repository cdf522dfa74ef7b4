package ingest

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"unicode"

	"parley/adapters"
	"parley/ingest/event"
)

// react judges a reaction. If the channel's settings ask for it, an admitted reaction is
// also a message of its sender.
func (w *workspace) react(ctx context.Context, g gate, r *resolved) error {
	r.Ignored = w.refusesReaction(ctx, g, r)
	switch {
	case r.Ignored != "" || !g.Policy.Reactions:
		return nil
	case w.ownID() == "" && r.Reaction.IsFromMe == nil && w.config.Facts == nil: // the reaction may be ours
		return errNeedsSelf
	}
	r.Message = w.reactionMessage(ctx, r)
	return nil
}

// refusesReaction returns the reason for which a reaction is ignored. It is empty for an admitted one.
// The removal of all reactions has no sender, and removes only admitted ones. If the payload does not
// show whether a bot reacted, and that matters, the directory decides.
func (w *workspace) refusesReaction(ctx context.Context, g gate, e *resolved) string {
	r := e.Reaction
	switch {
	case r.All:
		g.Policy.AllowUsers, g.Policy.AllowRoles, g.Policy.AllowGroups, g.Policy.AllowBots = nil, nil, nil, nil
	case r.SenderID == w.ownID():
		return event.ReasonOwnMessage
	case r.TextMessage && g.Policy.sms() == SMSIgnored:
		return event.ReasonSMS
	}
	as := func(kind event.SenderType) string {
		return g.refusesHere(sender{id: r.SenderID, kind: kind}, event.Channel{ID: e.channel})
	}
	if r.SenderType != "" || as(event.Human) == as(event.Bot) || r.All {
		return as(cmp.Or(r.SenderType, event.Human))
	}
	_, id, _ := strings.Cut(r.SenderID, ":")
	if user, _ := w.config.Names.User(ctx, id); user.IsBot {
		return as(event.Bot)
	}
	return as(event.Human)
}

// reactionMessage returns a reaction as a message in its sender's own name. The message
// answers the target of the reaction, which the journal quotes. It is nil if the event
// removes a reaction.
//
// The message is passive unless the directory knows its sender. Otherwise the agent could
// answer a program that reacts to each answer, without end.
func (w *workspace) reactionMessage(ctx context.Context, e *resolved) *event.Message {
	r := e.Reaction
	if r.Removed || r.All || len(e.Targets) == 0 {
		return nil
	}
	_, id, _ := strings.Cut(r.SenderID, ":")
	user, known := adapters.User{DisplayName: r.SenderName}, true
	if r.SenderName == "" {
		user, known = w.config.Names.User(ctx, id)
	}
	guess := event.Human
	if user.IsBot {
		guess = event.Bot
	}
	kind := cmp.Or(r.SenderType, guess)
	m := &event.Message{
		ExternalID: "reaction/" + e.dedupe, Channel: event.Channel{ID: e.channel}, Content: emojiText(r.Emoji), ReplyTo: e.Targets[0],
		Passive: r.SenderType == "" && !known, TextMessage: r.TextMessage,
		Metadata: event.Metadata{
			Source: string(w.config.Platform), SenderID: r.SenderID, SenderDisplayName: event.Text(cmp.Or(user.DisplayName, id)),
			SenderType: kind, ChannelExternalID: cmp.Or(r.ChannelExternalID, e.channel), IsFromMe: r.IsFromMe, MessageGUID: r.GUID,
			Extra: reactionExtra(w.config.Platform, r.Emoji, e.Targets[0]),
		},
	}
	if kind == event.Human {
		m.Metadata.MentionToken = r.MentionToken
	}
	return m
}

// reactionExtra returns the metadata key "<platform>_reaction", which contains the emoji
// and the target message: {"emoji","message_id"}.
func reactionExtra(platform event.Platform, emoji, target string) []event.Extra {
	value, _ := json.Marshal(struct { // strings always encode
		Emoji  string `json:"emoji"`
		Target string `json:"message_id"`
	}{emoji, target})
	return []event.Extra{{Key: string(platform) + "_reaction", Value: value}}
}

// emojiText returns an emoji as a user types it: a name between colons, such as
// ":tomato:" or ":+1::skin-tone-2:", or the emoji itself. Discord writes a guild's own
// emoji as "name:id"; people see the name.
func emojiText(emoji string) string {
	if name, id, found := strings.Cut(emoji, ":"); found && id != "" && strings.Trim(id, "0123456789") == "" {
		emoji = name
	}
	isName := strings.ContainsFunc(emoji, unicode.IsLetter) || !strings.ContainsFunc(emoji, func(r rune) bool { return r > unicode.MaxASCII })
	if isName {
		return ":" + emoji + ":"
	}
	return emoji
}
