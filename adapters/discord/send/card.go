package send

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/bwmarrin/discordgo"

	"parley/adapters"
	"parley/adapters/discord/call"
	"parley/ingest/card"
	"parley/ingest/event"
)

// The limits of the embeds of a message.
// https://docs.discord.com/developers/resources/message#embed-object-embed-limits
const (
	maxEmbeds, maxEmbedTitle              = 10, 256
	maxFields, maxFieldName, maxFieldText = 25, 256, 1024
	// cardText is the length of the texts of a card in one message. It is below the 6,000 characters of embeds, because all
	// of the card must fit into a message's text where Discord drops embeds.
	cardText = maxText - 200
	// maxURL bounds the address of a button. That of an image has no documented limit.
	// https://docs.discord.com/developers/components/reference#button
	maxURL = 512
)

// cardForm bounds the embeds of a message. The title is the message's text.
var cardForm = card.Form{
	Size:  func(s string) int { return utf8.RuneCountInString(card.Escape(s)) },
	Parts: maxEmbeds, Total: cardText, Text: cardText - 100, Join: true, Title: maxEmbedTitle, Badges: maxFields,
	Fields: maxFields, FieldLabel: maxFieldName, FieldValue: maxFieldText, Alt: maxEmbedTitle, URL: maxURL, Buttons: maxRows * maxRow, Label: maxLabel,
}

// colours are the colours of embeds by the status of their card.
var colours = map[string]int{"info": 0x5865f2, "success": 0x57f287, "warning": 0xfee75c, "error": 0xed4245, "pending": 0x99aab5}

// FormatCard implements adapters.CardSender. The text beside an embed is the card's title, which the embed does not repeat. A card
// without a title has its first text there.
func (s *Sender) FormatCard(v card.View) (posts []adapters.CardPost) {
	var name string
	for i, one := range cardForm.Split(v) {
		first := one.Parts[0]
		text := fmt.Sprintf("%s (%d)", name, i+1)
		switch {
		case first.Kind == card.KindTitle:
			text, one.Parts = "**"+unlinked(first.Text)+"**", one.Parts[1:]
		case i == 0 && v.Parts[0].Kind == card.KindText:
			text, one.Parts = unlinked(first.Text), one.Parts[1:]
		case i == 0 && (first.Kind == card.KindImage || first.Kind == card.KindButtons):
			text = beginning(first.Text)
		case i == 0:
			text = beginning(one.Plain())
		}
		if i == 0 {
			name = beginning(first.Text)
		}
		posts = append(posts, adapters.CardPost{Text: text, Card: one})
	}
	return posts
}

// maxName is the length of the text beside an embed that repeats words of the card, in characters.
const maxName = 70

// beginning returns the first words of a card, without markup.
func beginning(s string) string {
	s = firstLine(s)
	if head := event.Beginning(s, maxName); head != s {
		s = head + "…"
	}
	return cmp.Or(unlinked(s), "…")
}

// unlinked returns a text that shows no markup, and no address as a link: Discord shows previews of links in a message's text.
func unlinked(s string) string { return card.Escape(strings.ReplaceAll(s, "://", ":\u200b//")) }

// withCard adds the embeds and the buttons of a post's card to a body. Nobody is mentioned.
func withCard(body call.Message, post adapters.Post) call.Message {
	if post.Card == nil {
		return body
	}
	body.AllowedMentions.Users = nil
	body.Flags &^= discordgo.MessageFlagsSuppressEmbeds
	body.Embeds, body.Plain = embeds(*post.Card), post.Text+"\n"+card.Escape(post.Card.Plain())
	body.Components = append(presses(*post.Card), body.Components...)
	return body
}

// embeds returns a card as embeds. Texts below each other are one embed's, with the fields and the image below them.
func embeds(v card.View) (list []*discordgo.MessageEmbed) {
	var e *discordgo.MessageEmbed
	next := func(full bool) *discordgo.MessageEmbed {
		if e == nil || full {
			e = &discordgo.MessageEmbed{Color: colours[v.Status]}
			list = append(list, e)
		}
		return e
	}
	for i := range v.Parts {
		p := &v.Parts[i]
		switch p.Kind {
		case card.KindButtons:
		case card.KindFields:
			next(e != nil && (e.Fields != nil || e.Image != nil))
			for _, f := range p.Rows {
				e.Fields = append(e.Fields, &discordgo.MessageEmbedField{Name: orBlank(card.Escape(f[0])), Value: orBlank(card.Escape(f[1])), Inline: true})
			}
		case card.KindImage:
			next(e != nil && e.Image != nil)
			e.Image = &discordgo.MessageEmbedImage{URL: p.URL}
			if p.Text != "" {
				e.Footer = &discordgo.MessageEmbedFooter{Text: p.Text}
			}
		default:
			next(e != nil && (e.Fields != nil || e.Image != nil))
			e.Description = strings.TrimPrefix(e.Description+"\n"+described(p), "\n")
		}
	}
	return list
}

// orBlank returns a text that Discord takes: no text of a field may be empty.
func orBlank(s string) string {
	if strings.TrimSpace(s) == "" {
		return "\u200b"
	}
	return s
}

// described returns a part as lines of a description.
func described(p *card.Part) string {
	text := card.Escape(card.View{Parts: []card.Part{*p}}.Plain())
	switch p.Kind {
	case card.KindTitle, card.KindSubtitle:
		return "**" + text + "**"
	case card.KindCaption:
		return "-# " + strings.ReplaceAll(text, "\n", "\n-# ")
	}
	return text
}

// presses returns the rows of a card's buttons.
func presses(v card.View) (rows []discordgo.MessageComponent) {
	var buttons []discordgo.MessageComponent
	for _, p := range v.Parts {
		for _, b := range p.Buttons {
			button := discordgo.Button{Label: b.Label, CustomID: b.ID, Style: discordgo.SecondaryButton}
			if b.URL != "" {
				button.Style, button.URL = discordgo.LinkButton, b.URL
			}
			buttons = append(buttons, button)
		}
	}
	for row := range slices.Chunk(buttons, maxRow) {
		rows = append(rows, discordgo.ActionsRow{Components: row})
	}
	return rows
}
