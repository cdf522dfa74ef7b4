package journal

import (
	"context"
	"errors"
	"fmt"
)

// NoteCopying names the row of cursors, of no workspace, that a store has while
// it is being filled from another one.
const NoteCopying = "store/copying"

// ErrUnfinished means that the store is a copy that was begun and not completed.
var ErrUnfinished = errors.New("the store is an unfinished copy of another one: run parley copy-store with the same two stores again, which goes on where it ended")

// Whole says whether a store may be worked on: the error wraps ErrUnfinished
// where it is half a copy. A daemon asks this before it makes a Journal.
func Whole(ctx context.Context, engine Engine) error {
	var half int64
	err := engine.Read(ctx, func(tx Tx) error {
		_, err := tx.Row([]any{&half}, `SELECT count(*) FROM cursors WHERE workspace = '' AND channel = ?`, NoteCopying)
		return err
	})
	if err != nil {
		return fmt.Errorf("look whether the store is whole: %w", err)
	}
	if half > 0 {
		return ErrUnfinished
	}
	return nil
}
