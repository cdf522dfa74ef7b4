package slack

import "parley/adapters/markdown"

// maxText is how long Slack advises a post's text to be at most, in characters.
// https://docs.slack.dev/reference/methods/chat.postMessage#truncating
const maxText = 4000

// textRoom is what Format fills of maxText: a little is left for Slack, which
// counts after a conversion of its own.
const textRoom = maxText - 100

// Format writes an agent's CommonMark as mrkdwn, in posts of at most textRoom
// characters. A user's mention stays one; no other token of Slack's that the
// agent wrote has an effect.
func (a *Adapter) Format(text string, _ []string) []string {
	return markdown.Format(text, markdown.Slack, textRoom)
}
