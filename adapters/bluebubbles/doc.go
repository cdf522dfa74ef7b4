// Package bluebubbles connects to iMessage through a BlueBubbles server.
//
// The package itself has the adapter, its configuration and its check. Package payload reads the
// webhooks and rows of the server.
package bluebubbles
