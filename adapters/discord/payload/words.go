package payload

import (
	"cmp"
	"slices"
	"strings"

	"github.com/bwmarrin/discordgo"

	"parley/adapters/jsonobject"
	"parley/adapters/words"
)

// readWords returns the words of a message, whether it is live, edited, fetched, quoted or
// forwarded: the typed text, or else what a person sees of the message, which are its text displays
// or the embeds of an app. Embeds of previews are the words of a linked page. follow says that
// embeds follow typed text too, because a person's embeds are previews, but a bot's are not.
func readWords(d jsonobject.Fields, follow bool) string {
	typed := readTyped(d)
	var shown words.Builder
	if typed == "" {
		addTexts(&shown, d.Optional().Children("components"), 1)
	}
	if typed == "" && shown.String() == "" || typed != "" && follow {
		addEmbeds(&shown, d.Optional().Children("embeds"))
	}
	if typed != "" && shown.String() != "" {
		typed += "\n"
	}
	return typed + shown.String()
}

// readTyped returns the typed text verbatim. A poll adds a line for its question and one
// for each answer, because a person typed them too.
// https://docs.discord.com/developers/resources/poll#poll-object
func readTyped(d jsonobject.Fields) string {
	content := d.Text("content")
	poll, ok := d.Child("poll")
	if !ok {
		return content
	}
	var lines []string
	if content != "" {
		lines = append(lines, content)
	}
	if question, ok := poll.Child("question"); ok {
		lines = append(lines, question.Text("text"))
	}
	for _, answer := range poll.Children("answers") {
		if media, ok := answer.Child("poll_media"); ok {
			emoji, _ := media.Child("emoji")
			lines = append(lines, "- "+cmp.Or(media.Text("text"), emoji.Text("name")))
		}
	}
	return strings.Join(lines, "\n")
}

// addTexts adds the text displays among the components and inside them, in their order.
// https://docs.discord.com/developers/components/reference#text-display
func addTexts(shown *words.Builder, components []jsonobject.Fields, level int) {
	for _, c := range components {
		if shown.Full() || level > words.MaxLevels {
			return
		}
		if discordgo.ComponentType(c.Number("type")) == discordgo.TextDisplayComponent {
			shown.Line(c.Text("content"))
			continue
		}
		addTexts(shown, c.Children("components"), level+1)
	}
}

// ofApps are the types of the embeds with an app's words. Discord makes the others: previews of links, and its own
// notices.
// https://docs.discord.com/developers/resources/message#embed-object-embed-types
var ofApps = []string{"", "rich", "poll_result"}

// addEmbeds adds the words of an app's embeds.
func addEmbeds(shown *words.Builder, embeds []jsonobject.Fields) {
	for _, embed := range embeds {
		if shown.Full() {
			return
		}
		if !slices.Contains(ofApps, embed.Text("type")) {
			continue
		}
		shown.Line(embed.Text("title"))
		shown.Line(embed.Text("description"))
		for _, field := range embed.Children("fields") {
			shown.Field(field.Text("name"), field.Text("value"))
		}
		footer, _ := embed.Child("footer")
		shown.Line(footer.Text("text"))
	}
}
