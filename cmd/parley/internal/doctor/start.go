package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"parley/adapters"
	"parley/cmd/parley/internal/boot"
	"parley/config"
	"parley/ingest/attach"
)

// checkStart reports a store that the daemon can't open, and an address that it can't listen
// on. It changes no store. A daemon may be running: its own
// lock is no fault, and its address only a note.
func checkStart(ctx context.Context, c *config.Config) (found []Found) {
	report := func(key string, err error) {
		if err != nil {
			found = append(found, Found{Finding: adapters.Finding{Key: key, Words: "the daemon can't start: " + strings.Join(strings.Fields(err.Error()), " "), Fault: true}})
		}
	}
	l, err := boot.Listen(c)
	switch {
	case err == nil:
		err = l.Close()
	case errors.Is(err, syscall.EADDRINUSE):
		err = nil
		found = append(found, Found{Finding: adapters.Finding{Key: "listen", Note: true, Words: "the address is in use: " + boot.InUse}})
	}
	report("listen", err)
	needs, err := boot.Check(ctx, c.Store)
	report("store", err)
	if err == nil && needs.From > 0 && len(needs.Steps) > 0 {
		found = append(found, Found{Finding: adapters.Finding{Key: "store", Note: true, Words: fmt.Sprintf(
			"the next start updates the schema from %d to %d (%s), and no older program opens the store then: make a backup before", needs.From, needs.To(), strings.Join(needs.Steps, ", "))}})
	}
	return found
}

// checkFiles reports a directory or a bucket that refuses copies of attachments. A server that
// does not answer is no fault.
func checkFiles(ctx context.Context, c attach.Config) (found []Found) {
	report := func(key string, err error, fault bool) {
		if err != nil {
			words := "copies of attachments can't be stored: " + strings.Join(strings.Fields(err.Error()), " ")
			found = append(found, Found{Finding: adapters.Finding{Key: key, Words: words, Fault: fault}, Unasked: !fault})
		}
	}
	store, err := attach.New(c, attach.Books{}, nil)
	if err != nil {
		report("attachments.s3", err, false)
		return found
	}
	report("attachments.dir", store.CheckDir(), true)
	err = store.Check(ctx)
	report("attachments.s3", err, errors.Is(err, attach.ErrRefused))
	return found
}
