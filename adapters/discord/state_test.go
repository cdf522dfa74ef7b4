package discord_test

import (
	"strings"
	"testing"

	"parley/adapters/discord/discordtest"
	"parley/adapters/discord/internal/testapp"
)

// TestFullInteractionsTakeACommand sends a command while the state holds as many open
// interactions as it can.
func TestFullInteractionsTakeACommand(t *testing.T) {
	l := prepareLive(t, discordtest.Options{}, nil)
	testapp.Fill(t, l.state, "interactions", `{"id":"900000000000%07d","application_id":"15298414387200000000","token":"`+strings.Repeat("t", 200)+`"}`)
	l.inbox.runs, l.inbox.decides = true, true
	l.run()
	l.up()
	i, _ := l.Command(roomID, mara, "hello")
	l.callback(i)
	if end := testapp.Newest(t, l.state, "interactions"); !strings.Contains(end, i.Token) {
		t.Errorf("the interactions end with %s", end)
	}
}
