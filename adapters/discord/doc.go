// Package discord connects Parley to Discord, as one bot in all servers that it was invited to.
//
// The package itself has the adapter, its configuration and its check. Its rooms are payload, which
// reads the frames of the gateway and is pure, live, which receives events, read, which reads history,
// files and names, and send, which posts. They make their calls by call, and know by memory what the
// gateway has told this node.
//
// The library discordgo makes the REST calls and provides types.
package discord
