// Package slack connects Parley to Slack, over Socket Mode or the Events API.
//
// Parley reads each payload twice. Keys reads it before the durable accept and uses
// only the payload. Normalize reads it after the durable accept and also resolves
// names. Both start from the same parse, so they always agree on the kind of a payload.
// The decoder fills structs that have only the fields that Parley uses. If Slack sends
// a field that the event needs in a wrong form, the payload is dead. The decoder skips every
// other field, whatever its form.
//
// The content of a message is the text that its author typed. The words of a message without
// typed text are found in one place, words.go, for events, edits, history, quotations and forwards.
//
// The package opens and maintains the sockets of Socket Mode itself, instead of using
// slack-go's client. That client closes the old socket before it opens the next one,
// may silently lose queued acknowledgements, and neither passes on nor acknowledges an
// event that it can't decode. This package passes each frame unchanged to the durable
// accept, even if it can't decode the frame. It acknowledges a frame only after the durable
// accept, on the socket that carried the frame. If Slack asks for a socket to be
// replaced, the package opens the replacement before it closes the old socket.
//
// Assistant threads exist on Slack alone, so this package handles their events itself.
// After the durable accept, a new assistant thread gets the configured prompts, in the
// background. Normalize stores the channel that a user views beside the thread in the
// workspace's state, and adds it to the metadata of the user's messages there.
//
// Replies are the agent's Markdown, which Slack renders itself; format.go describes the
// changes that Parley makes to it. The package makes each call once and reports the
// possible effect of a failed call. If a workspace lacks a feature (markdown blocks,
// streams, the working sign), the package remembers that for an hour.
package slack
