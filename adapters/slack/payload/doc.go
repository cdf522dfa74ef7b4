// Package payload reads Slack's payloads. It is pure: it does no I/O of its own, and its
// results depend on its arguments alone.
//
// Parley reads each payload twice. Keys reads it before the durable accept and uses
// only the payload. Normalize reads it after the durable accept and also resolves
// names. Both start from the same parse, so they always agree on the kind of a payload.
// The decoder fills structs that have only the fields that Parley uses. If Slack sends
// a field that the event needs in a wrong form, the payload is dead. The decoder skips every
// other field, whatever its form.
//
// The content of a message is the text that its author typed. The words of a message without
// typed text, and the tables beside one, are found in one place, words.go, for events, edits, history, quotations and forwards.
//
// The package also has the forms that Slack's ids, threads and times have, and the marks by
// which a post of ours is recognised.
package payload
