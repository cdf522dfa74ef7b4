package sqlite

import (
	"database/sql/driver"
	"fmt"
	"time"

	"parley/ingest/journal/storage"
)

// scan copies a row into the caller's variables. The driver returns copies, so the caller
// may keep a []byte.
func scan(values []driver.Value, dest []any) error {
	if len(values) != len(dest) {
		return fmt.Errorf("scan: the query has %d columns, not %d", len(values), len(dest))
	}
	for i, value := range values {
		if !assign(dest[i], value) {
			return fmt.Errorf("scan: column %d is %T, which does not fit into %T", i+1, value, dest[i])
		}
	}
	return nil
}

// assign sets *dest to value. NULL becomes the zero value, which is nil for an any. Texts
// and blobs convert to each other, and an integer converts to a bool or a time, because
// SQLite has neither.
func assign(dest any, value driver.Value) (ok bool) {
	switch dest := dest.(type) {
	case *any:
		if empty, isBlob := value.([]byte); isBlob && empty == nil {
			value = []byte{} // SQLite would store a nil slice as NULL
		}
		*dest, ok = value, true
	case *int64:
		*dest, ok = value.(int64)
	case *bool:
		var n int64
		n, ok = value.(int64)
		*dest = n != 0
	case *time.Time:
		var ms int64
		ms, ok = value.(int64)
		*dest = storage.Instant(ms)
	case *string:
		switch value := value.(type) {
		case string:
			*dest, ok = value, true
		case []byte:
			*dest, ok = string(value), true
		default:
			*dest = ""
		}
	case *[]byte:
		switch value := value.(type) {
		case []byte:
			*dest, ok = value, true
		case string:
			*dest, ok = []byte(value), true
		default:
			*dest = nil
		}
	default:
		return false
	}
	return ok || value == nil
}
