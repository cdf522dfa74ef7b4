// Package call makes the calls of a BlueBubbles server for the other rooms.
//
// It makes each call once and reports the possible effect of a failed call. No error contains the server's
// password, although that is part of each call's address. The client remembers what the server can do, and
// the guids of its chats.
package call
