package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// cardedAgent answers a message with a card, and a press with its action.
func cardedAgent(t *testing.T) (agents string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			Message struct {
				Metadata struct{ Action json.RawMessage }
			}
		}
		_ = json.NewDecoder(r.Body).Decode(&asked) // it is Parley's
		w.Header().Set("Content-Type", "application/json")
		if action := asked.Message.Metadata.Action; action != nil {
			fmt.Fprintf(w, `{"content":%q}`, "pressed "+string(action))
			return
		}
		_, _ = io.WriteString(w, `{"content":"Here.","ui_hints":{"title":"Room 7","body":"Free.","actions":[{"label":"Book it","action":"book"},
			{"label":"Pay","action":"pay","approval":true},{"label":"Look","url":"https://rooms.example/7"}]}}`)
	}))
	t.Cleanup(server.Close)
	return "agents: [{id: carded, kind: webhook, url: \"" + server.URL + "\", secret: presser-7f3a9c51d2e84b60a1c35e97, approvers: [nobody]}]\n"
}

// TestPressesInTheFakes presses the buttons of a card on each platform that has buttons.
func TestPressesInTheFakes(t *testing.T) {
	for name, c := range map[string]struct {
		play              player
		ready, card, link string
	}{
		"slack": {playSlack, "the daemon opens a socket",
			"direct: the bot posts [2]: Room 7 ⏎ Free. ⏎ [Book it]  [Pay]  Look (rooms.example): https://rooms.example/7", "the button opens https://rooms.example/7"},
		"discord": {playDiscord, "the daemon begins a session",
			"direct: the bot posts [2]: **Room 7** ⏎ Free. ⏎ [Book it] ⏎ [Pay] ⏎ [Look (rooms.example)]", "the button opens https://rooms.example/7"},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, c.play, "-agent", "carded")
			d := newDaemon(t, p, cardedAgent(t))
			d.start()
			p.wait(c.ready)
			p.typeLine("press Book it")
			p.wait(`there is no button "Book it"`)
			for _, turn := range []struct{ typed, shown string }{
				{"> a room?", c.card},
				{"press Look (rooms.example)", c.link},
				{"press Book it", `direct: the bot posts [3]: pressed {"id":"book","value":null}`},
			} {
				p.typeLine(turn.typed)
				p.wait(turn.shown)
			}
			d.stop()
			p.quit()
		})
	}
}
