package storage

import "fmt"

// Step removes old rows of one table, or the rows of a removed workspace, in small
// transactions, because durable accepts wait for each of them.
type Step struct {
	Name  string
	Bound any // the time before which rows are too old, or the workspace
	// Removed means that the bound is a removed workspace. The step ends if a node has
	// configured the workspace again.
	Removed bool
	// Page is the query for the last id of the next few rows, after id $1, to which the
	// bound $2 applies; null if there are none. If Page is empty, the statement finds the
	// rows.
	Page string
	// Statements run in one transaction. Those of a page get the id before it, its last id
	// and the bound; others get the bound, and run until they change nothing.
	Statements []string
	// Stays means that the rows remain: the position is stored, and the next call begins
	// there.
	Stays bool
}

// ByAge returns the step for the rows of a table, with a key, whose time is before a bound.
func ByAge(table, key, at string, before int64) Step {
	return Step{Name: table, Bound: before, Statements: []string{
		fmt.Sprintf(`DELETE FROM %[1]s WHERE (%[2]s) IN (SELECT %[2]s FROM %[1]s WHERE %[3]s <= $1 LIMIT 100)`, table, key, at),
	}}
}

// ByID returns the step for a workspace's rows of a table, some at a time in the order of an id. The
// statements before come first: they get the id before the rows, the last id and the workspace.
func ByID(workspace, table, id string, rows int, before ...string) Step {
	return Step{Name: table, Bound: workspace, Removed: true,
		Page: fmt.Sprintf(`SELECT max(%[2]s) FROM (SELECT %[2]s FROM %[1]s WHERE %[2]s > $1 AND workspace = $2 ORDER BY %[2]s LIMIT %[3]d) AS page`,
			table, id, rows),
		Statements: append(before, fmt.Sprintf(`DELETE FROM %[1]s WHERE %[2]s > $1 AND %[2]s <= $2 AND workspace = $3`, table, id)),
	}
}

// ByKey returns the step for a workspace's rows of a table in the order of a key.
func ByKey(workspace, table, key string) Step {
	return Step{Name: table, Bound: workspace, Removed: true, Statements: []string{
		fmt.Sprintf(`DELETE FROM %[1]s WHERE workspace = $1 AND %[2]s IN (SELECT %[2]s FROM %[1]s WHERE workspace = $1 LIMIT 100)`, table, key),
	}}
}
