// Package read reads Discord: the history of channels and threads, posts of ours whose sending had no
// clear end, files, and names.
//
// A thread opened on a message is a channel with that message's id. A fetched message has no nonce
// and no nickname of its author.
package read
