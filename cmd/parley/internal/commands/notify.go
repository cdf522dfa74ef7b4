package commands

import (
	"net"
	"os"
)

// notifier returns the function that tells systemd the state of the daemon, as sd_notify(3) describes; nil if no
// service manager waits for it. An error is no reason to stop: the manager then runs into its own timeout.
func notifier() func(state string) {
	address := os.Getenv("NOTIFY_SOCKET")
	if address == "" {
		return nil
	}
	return func(state string) {
		conn, err := net.Dial("unixgram", address)
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = conn.Write([]byte(state))
	}
}
