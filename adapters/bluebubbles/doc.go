// Package bluebubbles connects Parley to iMessage through a BlueBubbles server.
//
// The package itself has the adapter, its configuration and its check. Its rooms are payload, which reads
// the server's webhooks and rows and is pure, live, which receives messages, read, which reads files, names
// and earlier posts, and send, which posts. They make their calls by call.
package bluebubbles
