package ingest

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"unicode"

	"parley/ingest/event"
)

// doing is a reaction as a message of who put it on, in their own name: what
// somebody does is never the system's word. It answers the message that it was
// put on; the journal quotes that one. Nil where a reaction is taken away.
//
// Where nobody can say that a person did it, it is kept passively: a program that
// reacts to each of our answers would be answered for ever.
func (w *workspace) doing(ctx context.Context, e *event.Event, dedupe, channel string) *event.Message {
	r := e.Reaction
	if r.Removed || r.All || len(e.Targets) == 0 {
		return nil
	}
	_, id, _ := strings.Cut(r.SenderID, ":")
	user, known := w.config.Names.User(ctx, id)
	sender := r.SenderType
	if sender == "" {
		sender = event.Human
		if user.IsBot {
			sender = event.Bot
		}
	}
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

// reactionExtra is the metadata key "<platform>_reaction", which says what was
// put on what: {"emoji","message_id"}.
func reactionExtra(platform event.Platform, emoji, target string) []event.Extra {
	value, err := json.Marshal(struct {
		Emoji  string `json:"emoji"`
		Target string `json:"message_id"`
	}{emoji, target})
	if err != nil {
		return nil
	}
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
