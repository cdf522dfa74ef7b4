// Package live receives Discord's events over the gateway, and responds to interactions.
//
// The package owns the socket of the gateway, because discordgo's own gateway breaks three promises.
// It closes a connection without heartbeats with the code 1000, and Discord then forgets the session.
// It moves its sequence on before the durable accept, so a resume would skip an event that the store
// did not take. It reconnects even after a fatal close code. A silent gateway also blocks its start
// and its stop. Here a heartbeat and a resume carry the sequence of the last committed event.
//
// A frame has no id. If the id of the gateway session is known, the session and the sequence number
// identify a repeated reaction.
package live
