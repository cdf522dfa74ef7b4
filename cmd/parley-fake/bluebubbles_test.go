package main

import (
	"context"
	"io"
	"testing"
)

// TestParleyWithTheFakeMac uses the real binary.
func TestParleyWithTheFakeMac(t *testing.T) {
	p := start(t, playBlueBubbles)
	d := newDaemon(t, p, "")
	d.start()
	p.wait("the daemon registers its webhook")
	for _, turn := range []struct{ typed, shown string }{
		{"> hello", "direct: the bot writes: hello"},
		{"#group: not for the bot", ""},
		{"#group: Parley, hi", "#group: the bot replies: Parley, hi"},
		{"^ and this", "#group: the bot replies: and this"},
		{"love", ""},
		{"self: a note", "self: the bot writes: a note"},
		{"me: not for the bot", ""},
		{"lose on", ""},
		{"> lost", "direct: the bot writes: lost"},
		{"lose off", ""},
		{"> still there?", "direct: the bot writes: still there?"},
	} {
		p.typeLine(turn.typed)
		if turn.shown != "" {
			p.wait(turn.shown)
		}
	}
	d.stop()
	p.typeLine("> are you down?")
	p.typeLine("replay")
	d.start()
	p.wait("direct: the bot writes: are you down?")
	d.stop()
	p.quit()
}

// TestMacLines checks the lines that need no daemon, and the help.
func TestMacLines(t *testing.T) {
	p := start(t, playBlueBubbles)
	for _, line := range []string{"> hi", "edit hello", "unsend", "away on", "away off", "replay"} {
		p.typeLine(line)
	}
	p.wait("sent 1 webhooks again")
	for _, line := range []string{"^ nothing was answered", "love", "what"} {
		p.typeLine(line)
		p.wait("  quit")
	}
	p.quit()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	input, in := io.Pipe()
	defer in.Close()
	if err := playBlueBubbles(ctx, []string{"-listen", "127.0.0.1:0"}, input, io.Discard); err != nil {
		t.Error(err)
	}
}
