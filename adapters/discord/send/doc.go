// Package send posts messages on Discord, and changes them.
//
// A post carries its key as a nonce, which Discord enforces for some minutes. Only the post's event
// and the answer to its call name the nonce. The answer to a command edits the deferred response, and
// follows it up where the bot may not write.
package send
