// Package slack connects Parley to Slack, over Socket Mode or the Events API.
//
// The package itself has the adapter, its configuration and its check. Package payload reads
// what Slack sends.
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
