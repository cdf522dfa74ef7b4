package slack

import (
	"github.com/slack-go/slack"

	"parley/adapters"
	"parley/adapters/markdown"
)

const (
	// maxMarkdown is how long the markdown of one message may be, in characters: of
	// its blocks together, and of a stream.
	// https://docs.slack.dev/reference/block-kit/blocks/markdown-block
	maxMarkdown = 12_000
	// postRoom is what a post fills of maxMarkdown: a little is left for Slack, which
	// counts after a conversion of its own.
	postRoom = maxMarkdown - 500
	// maxText is how long Slack advises a message's text to be at most, in characters;
	// an edit must not be longer.
	// https://docs.slack.dev/reference/methods/chat.postMessage#truncating
	maxText = 4000
	// textRoom is what we fill of maxText.
	textRoom = maxText - 100
	// maxSection is how long the text of a section may be, in characters.
	// https://docs.slack.dev/reference/block-kit/blocks/section-block
	maxSection = 3000
)

// Format splits an agent's CommonMark into posts of at most postRoom characters.
// Slack renders it itself, so it stays as it is, but for tokens and links that must
// not have an effect.
func (a *Adapter) Format(text string, mentions []string) []string {
	var posts []string
	for full := true; full; {
		var shown string
		if shown, text, full = a.Grow(text, mentions, adapters.Growth{Done: true}); shown != "" {
			posts = append(posts, shown)
		}
	}
	return posts
}

// Grow formats the beginning of a text for one post, or one stream.
func (a *Adapter) Grow(text string, mentions []string, growth adapters.Growth) (shown, rest string, full bool) {
	return markdown.FormatPartial(text, markdown.PartialOptions{
		Limit: postRoom, Mentions: mentions, Done: growth.Done, From: growth.From, Now: growth.Now,
	})
}

// content calls Slack with a text in the best way that Slack takes: as a markdown
// block, else as mrkdwn. A refusal is definite, so that nothing is posted twice, and
// is remembered.
func (a *Adapter) content(text string, call func(content slack.MsgOption) error) error {
	if !a.refusals.holds(markdownBlocks, a.now()) {
		err := call(asMarkdown(text))
		if !isRefused(err, refusesBlocks) {
			return err
		}
		a.refusals.remember(markdownBlocks, a.now())
	}
	return call(asMrkdwn(text))
}

// markdownBlocks is what the refusal of such blocks is remembered under.
const markdownBlocks = "markdown blocks"

// refusesBlocks says that it is the blocks which Slack does not take.
// https://docs.slack.dev/reference/methods/chat.postMessage#errors
func refusesBlocks(code string) bool {
	switch code {
	case "invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long", "blocks_not_allowed", "unsupported_block_type":
		return true
	}
	return false
}

// asMarkdown is a text as a block that Slack renders, with the beginning of it for
// notifications.
func asMarkdown(text string) slack.MsgOption {
	return slack.MsgOptionCompose(
		slack.MsgOptionText(summary(text), false),
		slack.MsgOptionBlocks(slack.NewMarkdownBlock("", text)),
	)
}

// summary is the beginning of a text as mrkdwn.
func summary(text string) string {
	posts := markdown.Format(beginning(text, textRoom), markdown.Slack, textRoom)
	if len(posts) == 0 {
		return "…"
	}
	return posts[0]
}

// beginning is at most so many characters of a text.
func beginning(text string, most int) string {
	for i := range text {
		if most--; most < 0 {
			return text[:i]
		}
	}
	return text
}

// asMrkdwn is a text as mrkdwn: as the message's text where it is short enough for
// that, else in sections.
func asMrkdwn(text string) slack.MsgOption {
	whole := markdown.Format(text, markdown.Slack, textRoom)
	if len(whole) == 1 {
		return slack.MsgOptionText(whole[0], false)
	}
	var sections []slack.Block
	for _, part := range markdown.Format(text, markdown.Slack, maxSection) {
		section := slack.NewSectionBlock(slack.NewTextBlockObject(slack.MarkdownType, part, false, false), nil, nil)
		section.Expand = true
		sections = append(sections, section)
	}
	return slack.MsgOptionCompose(slack.MsgOptionText(summary(text), false), slack.MsgOptionBlocks(sections...))
}
