package main

import (
	"net"
	"os"
	"path/filepath"
	"testing"
)

// newBridged returns a person at the fake program, and the daemon at whose address it posts.
func newBridged(t *testing.T, agents string, args ...string) (*person, *daemon) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	p := start(t, playBridge, append([]string{"-url", "http://" + address}, args...)...)
	d := newDaemon(t, p, agents)
	if err := os.WriteFile(filepath.Join(d.dir, "parley.yaml"), []byte("listen: "+address+"\n"+agents), 0o600); err != nil {
		t.Fatal(err)
	}
	return p, d
}

// TestParleyWithTheFakeProgram uses the real binary.
func TestParleyWithTheFakeProgram(t *testing.T) {
	p, d := newBridged(t, "")
	d.start()
	for _, turn := range []struct{ typed, shown string }{
		{"> hello", "direct: the bot posts [1]: hello"},
		{"react 👍", ""},
		{"edit hello!", ""},
		{"#garden: not for the bot", ""},
		{"delete", ""},
		{"#garden: parley: is it dry?", "#garden: the bot posts [2]: is it dry?"},
		{"#garden: parley: and now?", "#garden: the bot posts [3]: and now?"}, // then the answer before is recorded
		{"^ 2 and here?", "#garden: the bot posts [4]: and here?"},
		{"^ 9 and there?", `there is no post "9"`},
		{"press 1", `there is no button "1"`},
	} {
		p.typeLine(turn.typed)
		if turn.shown != "" {
			p.wait(turn.shown)
		}
	}
	d.stop()
	p.typeLine("> are you down?")
	d.start()
	p.wait("direct: the bot posts [5]: are you down?")
	d.stop()
	p.typeLine("what")
	p.wait("  quit")
	p.quit()
}

// TestPressesInTheFakeProgram presses the buttons of a card.
func TestPressesInTheFakeProgram(t *testing.T) {
	p, d := newBridged(t, cardedAgent(t), "-agent", "carded")
	d.start()
	for _, turn := range []struct{ typed, shown string }{
		{"> a room?", "direct: the bot posts [1]: Here."},
		{"", `direct: the bot posts [2]: Room 7 ⏎ Free. ⏎ \[Book it]  \[Pay]  Look: https://rooms.example/7 [1 Book it] [2 Pay]`},
		{"press 1", `direct: the bot posts [3]: pressed {"id":"book","value":null}`},
		{"press 2", "direct: the bot posts [4]: Sorry, only the approvers of this agent can press this button."},
	} {
		p.typeLine(turn.typed)
		p.wait(turn.shown)
	}
	d.stop()
	p.quit()
}
