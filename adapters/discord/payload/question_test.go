package payload_test

import (
	"strings"
	"testing"

	"parley/adapters/adaptertest"
	"parley/adapters/discord/internal/testapp"
	"parley/adapters/discord/payload"
	"parley/ingest/event"
)

// TestFullListsTakeNewEntries stores questions and files beside as many others, with the longest
// ids, as a value of the state can hold. The oldest entries make room.
func TestFullListsTakeNewEntries(t *testing.T) {
	state := adaptertest.NewState()
	testapp.Fill(t, state, "questions", `{"id":"1529841438720%07d","channel":"15298414387200000000","opened":true}`)
	testapp.Fill(t, state, "files", `{"f":"1529841438720%07d","c":"15298414387200000000","m":"15298414387200000000"}`)
	n := payload.Normalizer{AutoThread: true}
	question := posted("<@900> hello").with(fields{
		"id": "15298414387209999999", "channel_id": "15298414387200000000", "mentions": []fields{person(bot, "parley")},
		"attachments": []fields{{"id": "15298414387209999998", "filename": "a.txt"}},
	})
	if _, err := n.Normalize(t.Context(), envelope(t, frame("MESSAGE_CREATE", question)), directory{self: event.Self{UserID: bot}, state: state}); err != nil {
		t.Fatal(err)
	}
	if end := testapp.Newest(t, state, "questions"); !strings.Contains(end, "15298414387209999999") {
		t.Errorf("the questions end with %s", end)
	}
	if end := testapp.Newest(t, state, "files"); !strings.Contains(end, "15298414387209999998") {
		t.Errorf("the files end with %s", end)
	}
}
