// Package payload reads the webhooks and rows of a BlueBubbles server, and converts them to events. It is
// pure: it does no I/O of its own, and its results depend on its arguments alone.
//
// BlueBubbles reports the rows of Messages' database, often more than once and in no certain
// order. Three properties of it shape this package:
//
//   - A changed message comes as updated-message, or as new-message if the server has
//     forgotten the message. Both contain the complete message. A hash of the fields that can
//     change, the revision, distinguishes a change from a receipt or a repetition.
//   - An update names no chat. It carries only the guid of its message, and its envelope waits
//     until that message is recorded.
//   - A change of a group comes twice, under its own type and as new-message. Both have the
//     same dedupe key.
package payload
