package event_test

import (
	"fmt"

	"parley/ingest/event"
)

func ExampleParseMetadata() {
	_, err := event.ParseMetadata([]byte(`{"source": "slack", "sender_id": "slack:U0MARA", "sender_displayname": "Mara", "sender_type": "person"}`))
	fmt.Println(err)
	m, err := event.ParseMetadata([]byte(`{"source": "slack", "sender_id": "slack:U0MARA", "sender_display_name": "Mara", "sender_type": "human", "team": "ops"}`))
	fmt.Println(m.SenderDisplayName, string(m.Bytes()), err)
	// Output:
	// metadata.sender_display_name: is required and must not be empty (the unknown key "sender_displayname" looks like it); metadata.sender_type: is "person", must be human or bot
	// Mara {"source": "slack", "sender_id": "slack:U0MARA", "sender_display_name": "Mara", "sender_type": "human", "team": "ops"} <nil>
}
