package stream_test

import (
	"fmt"

	"parley/ingest/stream"
)

func ExampleParse() {
	for _, raw := range []string{`{"t": 7, "m": "The disk is full."}`, `{"type": "ANSWER", "message": "The disk is full."}`} {
		m, err := stream.Parse([]byte(raw))
		fmt.Println(m.Type, m.Text, err)
	}
	// Output:
	// ANSWER The disk is full. <nil>
	// ANSWER The disk is full. <nil>
}
