package commands

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestNotify plays systemd: it hears when the daemon serves, and when it stops and how long that may take.
func TestNotify(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	serveOperators(t, dir)
	short, err := os.MkdirTemp("", "parley") // the name of a socket has few characters
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(short) })
	address := filepath.Join(short, "notify")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: address, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	if err := manager.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	p := start(t, dir, "env", "NOTIFY_SOCKET="+address, os.Args[0], "run")
	hear := func() string {
		t.Helper()
		buffer := make([]byte, 1024)
		n, err := manager.Read(buffer)
		if err != nil {
			t.Fatal(err)
		}
		return string(buffer[:n])
	}
	if state := hear(); state != "READY=1" {
		t.Errorf("%q", state)
	}
	if got := parley(t, dir, "status"); got.status != 0 {
		t.Errorf("%+v", got)
	}
	p.signal(os.Interrupt)
	if state := hear(); !strings.HasPrefix(state, "STOPPING=1\nEXTEND_TIMEOUT_USEC=11000000") {
		t.Errorf("%q", state)
	}
	p.end()
}
