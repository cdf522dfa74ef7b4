package bluebubbles

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/rivo/uniseg"
)

// tapback is a reaction: an emoji that somebody puts on a part of a message, or
// takes from it.
type tapback struct {
	target  string // the guid of the message
	part    int
	emoji   string // a name such as "love", or the emoji itself
	removed bool
}

// emojiTapback is the tapback whose emoji stands in the text alone.
const emojiTapback = "emoji"

// tapbackNames are what BlueBubbles calls the tapbacks that Messages numbers
// from 2000 (put) and 3000 (taken away).
var tapbackNames = [...]string{"love", "like", "dislike", "laugh", "emphasize", "question", emojiTapback, "sticker"}

// readTapback reads the tapback that a message is; false for one that is none.
func readTapback(data object, text string) (tapback, bool) {
	name, removed, ok := tapbackName(data.word("associatedMessageType"))
	if !ok {
		return tapback{}, false
	}
	if name == emojiTapback {
		name = emojiIn(text)
	}
	t := tapback{emoji: name, removed: removed}
	reference := data.requiredID("associatedMessageGuid")
	if reference == "" {
		return t, true
	}
	target, part, ok := readTarget(reference)
	if !ok {
		data.fault("associatedMessageGuid", fmt.Sprintf("is %q, must be <guid>, p:<part>/<guid> or bp:<guid>", reference))
	}
	t.target, t.part = target, part
	return t, true
}

// tapbackName reads an association's type: a name, "-" and a name, or a number
// that BlueBubbles has no name for. Numbers outside the tapbacks' belong to
// other associations, such as a move in a game, which are messages.
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

// readTarget reads whom a tapback is for: "p:<part>/<guid>", "bp:<guid>" for a
// message that is a balloon, or a bare guid.
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

// maxEmoji bounds an emoji in bytes; a family with skin tones has 41.
const maxEmoji = 64

// emojiIn finds the emoji in the sentence that Messages writes for a tapback,
// such as "Reacted 👍 to “see you”", in whatever language: it is the first emoji
// before the quotation. Where there is none, or only an endless grapheme, the
// tapback's name stands in.
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

// isEmoji says whether a grapheme is shown as a picture: it has a variation
// selector or a keycap that asks for one, or is a symbol. Emoji newer than the
// tables of package unicode are known by their block.
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
