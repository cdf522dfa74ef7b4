package transfer

// Column is a column that a copy knows.
type Column struct {
	Kind     string
	Nullable bool
	Key      bool
}

// Known are the columns that a copy knows, by table.
func Known() map[string]map[string]Column {
	known := map[string]map[string]Column{}
	for _, t := range tables() {
		known[t.name] = map[string]Column{}
		for i, c := range t.columns {
			known[t.name][c.name] = Column{string(c.kind), c.nullable, i < t.key}
		}
	}
	return known
}

// Left are the tables that are not copied.
var Left = left
