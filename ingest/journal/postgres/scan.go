package postgres

import (
	"encoding/binary"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// scan copies a row into the caller's variables.
func scan(fields []pgconn.FieldDescription, values [][]byte, dest []any) error {
	if len(values) != len(dest) {
		return fmt.Errorf("scan: the query has %d columns, not %d", len(values), len(dest))
	}
	for i, value := range values {
		if !assign(dest[i], value, fields[i].DataTypeOID) {
			return fmt.Errorf("scan: column %s, of type %d, does not go into %T", fields[i].Name, fields[i].DataTypeOID, dest[i])
		}
	}
	return nil
}

// assign sets *dest to a value in binary form; NULL is the zero value. Text and
// bytea go into each other.
func assign(dest any, value []byte, oid uint32) bool {
	switch dest := dest.(type) {
	case *int64:
		n, ok := integer(value, oid)
		*dest = n
		return ok
	case *bool:
		n, ok := integer(value, oid)
		*dest = n != 0
		return ok
	case *string:
		*dest = string(value)
		return textual(oid)
	case *[]byte:
		*dest = append([]byte(nil), value...)
		if value != nil && *dest == nil {
			*dest = []byte{}
		}
		return textual(oid)
	}
	return false
}

// integer reads a number of any width, or a boolean.
func integer(value []byte, oid uint32) (int64, bool) {
	switch oid {
	case pgtype.Int8OID, pgtype.Int4OID, pgtype.Int2OID, pgtype.BoolOID:
	default:
		return 0, false
	}
	switch len(value) {
	case 0:
		return 0, true
	case 1:
		return int64(value[0]), true
	case 2:
		return int64(int16(binary.BigEndian.Uint16(value))), true
	case 4:
		return int64(int32(binary.BigEndian.Uint32(value))), true
	case 8:
		return int64(binary.BigEndian.Uint64(value)), true
	}
	return 0, false
}

// textual says that a value's binary form is its bytes.
func textual(oid uint32) bool {
	switch oid {
	case pgtype.TextOID, pgtype.VarcharOID, pgtype.ByteaOID, pgtype.UnknownOID, pgtype.NameOID:
		return true
	}
	return false
}
