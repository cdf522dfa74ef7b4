// Package memory remembers what the gateway has told this node, so that the other rooms need not ask
// Discord: the servers with their channels and roles, the messages that were accepted, and the
// messages of our latest posts. live writes it; read and send ask it.
package memory
