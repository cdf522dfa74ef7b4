// Package slack is one platform: Slack, over Socket Mode or the Events API.
//
// What comes in is read here twice. Keys reads a raw payload before custody and
// knows only the payload; Normalize reads it again afterwards, with names. Both
// start from the same parse, so they cannot disagree on what a payload is.
// Payloads are decoded into structs of exactly the fields that are used: a field
// that is used and can't be read makes the payload dead, any other is skipped,
// whatever Slack puts there.
package slack
