package postgres

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// errAddress stands for every fault of an address: the cause may hold the password.
var errAddress = errors.New("the address of the database can't be read: it is postgres://user:password@host:port/database, where / ? # @ in a password are written as %2F %3F %23 %40")

// parse reads the addresses.
func (o Options) parse() (config *pgxpool.Config, listen *pgx.ConnConfig, err error) {
	if config, err = pgxpool.ParseConfig(o.URL); err != nil || misread(config.ConnConfig) {
		return nil, nil, errAddress
	}
	listen = config.ConnConfig.Copy()
	if o.ListenURL != "" {
		if listen, err = pgx.ParseConfig(o.ListenURL); err != nil || misread(listen) {
			return nil, nil, errAddress
		}
	}
	for _, c := range []*pgx.ConnConfig{config.ConnConfig, listen} {
		if c.ConnectTimeout == 0 {
			c.ConnectTimeout = connectWithin
		}
	}
	if config.PingTimeout == 0 {
		config.PingTimeout = connectWithin
	}
	config.MaxConns = int32(o.Connections)
	if named(config.ConnConfig) {
		config.AfterConnect = configure
	}
	return config, listen, nil
}

// misread says that a part of the password was taken for something else, which an
// error would show: an @ is left where there can be none.
func misread(c *pgx.ConnConfig) bool {
	return strings.Contains(c.Database, "@") || strings.Contains(c.Host, "@")
}

// named says whether statements may be kept prepared on a connection, and with them
// what it is set to: pgx's own parameter default_query_exec_mode speaks of both.
func named(c *pgx.ConnConfig) bool { return c.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement }

// patience bounds the wait for a row that another node has locked. Calls that share
// a transaction lock rows in no order, so that two nodes may wait for each other;
// whoever gives up runs its calls apart, each in a transaction that is endless in its patience.
const (
	patience = 50 * time.Millisecond
	endless  = `SELECT set_config('lock_timeout', '0', true)`
)

// vanishedAfter is how long a node may leave a transaction alone: the rows that it
// has locked are other nodes' too, and one that is alive goes on within milliseconds.
const vanishedAfter = 5 * time.Second

// settings see to it that COMMIT means durable, whatever the server's default is,
// that statements are planned once and not for every call, and that such a plan does
// not depend on how much was there when it was made (every query of the journal has
// its index), and that a node which vanished inside of a
// transaction does not keep its rows locked.
func settings(local bool) string {
	is := ", " + strconv.FormatBool(local) + ")"
	return `SELECT set_config('enable_seqscan', 'off'` + is + `,
		set_config('plan_cache_mode', 'force_generic_plan'` + is + `,
		set_config('lock_timeout', '` + strconv.FormatInt(patience.Milliseconds(), 10) + `'` + is + `,
		set_config('idle_in_transaction_session_timeout', '` + strconv.FormatInt(vanishedAfter.Milliseconds(), 10) + `'` + is + `,
		set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END` + is
}

// configure sets up a connection that stays ours.
func configure(ctx context.Context, c *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, connectWithin)
	defer cancel()
	_, err := c.Exec(ctx, settings(false))
	return err
}

// opening are the statements that a transaction begins with: on a connection that a
// pooler lends, its settings have to go along.
func (e *Engine) opening(begin string) []string {
	if e.named {
		return []string{begin}
	}
	return []string{begin, settings(true)}
}
