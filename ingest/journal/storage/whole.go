package storage

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrUnfinished means that the store is an incomplete copy.
var ErrUnfinished = errors.New("the store is an unfinished copy: remove it and start parley copy-store again with an empty target")

// Whole returns an error that wraps ErrUnfinished if the store is an incomplete copy. A
// daemon calls it before it creates a Journal.
func Whole(ctx context.Context, engine Engine) error {
	var begun int64
	unfinished, err := (&DB{Engine: engine}).Row(ctx, []any{&begun}, `SELECT begun_at FROM unfinished_copy`)
	if err != nil {
		return fmt.Errorf("look for an unfinished copy: %w", err)
	}
	if unfinished {
		return fmt.Errorf("%w (it began at %s)", ErrUnfinished, Instant(begun).Format(time.RFC3339))
	}
	return nil
}
