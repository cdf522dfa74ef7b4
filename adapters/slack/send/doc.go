// Package send posts messages on Slack, and changes them.
//
// Replies are the agent's Markdown, which Slack renders itself; format.go describes the
// changes that Parley makes to it.
//
// After the durable accept of its start, a new assistant thread gets the configured prompts, in the
// background.
package send
