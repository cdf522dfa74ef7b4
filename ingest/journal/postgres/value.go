package postgres

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"parley/ingest/event"
	"parley/ingest/journal/storage"
)

// scan copies the current row into dest.
func scan(types *pgtype.Map, rows pgx.Rows, dest []any) error {
	fields := rows.FieldDescriptions()
	if len(fields) != len(dest) {
		return fmt.Errorf("scan: the query has %d columns, not %d", len(fields), len(dest))
	}
	for i, value := range rows.RawValues() {
		if err := assign(types, fields[i].DataTypeOID, fields[i].Format, value, dest[i]); err != nil {
			return fmt.Errorf("scan: column %s: %w", fields[i].Name, err)
		}
	}
	return nil
}

// assign sets *dest to a value. NULL becomes the zero value. An integer becomes a time, or
// a bool, which is true if the integer is not 0.
func assign(types *pgtype.Map, oid uint32, format int16, value []byte, dest any) error {
	if value == nil {
		reflect.ValueOf(dest).Elem().SetZero()
		return nil
	}
	at, isTime := dest.(*time.Time)
	truth, isBool := dest.(*bool)
	if !isTime && (!isBool || oid == pgtype.BoolOID) {
		return types.Scan(oid, format, value, dest)
	}
	var number int64
	err := types.Scan(oid, format, value, &number)
	if isTime {
		*at = storage.Instant(number)
	} else {
		*truth = number != 0
	}
	return err
}

// storableArgs returns a copy of args with storable texts. PostgreSQL refuses U+0000 and
// invalid UTF-8 in a text, which occur in ids and in the text of errors.
func storableArgs(args []any) []any {
	args = slices.Clone(args)
	for i, arg := range args {
		if text, ok := arg.(string); ok {
			args[i] = event.Text(text)
		}
	}
	return args
}
