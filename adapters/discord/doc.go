// Package discord connects Parley to Discord, as one bot in all servers that it was invited to.
//
// Several properties of Discord shape it:
//
//   - A thread opened on a message is a channel with that message's id.
//   - A frame has no id. If the id of the gateway session is known, the session and the
//     sequence number identify a repeated reaction.
//   - Only a post's event and the answer to its call carry its nonce. A fetched message does
//     not. Discord enforces a nonce for some minutes.
//
// The library discordgo makes the REST calls and provides types. The package owns the socket of
// the gateway, because discordgo's own gateway breaks three promises. It closes a connection
// without heartbeats with the code 1000, and Discord then forgets the session. It moves its
// sequence on before the durable accept, so a resume would skip an event that the store did not
// take. It reconnects even after a fatal close code. A silent gateway also blocks its start and
// its stop. Here a heartbeat and a resume carry the sequence of the last committed event.
//
// The package makes each REST call once: discordgo's retries and its waits for rate limits are
// off. Every call has a context. Its error reports the possible effect of the call.
package discord
