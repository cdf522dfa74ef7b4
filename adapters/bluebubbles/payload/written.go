package payload

import (
	"regexp"
	"strings"

	"parley/ingest/event"
)

// writtenTapback matches the words that a telephone without tapbacks sends instead of one, such as
// "Loved “see you”", "Reacted 😀 to an image" or "Removed a heart from “a long text…”". A cut quotation
// ends in an ellipsis. The groups are: verb, added emoji, removed reaction, quoted words, kind of file.
var writtenTapback = regexp.MustCompile(`(?s)^(?:(Loved|Liked|Disliked|Laughed at|Emphasi[sz]ed|Questioned)|(?:Reacted (?:with )?)?(\S+) to|Removed (?:an? |the )?([\S]+|question mark) (?:reaction )?from) ` +
	`(?:[“"](.+?)(?:[”"]|(?:…|\.\.\.)[”"]?)|an? (image|photo|picture|sticker|movie|video|audio message|voice message|attachment|file))$`)

// writtenNames are the names of the tapbacks, by the words that add or remove them.
var writtenNames = map[string]string{
	"Loved": "love", "Liked": "like", "Disliked": "dislike", "Laughed at": "laugh", "Emphasized": "emphasize", "Emphasised": "emphasize", "Questioned": "question",
	"heart": "love", "like": "like", "dislike": "dislike", "laugh": "laugh", "exclamation": "emphasize", "question mark": "question",
}

// writtenElsewhere are the words that telephones in other languages write before and behind the quotation of a tapback.
var writtenElsewhere = []struct{ before, behind, emoji string }{
	{"Hat", "geliebt", "love"}, // German
	{"A adoré", "", "love"},    // French
	{"A aimé", "", "like"},
	{"N’a pas aimé", "", "dislike"},
	{"N'a pas aimé", "", "dislike"},
	{"A ri de", "", "laugh"},
	{"A mis en évidence", "", "emphasize"},
	{"A souligné", "", "emphasize"},
	{"A posé une question sur", "", "question"},
	{"Le encantó", "", "love"}, // Spanish
	{"Le gustó", "", "like"},
	{"No le gustó", "", "dislike"},
	{"", "を強調しました", "emphasize"}, // Japanese
}

// quotation matches a quotation in the marks of a language, which is cut if it ends in an ellipsis.
var quotation = regexp.MustCompile(`(?s)^[“„«「"](.+?)(?:…|\.\.\.)?[\s\p{Z}]*[”“»」"]$`)

// readElsewhere reads a tapback in the words of another language. A person's question about a quotation has other words.
func readElsewhere(text string) (tapback, bool) {
	for _, words := range writtenElsewhere {
		rest, begins := strings.CutPrefix(text, words.before)
		rest, ends := strings.CutSuffix(rest, words.behind)
		if !begins || !ends {
			continue
		}
		if found := quotation.FindStringSubmatch(strings.TrimSpace(rest)); found != nil && strings.TrimSpace(found[1]) != "" {
			return tapback{emoji: words.emoji, quotes: &event.Quotation{Text: strings.TrimSpace(found[1])}}, true
		}
	}
	return tapback{}, false
}

// fileMedia are the beginnings of the media types of files, by the words for them. Any other file may be
// of any type.
var fileMedia = map[string]string{
	"image": "image/", "photo": "image/", "picture": "image/", "sticker": "image/", "movie": "video/", "video": "video/",
	"audio message": "audio/", "voice message": "audio/",
}

// invisible removes the characters without width that Android telephones put around an emoji and
// a quotation.
var invisible = strings.NewReplacer("\u200A", "", "\u200B", "")

// readWrittenTapback reads a message whose words express a tapback, and returns false for any other
// one. Whether it is a tapback depends on the quoted message.
func readWrittenTapback(text string) (tapback, bool) {
	text = strings.TrimSpace(invisible.Replace(text))
	found := writtenTapback.FindStringSubmatch(text)
	if found == nil {
		return readElsewhere(text)
	}
	verb, emoji, removed, words, file := found[1], found[2], found[3], found[4], found[5]
	t := tapback{emoji: writtenNames[verb+removed], removed: removed != "", quotes: &event.Quotation{Text: strings.TrimSpace(words), Media: fileMedia[file]}}
	if t.emoji == "" {
		t.emoji = emojiIn(emoji + removed)
	}
	return t, t.emoji != emojiTapback && (t.quotes.Text != "" || file != "")
}
