// Package payload reads the frames of Discord's gateway. It is pure: it does no I/O of its own, and
// its results depend on its arguments alone. Of discordgo it uses only types and constants.
//
// An update is not always an edit: Discord also sends updates for previews, pins and threads opened
// on a message. An update is an edit only if edited_timestamp is new. The package compares
// timestamps to the millisecond, because the update with the preview of an edited text gives fewer
// digits.
//
// The package also has the forms of ids, threads and mentions, and the entries of the workspace's
// state that normalising reads or writes: servers, questions, files and open interactions.
package payload
