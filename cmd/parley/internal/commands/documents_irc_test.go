package commands

import (
	"bufio"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"
)

// ircServer is a fake IRC server with one client.
type ircServer struct {
	t     *testing.T
	conn  net.Conn
	lines *bufio.Scanner
}

// line returns the next line of the client.
func (s *ircServer) line() string {
	s.t.Helper()
	if !s.lines.Scan() {
		s.t.Fatalf("the client has left: %v", s.lines.Err())
	}
	return strings.TrimRight(s.lines.Text(), "\r")
}

func (s *ircServer) say(line string) {
	if _, err := fmt.Fprintf(s.conn, "%s\r\n", line); err != nil {
		s.t.Error(err)
	}
}

// TestDocumentsOnIRC runs the program of adapters/web/bridge/README.md with a fake IRC server and a daemon: a line that calls the
// agent is answered in its channel, and a direct message in its conversation, each once and in order, also if the program was away.
func TestDocumentsOnIRC(t *testing.T) {
	t.Parallel()
	p, start := commands(t, "adapters/web/bridge/README.md", "python3 irc.py")
	r := newReader(t, p, builtPrograms(t))
	r.need("python3 openssl curl")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	own := freeAddress(t)
	port := func(address string) string { return address[strings.LastIndex(address, ":")+1:] }
	ports := strings.NewReplacer("6667", port(listener.Addr().String()), "8700", port(own))
	for _, b := range p.blocks {
		switch {
		case b.file() != "":
			write(t, r.dir, b.file(), ports.Replace(r.address.Replace(b.text)))
		case b.runs():
			r.run(b, b.text)
		}
	}
	expect := func(got, want string) {
		t.Helper()
		if got != want {
			t.Fatalf("%q, want %q", got, want)
		}
	}
	run, program, _ := strings.Cut(start.text, "\n")
	r.begin(start, run)

	joined := make(chan *ircServer)
	accept := func() {
		conn, err := listener.Accept()
		if err != nil {
			t.Error(err)
			return
		}
		s := &ircServer{t, conn, bufio.NewScanner(conn)}
		_ = conn.SetDeadline(time.Now().Add(2 * time.Minute))
		for s.lines.Scan() && !strings.HasPrefix(s.lines.Text(), "USER") {
			continue
		}
		s.say(":irc.example 001 parley :Welcome")
		joined <- s
	}
	go accept()
	c := r.command(program)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	s := <-joined
	for _, line := range []string{
		":nora!n@host PRIVMSG #garden :good morning",
		":nora!n@host PRIVMSG #garden :parley: is it dry?",
		"PING :irc.example",
		":nora!n@host PRIVMSG Parley :and here?",
	} {
		s.say(line)
	}
	got := []string{s.line(), s.line(), s.line(), s.line()}
	slices.Sort(got) // two conversations have no order
	expect(strings.Join(got, "\n"), "JOIN #garden\nPONG :irc.example\nPRIVMSG #garden :is it dry?\nPRIVMSG nora :and here?")
	s.say(":tomas!t@host PRIVMSG #garden :Parley, two things")
	expect(s.line(), "PRIVMSG #garden :two things")

	_ = s.conn.Close() // the program ends with its connection
	_ = c.Wait()
	r.run(block{}, r.address.Replace(`curl -H "Authorization: Bearer $(cat irc-token)" http://127.0.0.1:8484/hooks/bridge/irc -d '{"id":"m1","channel":{"id":"#garden","type":"room"},
		"content":"and now?","mentioned":true,"metadata":{"sender_id":"tomas","sender_display_name":"Tomas","sender_type":"human"}}'`))
	go accept()
	c = r.command(program)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	s = <-joined
	expect(s.line(), "JOIN #garden")
	again := s.line()
	if again == "PRIVMSG #garden :two things" { // the program ended between the line and its response, and remembers no ids
		again = s.line()
	}
	expect(again, "PRIVMSG #garden :and now?")
	s.say(":nora!n@host PRIVMSG #garden :parley: are you back?")
	expect(s.line(), "PRIVMSG #garden :are you back?")
	_ = s.conn.Close()
	_ = c.Wait()
}
