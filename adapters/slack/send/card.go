package send

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/slack-go/slack"

	"parley/adapters"
	"parley/adapters/slack/call"
	"parley/ingest/card"
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
	// maxTasks bounds the tasks of a plan. Slack documents no bound; users have measured about 50.
	// https://docs.slack.dev/reference/block-kit/blocks/plan-block
	maxTasks = 48
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
	Parts: cardParts, Total: cardTotal, Text: maxSection, Title: maxHeader, Badges: maxElements, Tasks: maxTasks,
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

// The keys under which refusals of the newer types of blocks are remembered.
const tableFeature, planFeature = "table blocks", "plan blocks"

// newer returns the newer types of blocks that a card needs, each once.
func newer(v card.View) (features []string) {
	for i := range v.Parts {
		switch {
		case v.Parts[i].Kind == card.KindTable:
			features = append(features, tableFeature)
		case isPlan(v.Parts[i:]):
			features = append(features, planFeature)
		}
	}
	slices.Sort(features)
	return slices.Compact(features)
}

// isPlan reports whether parts begin with a plan, which is tasks below a title.
func isPlan(parts []card.Part) bool {
	return len(parts) > 1 && parts[0].Kind == card.KindTitle && parts[1].Kind == card.KindTasks
}

// sendCard calls Slack with a card as blocks. If the workspace refuses them, sendCard calls again with tables and plans as sections,
// then with the post's text above the buttons, and at last with the text. A refusal means that a call had no effect, so nothing is posted twice.
func (s *Sender) sendCard(post adapters.Post, do func(content slack.MsgOption) error) error {
	quiet := slack.MsgOptionCompose(slack.MsgOptionText(summary(post.Text), false), slack.MsgOptionDisableLinkUnfurl(), slack.MsgOptionDisableMediaUnfurl())
	send := func(newer bool) error {
		return do(slack.MsgOptionCompose(quiet, slack.MsgOptionBlocks(append(blocks(*post.Card, newer), actions(post.Buttons)...)...)))
	}
	refused := func(err error) bool { return slices.Contains(blockRefusals, call.Code(err)) }
	features := newer(*post.Card)
	tries := len(features) > 0 && !slices.ContainsFunc(features, s.client.Refuses)
	err := send(tries)
	if refused(err) && tries {
		if err = send(false); err == nil && len(features) == 1 { // else it is not known which was refused
			s.client.Remember(features[0])
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

// blocks returns a card as blocks. Without the newer types of blocks, tables and plans are sections.
func blocks(v card.View, newer bool) (list []slack.Block) {
	parts := v.Parts
	for len(parts) > 0 {
		if newer && isPlan(parts) {
			list, parts = append(list, planBlock(parts[0].Text, parts[1].Items)), parts[2:]
			continue
		}
		list, parts = append(list, block(&parts[0], newer)...), parts[1:]
	}
	return list
}

// taskStatuses are the states of tasks that Slack shows. The words of a task tell the others.
var taskStatuses = map[string]slack.TaskCardStatus{
	"pending": slack.TaskCardStatusPending, "running": slack.TaskCardStatusInProgress, "done": slack.TaskCardStatusComplete, "failed": slack.TaskCardStatusError,
	"skipped": slack.TaskCardStatusComplete, "stopped": slack.TaskCardStatusError, "unfinished": slack.TaskCardStatusPending,
}

// planBlock returns tasks as a plan. Its texts are plain.
func planBlock(title string, items []card.Item) slack.Block {
	var tasks []*slack.TaskCardBlock
	for n, i := range items {
		tasks = append(tasks, slack.NewTaskCardBlock(fmt.Sprint("task-", n+1), i.Task()).WithStatus(taskStatuses[i.Status]))
	}
	return slack.NewPlanBlock(title).WithTasks(tasks...)
}

func block(p *card.Part, newer bool) []slack.Block {
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
		return table(p, newer)
	case card.KindList, card.KindTasks:
		var lines []string
		for _, i := range p.Items {
			lines = append(lines, p.Entry(i))
		}
		return sections(lines)
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
func table(p *card.Part, asBlock bool) []slack.Block {
	rows := p.Rows
	if p.Columns != nil {
		rows = append([][]string{p.Columns}, rows...)
	}
	if asBlock {
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
	var lines []string
	for _, row := range rows {
		lines = append(lines, card.Row(row))
	}
	return sections(lines)
}

// sections returns lines as sections, each as full as it may be.
func sections(lines []string) (list []slack.Block) {
	var text string
	for _, line := range lines {
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
