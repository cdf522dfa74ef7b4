package payload

import (
	"regexp"
	"strings"

	"parley/ingest/event"
)

// ChannelWake are the wake words of one chat. They replace those of all groups there.
type ChannelWake struct {
	ID   string   `yaml:"id"` // the chat's guid, or the part after its last semicolon
	Wake []string `yaml:"wake"`
}

// wakeWords match the words that address us in groups. An expression is nil if there are no words.
type wakeWords struct {
	everywhere *regexp.Regexp
	chats      map[string]*regexp.Regexp // instead of everywhere, by the chat's name
}

// newWakeWords returns the words of all groups, and of the chats that have words of their own.
func newWakeWords(words []string, channels []ChannelWake) wakeWords {
	w := wakeWords{everywhere: anyOf(words), chats: map[string]*regexp.Regexp{}}
	for _, chat := range channels {
		w.chats[ChatName(chat.ID)] = anyOf(chat.Wake)
	}
	return w
}

// match returns the first wake word in the text of a message, as its author typed it; empty for none. A
// payload without a chat may be of a group.
func (w wakeWords) match(channel event.Channel, text string) string {
	words, own := w.chats[channel.ID]
	if !own {
		words = w.everywhere
	}
	if words == nil || channel.Type == event.ChannelDirect {
		return ""
	}
	if found := words.FindStringSubmatch(address.ReplaceAllString(text, " ")); found != nil {
		return found[1]
	}
	return ""
}

// address matches a web or e-mail address, or the place of a file on another machine. A word in it
// addresses nobody.
var address = regexp.MustCompile(`(?i)(?:mailto:|www\.|[a-z][a-z0-9+.-]*://)[!-~]+|[a-z0-9._%+-]+@[a-z0-9-]+(?:\.[a-z0-9-]+)+(?::[!-~]+)?|` +
	`(?:[a-z0-9-]+\.)+(?:(?:com|org|net|edu|gov|io|ai|dev|app|co|me|info|eu|uk|de|fr|nl|ch|pl|ru|jp|cn|kr|br|ca|au|nz)\b|[a-z]{2,}/)[!-~]*|` +
	`(?:localhost|[0-9]+(?:\.[0-9]+){3})(?::[0-9]+)?/[!-~]*`)

// edge matches a character beside which a word can begin or end: one that is part of no word, or one
// of a script that has no spaces between words.
const edge = `[^\pL\pN\pM_]|[\p{Han}\p{Hiragana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]`

// anyOf matches each of the words and phrases as a whole, in any case.
func anyOf(words []string) *regexp.Regexp {
	if len(words) == 0 {
		return nil
	}
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = regexp.QuoteMeta(event.Text(strings.TrimSpace(word)))
	}
	return regexp.MustCompile(`(?i)(?:^|` + edge + `)(` + strings.Join(quoted, "|") + `)(?:$|` + edge + `)`)
}
