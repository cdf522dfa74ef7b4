// Package slack is one platform: Slack, over Socket Mode or the Events API.
//
// What comes in is read here twice. Keys reads a raw payload before custody and
// knows only the payload; Normalize reads it again afterwards, with names. Both
// start from the same parse, so they cannot disagree on what a payload is.
// Payloads are decoded into structs of exactly the fields that are used: a field
// that is used and can't be read makes the payload dead, any other is skipped,
// whatever Slack puts there.
//
// The sockets of Socket Mode are opened and kept here, not by slack-go's client: it
// closes the old socket before it opens the next one, its acknowledgement is a
// queue that may be lost without a word, and an event that it can't decode is
// neither handed on nor ever acknowledged. Here a frame goes to custody as it
// came, whatever is in it; it is acknowledged on the socket that brought it, after
// that and never otherwise; and a socket that Slack asks to go is replaced before
// it is given up.
//
// What goes out is an agent's markdown, which Slack renders itself; format.go says
// what is done to it. Each call is made once and tells what it left behind, and what
// a workspace turns out not to have is remembered for an hour: markdown blocks,
// streams, the sign of work.
package slack
