package payload

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"parley/adapters/jsonobject"
	"parley/ingest/event"

	"github.com/rivo/uniseg"
)

// tapback is a reaction: a person adds an emoji to a part of a message, or removes it.
type tapback struct {
	target  string // the guid of the message
	part    int
	emoji   string // a name such as "love", or the emoji itself
	removed bool
	quotes  *event.Quotation // describes the target instead of its guid; nil if the guid is known
}

// WorkingTapback is the tapback that shows that the agent works. The owner's own tapbacks of that
// name cannot be told from it.
const WorkingTapback = "like"

// emojiTapback is the name of the tapback whose emoji appears only in the text.
const emojiTapback = "emoji"

// tapbackNames are BlueBubbles' names of the tapbacks. Messages numbers them from 2000
// (added) and from 3000 (removed).
var tapbackNames = [...]string{"love", "like", "dislike", "laugh", "emphasize", "question", emojiTapback, "sticker"}

// readTapback reads a tapback, and returns false if the message is not a tapback.
func readTapback(data jsonobject.Fields, text string) (tapback, bool) {
	name, removed, ok := tapbackName(word(data, "associatedMessageType"))
	if !ok {
		return tapback{}, false
	}
	if name == emojiTapback {
		name = emojiIn(text)
	}
	t := tapback{emoji: name, removed: removed}
	reference := requiredID(data, "associatedMessageGuid")
	if reference == "" {
		return t, true
	}
	target, part, ok := readTarget(reference)
	if !ok {
		data.Fault("associatedMessageGuid", fmt.Sprintf("is %q, must be <guid>, p:<part>/<guid> or bp:<guid>", reference))
	}
	t.target, t.part = target, part
	return t, true
}

// word reads an id that may also be a number.
func word(data jsonobject.Fields, key string) string {
	if raw := data.Raw(key); len(raw) > 0 && strings.ContainsRune("-0123456789", rune(raw[0])) {
		return strconv.FormatInt(data.Number(key), 10)
	}
	return id(data, key)
}

// tapbackName reads the type of an association: a name, "-" and a name, or a number that
// BlueBubbles has no name for. Other numbers denote other associations, such as a move in a
// game, which are messages.
func tapbackName(word string) (name string, removed, ok bool) {
	number, err := strconv.Atoi(word)
	if err != nil {
		name, removed = strings.CutPrefix(word, "-")
		return name, removed, name != ""
	}
	switch {
	case number == 1000:
		return "sticker", false, true
	case number < 2000 || number > 3999:
		return "", false, false
	}
	removed = number >= 3000
	if i := number % 1000; i < len(tapbackNames) {
		return tapbackNames[i], removed, true
	}
	return strconv.Itoa(2000 + number%1000), removed, true
}

// readTarget reads a tapback's reference: "p:<part>/<guid>", "bp:<guid>" for a message that
// is a balloon, or a bare guid.
func readTarget(reference string) (guid string, part int, ok bool) {
	if guid, ok := strings.CutPrefix(reference, "bp:"); ok {
		return guid, 0, guid != ""
	}
	rest, ok := strings.CutPrefix(reference, "p:")
	if !ok {
		return reference, 0, true
	}
	digits, guid, _ := strings.Cut(rest, "/")
	n, err := strconv.ParseUint(digits, 10, 16)
	return guid, int(n), err == nil && guid != ""
}

// maxEmoji bounds an emoji in bytes. A family with skin tones has 41.
const maxEmoji = 64

// emojiIn returns the emoji in the sentence that Messages writes for a tapback, such as
// "Reacted 👍 to “see you”", in any language. It is the first emoji before the quotation. If
// there is none, or only a grapheme over maxEmoji, the result is the tapback's name.
func emojiIn(text string) string {
	if quotation := strings.IndexAny(text, "“„«\""); quotation >= 0 {
		text = text[:quotation]
	}
	state := -1
	for text != "" {
		var cluster string
		cluster, text, _, state = uniseg.FirstGraphemeClusterInString(text, state)
		if isEmoji(cluster) && len(cluster) <= maxEmoji {
			return cluster
		}
	}
	return emojiTapback
}

// isEmoji reports whether a grapheme is displayed as a picture: it contains an emoji
// variation selector, a keycap or a symbol. Emoji newer than the tables of package unicode
// are recognised by their block.
func isEmoji(grapheme string) bool {
	return strings.ContainsFunc(grapheme, func(r rune) bool {
		switch {
		case r == unicode.ReplacementChar:
			return false
		case r == '\uFE0F', r == '\u20E3', r >= 0x1F000 && r <= 0x1FBFF:
			return true
		}
		return unicode.Is(unicode.So, r)
	})
}
