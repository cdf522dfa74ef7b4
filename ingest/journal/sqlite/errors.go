package sqlite

import (
	"errors"
	"fmt"
	"strings"

	driver "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"parley/ingest/journal/storage"
)

// errDone is the error of a statement in an ended transaction.
var errDone = errors.New("the transaction has ended")

// code returns SQLite's extended result code, or 0 if err has none.
// https://www.sqlite.org/rescode.html
func code(err error) int {
	if e, ok := errors.AsType[*driver.Error](err); ok {
		return e.Code()
	}
	return 0
}

func primary(err error) int { return code(err) & 0xff }

func isBusy(err error) bool { return primary(err) == lib.SQLITE_BUSY }

// leavesNothing reports whether a failed COMMIT cannot have left a valid commit record in
// the log. A failed write is the last one that SQLite makes, so the record is incomplete.
// After any other failure (fsync above all) the record may be complete, and take effect
// after a crash although it was not acknowledged.
func leavesNothing(err error) bool {
	switch primary(err) {
	case lib.SQLITE_FULL, lib.SQLITE_BUSY, lib.SQLITE_CONSTRAINT:
		return true
	}
	return code(err) == lib.SQLITE_IOERR_WRITE
}

// unclear adds storage.ErrUnclear to err, once.
func unclear(err error) error {
	if errors.Is(err, storage.ErrUnclear) {
		return err
	}
	return fmt.Errorf("%w: %w", storage.ErrUnclear, err)
}

// unavailable marks an error of the store itself. A statement with an error of its own
// (SQLITE_ERROR) would fail again.
func unavailable(err error) error {
	if primary(err) == lib.SQLITE_ERROR || primary(err) == lib.SQLITE_CONSTRAINT {
		return err
	}
	if primary(err) == lib.SQLITE_FULL {
		return fmt.Errorf("%w: %w", storage.ErrFull, err)
	}
	return fmt.Errorf("%w: %w", storage.ErrUnavailable, err)
}

// shown returns a query on one line, for the beginning that an error quotes.
func shown(query string) string { return strings.Join(strings.Fields(query), " ") }
