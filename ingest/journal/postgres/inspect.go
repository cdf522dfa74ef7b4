package postgres

import (
	"context"
	"errors"
)

// Inspection has facts about a database.
type Inspection struct {
	Version string // of the server, such as "16.4"
	Schema  int64  // the number of its migrations; 0 before the first start
	Bytes   int64  // of the whole database
	// Connections is the number of connections to the server, and Limit how many it admits from users without special rights.
	Connections, Limit int64
}

// Inspect looks at a database, and changes nothing. It fails as Check does.
func Inspect(ctx context.Context, o Options) (found Inspection, err error) {
	config, err := parse(o.URL)
	if err != nil {
		return found, err
	}
	u, err := applied(ctx, config.ConnConfig)
	if err != nil {
		return found, err
	}
	found.Schema = u.From
	c, err := connect(ctx, config.ConnConfig)
	if err != nil {
		return found, err
	}
	err = c.QueryRow(ctx, `SELECT split_part(current_setting('server_version'), ' ', 1), pg_database_size(current_database()),
		(SELECT sum(numbackends) FROM pg_stat_database)::bigint, current_setting('max_connections')::bigint - current_setting('superuser_reserved_connections')::bigint`).
		Scan(&found.Version, &found.Bytes, &found.Connections, &found.Limit)
	return found, errors.Join(err, c.Close(context.WithoutCancel(ctx)))
}
