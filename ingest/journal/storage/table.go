package storage

// Table is a table of a store.
type Table struct {
	Name    string
	Columns []Column // those of the primary key first, in its order
	Key     int      // the number of columns in the primary key
}

// Column is a column of a table.
type Column struct {
	Name string
	Type string // INTEGER, TEXT or BLOB on each engine; another type has the engine's name
	Null bool   // it may be null
}
