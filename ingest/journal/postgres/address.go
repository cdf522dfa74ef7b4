package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// errAddress is the error for every fault of an address. It leaves out the cause, which
// may contain the password.
var errAddress = errors.New("the address of the database cannot be parsed: it is postgres://user:password@host:port/database, where / ? # @ in a password are written as %2F %3F %23 %40")

// parse parses an address.
func parse(url string) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil || strings.Contains(config.ConnConfig.Database+config.ConnConfig.Host, "@") {
		return nil, errAddress // an @ there is a part of the password, which pgx shows in its errors
	}
	config.ConnConfig.ConnectTimeout = cmp.Or(config.ConnConfig.ConnectTimeout, connectWithin)
	config.PingTimeout = cmp.Or(config.PingTimeout, pingWithin)
	return config, nil
}

// PlainHosts returns the hosts to which the engine may connect without TLS, as the address and
// the environment say. It returns none for an address that cannot be parsed.
func PlainHosts(url string) (hosts []string) {
	config, err := parse(url)
	if err != nil {
		return nil
	}
	if config.ConnConfig.TLSConfig == nil {
		hosts = append(hosts, config.ConnConfig.Host)
	}
	for _, other := range config.ConnConfig.Fallbacks {
		if other.TLSConfig == nil {
			hosts = append(hosts, other.Host)
		}
	}
	return hosts
}

const (
	// patience bounds the wait for a row lock. Shared transactions lock rows in any
	// order, so two nodes may wait for each other. The node that gives up runs its calls
	// again, each in its own transaction.
	patience = 50 * time.Millisecond
	// vanishedAfter is the time after which the server ends a transaction whose node
	// sends nothing, because the transaction locks rows that other nodes need.
	vanishedAfter = 5 * time.Second
	// waitForLocks lifts the bound of patience for one transaction.
	waitForLocks = `SELECT set_config('lock_timeout', '0', true)`
)

// settings returns the query that configures a connection, or with local only its
// current transaction. COMMIT is always durable. The server makes a plan once, and uses
// indexes even if the tables are small at that time. It compiles no plan: compilation
// takes half a second, and without sequential scans the estimated cost of a plan says
// nothing about its use.
func settings(local bool) string {
	return fmt.Sprintf(`SELECT set_config('enable_seqscan', 'off', %[1]t),
		set_config('jit', 'off', %[1]t),
		set_config('plan_cache_mode', 'force_generic_plan', %[1]t),
		set_config('lock_timeout', '%[2]d', %[1]t),
		set_config('idle_in_transaction_session_timeout', '%[3]d', %[1]t),
		set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, %[1]t)`,
		local, patience.Milliseconds(), vanishedAfter.Milliseconds())
}

// configure applies the settings to a new connection.
func configure(ctx context.Context, c *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, connectWithin)
	defer cancel()
	_, err := c.Exec(ctx, settings(false))
	return err
}

// opening returns the first statements of a transaction. A connection of a pooler has no
// settings, so each transaction sets them.
func (e *Engine) opening(begin string) []string {
	if e.keepsState {
		return []string{begin}
	}
	return []string{begin, settings(true)}
}
