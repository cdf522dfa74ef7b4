package player

import (
	"context"
	"errors"
	"time"

	"parley/adapters/guard"
	"parley/cmd/parley/internal/operator"
	"parley/config"
)

// ReplayFor plays recordings with the recording's configuration, and lets use ask the operator's service about the store.
func ReplayFor(ctx context.Context, r Recording, scratch string, use func(*operator.Service)) error {
	p, err := newPlayer(ctx, r, scratch)
	if err != nil {
		return err
	}
	err = p.play(ctx)
	use(&operator.Service{Journal: p.Journal, Config: func() *config.Config { return r.Config }, Now: time.Now, Guard: guard.New(func(string) {})})
	return errors.Join(err, p.Journal.Close())
}
