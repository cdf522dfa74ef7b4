package transfer

import (
	"slices"

	"parley/ingest/journal/storage"
)

// Copied returns the tables of a store that are copied, in their order.
func Copied(tx storage.Tx) (tables []storage.Table, err error) {
	copied, err := read(tx)
	for _, t := range copied {
		tables = append(tables, storage.Table(t))
	}
	return tables, err
}

// Left lists the tables that are not copied.
func Left() []string { return slices.Clone(left) }

// Checksum returns the checksum of some rows.
func Checksum(rows ...[]any) any {
	var sum checksum
	for _, r := range rows {
		sum.add(r)
	}
	return sum
}
