package turn

import (
	"encoding/json"
	"slices"

	"parley/ingest/event"
)

// maxOwn bounds the keys of a reply's metadata that are the agent's own, in bytes.
const maxOwn = 64 << 10

// reserved are the keys of a reply's metadata that this package writes, and the key of the
// answer's files.
var reserved = []string{"run_id", "stage", "latency_ms", "message_id", "files"}

// ownKeys returns the keys of an answer's details that become keys of the reply's metadata,
// in their order. It leaves out the keys with a meaning of ours, each key whose value is nested
// too deep, and each key that would make them too large together. Details that are no object, or that have a key twice, have none.
func ownKeys(details json.RawMessage) (own []event.Extra) {
	if len(details) == 0 {
		return nil
	}
	members, err := event.ReadObject([]byte(event.Text(string(details))))
	if err != nil {
		return nil
	}
	room := maxOwn
	for _, m := range members {
		size := len(m.Key) + len(m.Value)
		if slices.Contains(reserved, m.Key) || event.IsKnown(m.Key) || event.IsDeep(m.Value) || size > room {
			continue
		}
		room -= size
		own = append(own, m)
	}
	return own
}
