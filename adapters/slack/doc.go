// Package slack connects Parley to Slack, over Socket Mode or the Events API.
//
// The package itself has the adapter, its configuration and its check. Its rooms are payload,
// which reads what Slack sends and is pure, live, which receives events, read, which reads
// history, files and names, and send, which posts. They make their calls by call.
//
// Assistant threads exist on Slack alone, so the rooms handle their events themselves: send
// greets a new thread, and payload stores the channel that a user views beside the thread in the
// workspace's state, and adds it to the metadata of the user's messages there.
package slack
