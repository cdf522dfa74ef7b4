// Package content reads the content of a message in a call, and refuses what Slack refuses.
package content

import (
	"encoding/json"
	"net/url"
	"strings"
	"unicode/utf8"

	"parley/adapters/slack/slacktest/internal/wire"
)

// The limits of a message, in characters.
const (
	// MaxText is the length at which Slack truncates a text; the fake refuses a longer one.
	// https://docs.slack.dev/reference/methods/chat.postMessage#truncating
	MaxText = 40_000
	// MaxUpdate bounds the text of chat.update.
	// https://docs.slack.dev/reference/methods/chat.update#errors
	MaxUpdate = 4_000
	// MaxMarkdown bounds markdown_text, a stream, and all markdown blocks of a message
	// together.
	// https://docs.slack.dev/reference/block-kit/blocks/markdown-block
	MaxMarkdown = 12_000
	// maxSection bounds the text of a section.
	// https://docs.slack.dev/reference/block-kit/blocks/section-block
	maxSection = 3_000
)

// maxBlocks bounds the blocks of one message.
// https://docs.slack.dev/reference/block-kit/blocks
const maxBlocks = 50

// blockTypes are the types of blocks that a message may contain.
// https://docs.slack.dev/reference/block-kit/blocks
var blockTypes = map[string]bool{
	"actions": true, "context": true, "context_actions": true, "divider": true, "file": true, "header": true,
	"image": true, "markdown": true, "plan": true, "rich_text": true, "section": true, "table": true,
	"task_card": true, "video": true,
}

// Content is the content of a message in a call's arguments. A nil field was absent or empty.
type Content struct {
	Text, Markdown   *string
	Blocks, Metadata json.RawMessage
	attachments      bool
}

// Empty reports whether the content shows nothing.
func (c Content) Empty() bool {
	return c.Text == nil && c.Markdown == nil && (c.Blocks == nil || string(c.Blocks) == "[]") && !c.attachments
}

// Read reads and checks the content arguments that all methods for messages have in
// common. It returns the refusal's code, which is empty if the content is valid.
// refuses reports whether the workspace refuses a type of blocks.
func Read(form url.Values, limit int, refuses func(kind string) bool) (c Content, code string) {
	c.Text = wire.Optional(form, "text")
	c.attachments = len(form.Get("attachments")) > len("[]")
	markdown := wire.Optional(form, "markdown_text")
	raw := wire.Optional(form, "blocks")
	switch {
	case markdown != nil && (c.Text != nil || raw != nil):
		return c, "markdown_text_conflict"
	case c.Text != nil && utf8.RuneCountInString(*c.Text) > limit,
		markdown != nil && utf8.RuneCountInString(*markdown) > MaxMarkdown:
		return c, "msg_too_long"
	}
	if raw != nil {
		var text string
		if text, code = readBlocks(*raw, refuses); code != "" {
			return c, code
		}
		c.Blocks = json.RawMessage(*raw)
		if text != "" {
			markdown = &text
		}
	}
	c.Markdown = markdown
	if metadata := form.Get("metadata"); metadata != "" {
		if !validMetadata(metadata) {
			return c, "invalid_metadata_format"
		}
		c.Metadata = json.RawMessage(metadata)
	}
	return c, ""
}

// readBlocks checks blocks and returns the text of the markdown blocks.
func readBlocks(raw string, refuses func(kind string) bool) (markdown, code string) {
	var blocks []block
	if json.Unmarshal([]byte(raw), &blocks) != nil {
		return "", "invalid_blocks_format"
	}
	if len(blocks) > maxBlocks {
		return "", "msg_blocks_too_many"
	}
	var texts []string
	length, shown := 0, 0
	tables, plans := 0, 0
	for _, b := range blocks {
		if !blockTypes[b.Type] || refuses(b.Type) || !b.valid() {
			return "", "invalid_blocks"
		}
		switch b.Type {
		case "markdown":
			var text string
			if json.Unmarshal(b.Text, &text) != nil || text == "" {
				return "", "invalid_blocks"
			}
			length += utf8.RuneCountInString(text)
			shown += rendered(text)
			texts = append(texts, text)
		case "table":
			if tables++; tables > 1 {
				return "", "invalid_blocks"
			}
		case "plan":
			if plans++; plans > 1 {
				return "", "invalid_blocks"
			}
		}
	}
	switch {
	case length > MaxMarkdown, characters(raw) > maxCharacters:
		return "", "msg_blocks_too_long"
	case shown > maxBlocks:
		return "", "invalid_blocks"
	}
	return strings.Join(texts, "\n\n"), ""
}

// rendered returns the number of blocks that Slack makes of a markdown block: one for each
// paragraph, heading, list, table and code block.
func rendered(markdown string) (n int) {
	begins, fenced := true, false
	for line := range strings.Lines(markdown) {
		line = strings.TrimSpace(line)
		fences, heads := strings.HasPrefix(line, "```"), strings.HasPrefix(line, "#")
		switch {
		case fenced:
			fenced, begins = !fences, fences
		case line == "":
			begins = true
		default:
			if begins || fences || heads {
				n++
			}
			begins, fenced = heads, fences
		}
	}
	return n
}

// validMetadata reports whether metadata has the form that Slack requires. An empty object
// removes a message's metadata.
// https://docs.slack.dev/messaging/message-metadata
func validMetadata(raw string) bool {
	var metadata struct {
		Type    string          `json:"event_type"`
		Payload json.RawMessage `json:"event_payload"`
	}
	err := json.Unmarshal([]byte(raw), &metadata)
	return err == nil && (raw == "{}" || metadata.Type != "" && strings.HasPrefix(string(metadata.Payload), "{"))
}
