package read

import "parley/adapters/bluebubbles/call"

// Reader reads one server: its files, its names, and the posts of ours that it has. It is safe for
// concurrent use.
type Reader struct{ client *call.Client }

// New returns a reader that makes its calls by a client.
func New(client *call.Client) *Reader { return &Reader{client} }
