package transfer

// Column is a column in the list of copied tables.
type Column struct {
	Kind string
	Key  bool
}

// Known returns the copied columns by table.
func Known() map[string]map[string]Column {
	known := map[string]map[string]Column{}
	for _, t := range tables {
		known[t.name] = map[string]Column{}
		for i, c := range t.columns {
			known[t.name][c.name] = Column{c.kind, i < t.key}
		}
	}
	return known
}

// NotCopied lists the tables that are not copied: nodes' exclusive leases, the marker
// of an unfinished copy, the version of the schema, and the index of words, which the new store
// makes from the messages.
func NotCopied() []string {
	return []string{"exclusive_leases", "unfinished_copy", "schema_migrations", "search_words", "search_changes", "search_progress", "search_people"}
}

// Checksum returns the checksum of some rows.
func Checksum(rows ...[]any) any {
	var sum checksum
	for _, r := range rows {
		sum.add(r)
	}
	return sum
}
