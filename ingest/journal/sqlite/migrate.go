package sqlite

import (
	"errors"

	"parley/ingest/journal/storage/schema"
)

// exists counts the tables named schema_migrations.
const exists = `SELECT count(*) FROM sqlite_master WHERE name = 'schema_migrations'`

// migrate updates the schema in one transaction. A process that is killed meanwhile
// leaves the old schema.
func migrate(c *conn, o Options) error {
	if err := c.run("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	if err := schema.Migrate(o.Steps, exists, c.run, c.number); err != nil {
		return err // the caller closes the connection, which ends the transaction
	}
	return c.run("COMMIT")
}

// number runs a query for one number.
func (c *conn) number(query string) (n int64, err error) {
	err = c.row([]any{&n}, query)
	return n, err
}

// refuseOther returns an error if the database has tables of another program and none of ours.
func (c *conn) refuseOther() error {
	others, err := c.number(`SELECT count(*) FROM sqlite_master WHERE NOT EXISTS (SELECT 1 FROM sqlite_master WHERE name = 'schema_migrations')`)
	if err == nil && others > 0 {
		err = errors.New("it is a database of another program: name another file")
	}
	return err
}
