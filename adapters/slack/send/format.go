package send

import (
	"regexp"
	"slices"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/slack-go/slack"

	"parley/adapters"
	"parley/adapters/markdown"
	"parley/adapters/slack/call"
	"parley/ingest/event"
)

const (
	// maxMarkdown is the maximum length of the markdown in one message, in characters. It
	// applies to all blocks of the message together, and to a stream.
	// https://docs.slack.dev/reference/block-kit/blocks/markdown-block
	maxMarkdown = 12_000
	// postLimit is the maximum length of a post. It is below maxMarkdown because Slack
	// counts the characters after a conversion of its own.
	postLimit = maxMarkdown - 500
	// halfMargin is more than a half of a post may need beyond half of its length, because it ends at the end of a line.
	halfMargin = 300
	// maxRendered is the maximum number of blocks that one message's markdown may become. Slack
	// renders each paragraph, heading, list, table and code block as a block of its own and
	// refuses a message of more than 50; buttons and the rendering itself need some.
	// https://docs.slack.dev/reference/block-kit/blocks
	maxRendered = 45
	// maxShort is the length of a text up to which a refusal of its markdown block is no fault of the
	// text, in characters.
	maxShort = 1000
	// maxText is the maximum length that Slack advises for a message's text, in
	// characters. Slack refuses a longer text in an edit.
	// https://docs.slack.dev/reference/methods/chat.postMessage#truncating
	maxText = 4000
	// textLimit is the maximum length of a text that Parley sends; it leaves a margin
	// below maxText.
	textLimit = maxText - 100
	// maxSection is the maximum length of a section's text, in characters.
	// https://docs.slack.dev/reference/block-kit/blocks/section-block
	maxSection = 3000
)

// Format splits an agent's CommonMark into posts of at most postLimit characters. Slack
// renders CommonMark itself, so Format changes only tokens and links that must have no
// effect.
func (s *Sender) Format(text string, mentions []string) []string {
	return adapters.FormatWhole(s, text, mentions)
}

// FormatPartial formats the beginning of a text for one post or one stream.
func (s *Sender) FormatPartial(text string, mentions []string, done bool) (shown, rest string, full bool) {
	adapted, held := markdown.Adapt(text, markdown.SlackBlock, done)
	shown, rest, full = markdown.FormatPartial(adapted, markdown.PartialOptions{Limit: postLimit, Blocks: maxRendered, Mentions: mentions, Done: done && held == ""})
	if !full {
		return shown, text, false
	}
	return shown, rest + held, true
}

// allowed matches the tokens of a formatted text that have an effect.
var allowed = regexp.MustCompile(`<[@#!][^<>\s\x{200b}]+>`)

// Halve splits the text of a post into posts of about half its length.
func (s *Sender) Halve(text string) (posts []string) {
	options := markdown.PartialOptions{Limit: len(utf16.Encode([]rune(text)))/2 + halfMargin, Blocks: maxRendered, Mentions: allowed.FindAllString(text, -1), Done: true}
	for full := true; full; {
		var shown string
		if shown, text, full = markdown.FormatPartial(text, options); shown != "" {
			posts = append(posts, shown)
		}
	}
	return posts
}

// sendContent calls Slack with a post's card, or else with its text.
func (s *Sender) sendContent(post adapters.Post, do func(content slack.MsgOption) error) error {
	if post.Card != nil {
		return s.sendCard(post, do)
	}
	return s.sendText(post.Text, post.Buttons, do)
}

// sendText calls Slack with the text as a markdown block. If the workspace refuses such
// blocks, sendText remembers that and calls again with the text as mrkdwn. It forgets the
// refusal of a text that is not short, since the text may be the reason. A refusal
// means that the first call had no effect, so nothing is posted twice.
//
// The call asks Slack for no previews of links. Slack documents that for chat.postMessage,
// and has no way to ask for it in a stream or beside a file.
// https://docs.slack.dev/messaging/unfurling-links-in-messages
func (s *Sender) sendText(text string, buttons []adapters.Button, do func(content slack.MsgOption) error) error {
	send := func(content slack.MsgOption) error {
		return do(slack.MsgOptionCompose(content, slack.MsgOptionDisableLinkUnfurl(), slack.MsgOptionDisableMediaUnfurl()))
	}
	if !s.client.Refuses(markdownFeature) {
		err := send(asMarkdown(text, buttons))
		if !slices.Contains(blockRefusals, call.Code(err)) {
			return err
		}
		if call.Code(err) != blocksTooLong && utf8.RuneCountInString(text) <= maxShort {
			s.client.Remember(markdownFeature)
		}
	}
	return send(asMrkdwn(text, buttons))
}

// markdownFeature is the key under which a refusal of markdown blocks is remembered.
const markdownFeature = "markdown blocks"

// blocksTooLong is Slack's code for a text that is too long for one message's blocks. Slack counts
// the characters after a conversion of its own.
const blocksTooLong = "msg_blocks_too_long"

// blockRefusals are the codes that refuse the blocks of a message.
// https://docs.slack.dev/reference/methods/chat.postMessage#errors
var blockRefusals = []string{"invalid_blocks", "invalid_blocks_format", blocksTooLong, "blocks_not_allowed", "unsupported_block_type"}

// asMarkdown returns a text as a markdown block, with buttons below it. Notifications show the
// beginning of the text.
func asMarkdown(text string, buttons []adapters.Button) slack.MsgOption {
	return slack.MsgOptionCompose(
		slack.MsgOptionText(summary(text), false),
		slack.MsgOptionBlocks(append([]slack.Block{slack.NewMarkdownBlock("", text)}, actions(buttons)...)...),
	)
}

// summary returns the beginning of a text, as mrkdwn.
func summary(text string) string {
	posts := markdown.Format(event.Beginning(text, textLimit), markdown.Slack, textLimit)
	if len(posts) == 0 {
		return "…"
	}
	return posts[0]
}

// asMrkdwn returns a text as mrkdwn: as the message's text if it is short enough, else
// in sections. A text with buttons is in sections.
func asMrkdwn(text string, buttons []adapters.Button) slack.MsgOption {
	whole := markdown.Format(text, markdown.Slack, textLimit)
	if len(whole) == 1 && len(buttons) == 0 {
		return slack.MsgOptionText(whole[0], false)
	}
	var sections []slack.Block
	for _, part := range markdown.Format(text, markdown.Slack, maxSection) {
		section := slack.NewSectionBlock(slack.NewTextBlockObject(slack.MarkdownType, part, false, false), nil, nil)
		section.Expand = true
		sections = append(sections, section)
	}
	return slack.MsgOptionCompose(slack.MsgOptionText(summary(text), false), slack.MsgOptionBlocks(append(sections, actions(buttons)...)...))
}
