package send

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/slack-go/slack"

	"parley/adapters"
	"parley/adapters/slack/call"
	"parley/assembly/card"
)

// The limits of the blocks of a card.
const (
	// cardParts leaves room for a note; see maxRendered.
	cardParts = 48
	// cardTotal is the length of the texts of one post together. Slack documents none but that of a table, 10,000 characters.
	// https://docs.slack.dev/reference/block-kit/blocks/table-block
	cardTotal = 9000
	// maxRows, maxColumns and maxTables bound tables.
	maxRows, maxColumns, maxTables = 100, 20, 1
	// maxHeader is the length of a header.
	// https://docs.slack.dev/reference/block-kit/blocks/header-block
	maxHeader = 150
	// maxFields and maxField bound the fields of a section.
	// https://docs.slack.dev/reference/block-kit/blocks/section-block
	maxFields, maxField = 10, 2000
	// maxElements bounds the elements of a context.
	// https://docs.slack.dev/reference/block-kit/blocks/context-block
	maxElements = 10
	// maxAlt and maxURL bound the text and the address of an image, and of the address of a button.
	// https://docs.slack.dev/reference/block-kit/blocks/image-block
	maxAlt, maxURL = 2000, 3000
)

// cardForm bounds the blocks of a message.
var cardForm = card.Form{
	Size:  func(s string) int { return len(utf16.Encode([]rune(escape.Replace(s)))) + 2*strings.Count(s, "://") },
	Parts: cardParts, Total: cardTotal, Text: maxSection, Title: maxHeader, Badges: maxElements,
	Fields: maxFields, FieldLabel: maxField / 4, FieldValue: maxField / 2,
	Rows: maxRows, Columns: maxColumns, Tables: maxTables, Alt: maxAlt, URL: maxURL, Buttons: maxButtons, Label: maxLabel,
}

// escape replaces the characters that begin tokens of mrkdwn.
// https://docs.slack.dev/messaging/formatting-message-text#escaping
var escape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// FormatCard implements adapters.CardSender.
func (s *Sender) FormatCard(v card.View) (posts []adapters.CardPost) {
	for _, one := range cardForm.Split(v) {
		posts = append(posts, adapters.CardPost{Text: one.Markdown(), Card: one})
	}
	return posts
}

// tableFeature is the key under which a refusal of table blocks is remembered.
const tableFeature = "table blocks"

// sendCard calls Slack with a card as blocks. If the workspace refuses them, sendCard calls again with tables as sections,
// then with the post's text above the buttons, and at last with the text. A refusal means that a call had no effect, so nothing is posted twice.
func (s *Sender) sendCard(post adapters.Post, do func(content slack.MsgOption) error) error {
	quiet := slack.MsgOptionCompose(slack.MsgOptionText(summary(post.Text), false), slack.MsgOptionDisableLinkUnfurl(), slack.MsgOptionDisableMediaUnfurl())
	send := func(tables bool) error {
		return do(slack.MsgOptionCompose(quiet, slack.MsgOptionBlocks(append(blocks(*post.Card, tables), actions(post.Buttons)...)...)))
	}
	refused := func(err error) bool { return slices.Contains(blockRefusals, call.Code(err)) }
	hasTable := slices.ContainsFunc(post.Card.Parts, func(p card.Part) bool { return p.Kind == card.KindTable })
	tables := !s.client.Refuses(tableFeature)
	err := send(tables)
	if refused(err) && tables && hasTable {
		if err = send(false); err == nil {
			s.client.Remember(tableFeature)
		}
	}
	for _, buttons := range [][]adapters.Button{append(pressed(*post.Card), post.Buttons...), nil} {
		if refused(err) {
			err = do(slack.MsgOptionCompose(asMrkdwn(post.Text, buttons), slack.MsgOptionDisableLinkUnfurl(), slack.MsgOptionDisableMediaUnfurl()))
		}
	}
	return err
}

// pressed returns the buttons of a card that ask the agent.
func pressed(v card.View) (list []adapters.Button) {
	for _, p := range v.Parts {
		for _, b := range p.Buttons {
			if b.ID != "" {
				list = append(list, adapters.Button{ID: b.ID, Label: b.Label})
			}
		}
	}
	return list
}

// blocks returns a card as blocks. Without tables, their rows are sections.
func blocks(v card.View, tables bool) (list []slack.Block) {
	for i := range v.Parts {
		list = append(list, block(&v.Parts[i], tables)...)
	}
	return list
}

