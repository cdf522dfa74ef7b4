package postgres

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"parley/ingest/journal/storage"
)

var (
	// errEnded means that a function uses its transaction after the transaction's end.
	errEnded = errors.New("the transaction has ended")
	// errBroken means that the connection is lost, or could not be opened.
	errBroken = errors.New("no connection to the database")
)

// broken marks an error that ended a connection.
func broken(err error) error { return fmt.Errorf("%w: %w", errBroken, err) }

func isBroken(err error) bool { return errors.Is(err, errBroken) }

// unencodable reports whether an argument does not fit its parameter. pgx then closes
// the connection before it sends the batch, although the connection is sound.
func unencodable(err error) bool {
	var e pgx.ErrPreprocessingBatch
	return errors.As(err, &e) && strings.Contains(e.Error(), "(build)")
}

// code returns the SQLSTATE of a server's error; empty for any other error.
// https://www.postgresql.org/docs/current/errcodes-appendix.html
func code(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// The SQLSTATEs that the engine handles.
const (
	planChanged          = "0A000" // a migration changed the columns of a prepared statement, or the server became a standby
	uniqueViolation      = "23505"
	readOnly             = "25006"
	noSuchStatement      = "26000" // the statement was deallocated, or a pooler switched the connection
	serializationFailure = "40001"
	deadlock             = "40P01"
	statementExists      = "42P05" // a pooler switched to a connection on which another node prepared the statement
	diskFull             = "53100"
	lockNotAvailable     = "55P03"
	adminShutdown        = "57P01" // the session was terminated
)

// raced reports whether the transaction lost against a concurrent one, or used an invalid
// prepared statement. The next run sees the other one's changes, with new prepared
// statements.
func raced(err error) bool {
	return slices.Contains([]string{uniqueViolation, serializationFailure, deadlock, noSuchStatement, statementExists, planChanged}, code(err))
}

// brokeOff reports whether an error ended a connection that worked before.
func brokeOff(err error) bool {
	if _, connecting := errors.AsType[*pgconn.ConnectError](err); connecting {
		return false
	}
	_, network := errors.AsType[*net.OpError](err)
	return network || code(err) == adminShutdown || errors.Is(err, io.ErrUnexpectedEOF)
}

// ofStore reports whether an error is the fault of the store: the connection is lost, the
// prepared statements stay invalid, or the server lacks disk, memory or connections, was
// stopped, or is damaged.
func ofStore(err error) bool {
	c := code(err)
	return isBroken(err) || slices.Contains([]string{noSuchStatement, statementExists, planChanged, readOnly, lockNotAvailable}, c) ||
		len(c) >= 2 && slices.Contains([]string{"08", "40", "53", "57", "58", "XX"}, c[:2])
}

// unavailable marks an error of the store with storage.ErrUnavailable.
func unavailable(err error) error {
	if err == nil || errors.Is(err, storage.ErrUnavailable) || !ofStore(err) {
		return err
	}
	if code(err) == diskFull {
		return fmt.Errorf("%w: %w", storage.ErrFull, err)
	}
	return fmt.Errorf("%w: %w", storage.ErrUnavailable, err)
}

// shown returns a query on one line, for the beginning that an error quotes.
func shown(query string) string { return strings.Join(strings.Fields(query), " ") }
