package postgres

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"parley/ingest/event"
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

// assign sets *dest to a value. NULL becomes the zero value, and an integer that is
// not 0 becomes true.
func assign(types *pgtype.Map, oid uint32, format int16, value []byte, dest any) error {
	if value == nil {
		reflect.ValueOf(dest).Elem().SetZero()
		return nil
	}
	truth, ok := dest.(*bool)
	if !ok || oid == pgtype.BoolOID {
		return types.Scan(oid, format, value, dest)
	}
	var number int64
	err := types.Scan(oid, format, value, &number)
	*truth = number != 0
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
