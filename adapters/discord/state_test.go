package discord_test

import (
	"fmt"
	"strings"
	"testing"

	"parley/adapters"
	"parley/adapters/adaptertest"
	"parley/adapters/discord"
	"parley/adapters/discord/discordtest"
	"parley/ingest/event"
)

// fill stores a list of as many entries as a value can hold. An entry is a format with a number.
func fill(t *testing.T, state adapters.State, name, entry string) {
	t.Helper()
	list := "["
	for i := 0; len(list) < 64<<10-len(entry)-1; i++ {
		list += fmt.Sprintf(entry, i) + ","
	}
	if err := state.Put(t.Context(), name, strings.TrimSuffix(list, ",")+"]"); err != nil {
		t.Fatal(err)
	}
}

// newest returns the end of a stored list.
func newest(t *testing.T, state adapters.State, name string) string {
	t.Helper()
	value, err := state.Get(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return value[max(0, len(value)-500):]
}

// TestFullListsTakeNewEntries stores questions and files beside as many others, with the longest
// ids, as a value of the state can hold. The oldest entries make room.
func TestFullListsTakeNewEntries(t *testing.T) {
	state := adaptertest.NewState()
	fill(t, state, "questions", `{"id":"1529841438720%07d","channel":"15298414387200000000","opened":true}`)
	fill(t, state, "files", `{"f":"1529841438720%07d","c":"15298414387200000000","m":"15298414387200000000"}`)
	n := discord.Normalizer{AutoThread: true}
	question := posted("<@900> hello").with(fields{
		"id": "15298414387209999999", "channel_id": "15298414387200000000", "mentions": []fields{person(bot, "parley")},
		"attachments": []fields{{"id": "15298414387209999998", "filename": "a.txt"}},
	})
	if _, err := n.Normalize(t.Context(), envelope(t, frame("MESSAGE_CREATE", question)), stateDirectory{event.Self{UserID: bot}, state}); err != nil {
		t.Fatal(err)
	}
	if end := newest(t, state, "questions"); !strings.Contains(end, "15298414387209999999") {
		t.Errorf("the questions end with %s", end)
	}
	if end := newest(t, state, "files"); !strings.Contains(end, "15298414387209999998") {
		t.Errorf("the files end with %s", end)
	}
}

// TestFullInteractionsTakeACommand sends a command while the state holds as many open
// interactions as it can.
func TestFullInteractionsTakeACommand(t *testing.T) {
	l := prepareLive(t, discordtest.Options{}, nil)
	fill(t, l.state, "interactions", `{"id":"900000000000%07d","application_id":"15298414387200000000","token":"`+strings.Repeat("t", 200)+`"}`)
	l.inbox.runs, l.inbox.decides = true, true
	l.run()
	l.up()
	i, _ := l.Command(roomID, mara, "hello")
	l.callback(i)
	if end := newest(t, l.state, "interactions"); !strings.Contains(end, i.Token) {
		t.Errorf("the interactions end with %s", end)
	}
}
