package ingest

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"unicode"

	"parley/ingest/event"
)

// react judges a reaction. If the channel's settings ask for it, a reaction that is admitted is
// also a message of its sender's.
func (w *workspace) react(ctx context.Context, g gate, e *event.Event, dedupe, channel string) error {
	e.Ignored = g.reaction(e.Reaction, channel, w.ownID())
	switch {
	case e.Ignored != "" || !g.Policy.Reactions:
		return nil
	case w.ownID() == "" && w.config.Facts == nil: // it may be ours
		return errNeedsSelf
	}
	e.Message = w.doing(ctx, e, dedupe, channel)
	return nil
}

// doing is a reaction as a message in its sender's own name. It answers the message that
// it was put on, which the journal quotes. It is nil if the reaction is taken away.
//
// The message is passive unless the directory knows its sender. Otherwise the agent could
// answer a program that reacts to each answer, without end.
func (w *workspace) doing(ctx context.Context, e *event.Event, dedupe, channel string) *event.Message {
	r := e.Reaction
	if r.Removed || r.All || len(e.Targets) == 0 {
		return nil
	}
	_, id, _ := strings.Cut(r.SenderID, ":")
	user, known := w.config.Names.User(ctx, id)
	guess := event.Human
	if user.IsBot {
		guess = event.Bot
	}
	sender := cmp.Or(r.SenderType, guess)
	m := &event.Message{
		ExternalID: "reaction/" + dedupe, Channel: event.Channel{ID: channel}, Content: spelled(r.Emoji), ReplyTo: e.Targets[0],
		Passive: r.SenderType == "" && !known,
		Metadata: event.Metadata{
			Source: string(w.config.Platform), SenderID: r.SenderID, SenderDisplayName: event.Text(cmp.Or(user.DisplayName, id)),
			SenderType: sender, ChannelExternalID: channel, Extra: reactionExtra(w.config.Platform, r.Emoji, e.Targets[0]),
		},
	}
	if sender == event.Human {
		m.Metadata.MentionToken = r.MentionToken
	}
	return m
}

// reactionExtra is the metadata key "<platform>_reaction", which tells the emoji and the
// message: {"emoji","message_id"}.
func reactionExtra(platform event.Platform, emoji, target string) []event.Extra {
	value, _ := json.Marshal(struct { // strings always encode
		Emoji  string `json:"emoji"`
		Target string `json:"message_id"`
	}{emoji, target})
	return []event.Extra{{Key: string(platform) + "_reaction", Value: value}}
}

// spelled is an emoji as it is typed: a name between colons, such as ":tomato:"
// or ":+1::skin-tone-2:", or the emoji itself. Of "name:id", which Discord has
// for a guild's own, the name is what people see.
func spelled(emoji string) string {
	if name, id, found := strings.Cut(emoji, ":"); found && id != "" && strings.Trim(id, "0123456789") == "" {
		emoji = name
	}
	isName := strings.ContainsFunc(emoji, unicode.IsLetter) || !strings.ContainsFunc(emoji, func(r rune) bool { return r > unicode.MaxASCII })
	if isName {
		return ":" + emoji + ":"
	}
	return emoji
}
