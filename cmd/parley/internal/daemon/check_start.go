package daemon

import (
	"context"
	"errors"
	"strings"
	"syscall"

	"parley/adapters"
	"parley/config"
	"parley/ingest/journal/postgres"
	"parley/ingest/journal/sqlite"
)

// checkStart reports a store that the daemon can't open, and an address that it can't listen
// on. It changes no store. A daemon may be running: its own
// address and its lock are no faults.
func checkStart(ctx context.Context, c *config.Config) (found []Found) {
	report := func(key string, err error) {
		if err != nil {
			found = append(found, Found{Finding: adapters.Finding{Key: key, Words: "the daemon can't start: " + strings.Join(strings.Fields(err.Error()), " "), Fault: true}})
		}
	}
	l, err := listen(c)
	switch {
	case err == nil:
		err = l.Close()
	case errors.Is(err, syscall.EADDRINUSE):
		err = nil
	}
	report("listen", err)
	if c.Store.Engine == config.Postgres {
		report("store", postgres.Check(ctx, postgresOptions(c.Store)))
	} else {
		report("store", sqlite.Check(c.Store.Path))
	}
	return found
}