func block(p *card.Part, tables bool) []slack.Block {
	switch p.Kind {
	case card.KindTitle:
		return []slack.Block{slack.NewHeaderBlock(plain(p.Text))}
	case card.KindSubtitle:
		return []slack.Block{section(bold(p.Text))}
	case card.KindCaption, card.KindProgress:
		text := p.Text
		if p.Kind == card.KindProgress {
			text = p.Bar()
		}
		return []slack.Block{slack.NewContextBlock("", plain(text))}
	case card.KindBadges:
		var elements []slack.MixedElement
		for _, b := range p.Items {
			elements = append(elements, plain(b.String()))
		}
		return []slack.Block{slack.NewContextBlock("", elements...)}
	case card.KindFields:
		var fields []*slack.TextBlockObject
		for _, f := range p.Rows {
			fields = append(fields, field(f[0], f[1]))
		}
		return []slack.Block{slack.NewSectionBlock(nil, fields, nil)}
	case card.KindTable:
		return table(p, tables)
	case card.KindList, card.KindTasks:
		var lines []string
		for _, i := range p.Items {
			lines = append(lines, p.Entry(i))
		}
		return []slack.Block{section(words(strings.Join(lines, "\n")))}
	case card.KindImage:
		alt := p.Text
		if alt == "" {
			alt = p.URL[:min(len(p.URL), maxAlt)]
		}
		return []slack.Block{slack.NewImageBlock(p.URL, alt, "", nil)}
	case card.KindButtons:
		return []slack.Block{presses(p.Buttons)}
	case card.KindDivider:
		return []slack.Block{slack.NewDividerBlock()}
	}
	return []slack.Block{section(words(p.Text))}
}

// table returns a table as a block, or its rows as sections.
func table(p *card.Part, tables bool) (list []slack.Block) {
	rows := p.Rows
	if p.Columns != nil {
		rows = append([][]string{p.Columns}, rows...)
	}
	if tables {
		block := slack.NewTableBlock("")
		for _, row := range rows {
			var cells []slack.TableCell
			for _, c := range row {
				cells = append(cells, slack.NewTableRawTextCell(orBlank(c)))
			}
			block.Rows = append(block.Rows, cells)
		}
		return []slack.Block{block}
	}
	var text string
	for _, row := range rows {
		line := card.Row(row)
		if text != "" && cardForm.Size(text+"\n"+line) > maxSection {
			list, text = append(list, section(words(text))), ""
		}
		text = strings.TrimPrefix(text+"\n"+line, "\n")
	}
	return append(list, section(words(text)))
}

// orBlank returns a text that Slack takes: no text of it may be empty.
func orBlank(s string) string {
	if strings.TrimSpace(s) == "" {
		return " "
	}
	return s
}

// presses returns a block with the buttons of a card. A button that opens an address shows its host.
func presses(buttons []card.Press) slack.Block {
	block := slack.NewActionBlock("")
	for _, b := range buttons {
		id := b.ID
		if b.URL != "" {
			id = adapters.LinkPrefix + adapters.Digest([]byte(b.URL))[:16] + "-" + string(rune('a'+len(block.Elements.ElementSet)))
		}
		button := slack.NewButtonBlockElement(id, "", plain(b.Label))
		button.URL = b.URL
		block.Elements.ElementSet = append(block.Elements.ElementSet, button)
	}
	return block
}

func plain(text string) *slack.TextBlockObject {
	return slack.NewTextBlockObject(slack.PlainTextType, orBlank(text), false, false)
}

// words returns a text as plain text. One with addresses is mrkdwn, because Slack makes links there alone. It is verbatim, so that
// Slack finds no names in it.
func words(text string) *slack.TextBlockObject {
	if !strings.Contains(text, "://") {
		return plain(text)
	}
	linked := address.ReplaceAllStringFunc(escape.Replace(text), func(found string) string {
		end := len(strings.TrimRight(found, ".,;:!?'\")"))
		return "<" + found[:end] + ">" + found[end:]
	})
	return slack.NewTextBlockObject(slack.MarkdownType, linked, false, true)
}

// address matches an address in an escaped text.
var address = regexp.MustCompile(`https?://[^\s<>|]+`)

// formats are the characters that may be markup of mrkdwn.
const formats = "*_~`\n"

// bold returns a text in bold, as far as mrkdwn can have it.
func bold(text string) *slack.TextBlockObject {
	if strings.ContainsAny(text, formats) {
		return plain(text)
	}
	return slack.NewTextBlockObject(slack.MarkdownType, "*"+escape.Replace(text)+"*", false, true)
}

// field returns a label in bold above its value, as far as mrkdwn can have it.
func field(label, value string) *slack.TextBlockObject {
	if strings.ContainsAny(label, formats) || strings.ContainsAny(value, formats) {
		return plain(label + "\n" + value)
	}
	return slack.NewTextBlockObject(slack.MarkdownType, "*"+escape.Replace(label)+"*\n"+escape.Replace(value), false, true)
}

func section(text *slack.TextBlockObject) slack.Block {
	section := slack.NewSectionBlock(text, nil, nil)
	section.Expand = true
	return section
}
