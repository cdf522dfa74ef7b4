package postgres

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"parley/ingest/journal"
)

// errDone is what a transaction says to a function that kept it.
var errDone = errors.New("the transaction has ended")

// brokenError is the end of a connection, whatever ended it.
type brokenError struct{ error }

// Unwrap gives the cause.
func (e brokenError) Unwrap() error { return e.error }

// isBroken says that the connection is of no use any more.
func isBroken(err error) bool {
	var broken brokenError
	return errors.As(err, &broken)
}

// code is the SQLSTATE of an error of the server; empty for any other.
// https://www.postgresql.org/docs/current/errcodes-appendix.html
func code(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// The SQLSTATEs that are told apart.
const (
	notANumber           = "22P02" // how a statement says that it changed nothing; see nothingFails
	uniqueViolation      = "23505"
	readOnly             = "25006"
	noSuchStatement      = "26000" // a pooler gave us another connection, or the statement was thrown away
	statementExists      = "42P05" // a pooler gave us a connection on which another node has prepared it
	serializationFailure = "40001"
	deadlock             = "40P01"
	lockNotAvailable     = "55P03"
	planChanged          = "0A000" // a migration has changed a statement's columns, or the server is a standby now
)

// raced says that the transaction lost against others that went on beside it:
// run again, it sees what they have done.
func raced(err error) bool {
	switch code(err) {
	case uniqueViolation, serializationFailure, deadlock:
		return true
	}
	return false
}

// isNothing says that a statement failed because it changed nothing.
func isNothing(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && e.Code == notANumber && strings.Contains(e.Message, nothingChanged)
}

// outdated says that another connection may do what this one can't: its prepared
// statements are not what they were, or its server is not.
func outdated(err error) bool {
	switch code(err) {
	case noSuchStatement, statementExists, planChanged:
		return true
	}
	return false
}

// ofStore says that an error is the store's own trouble: the connection's, whatever
// the server said as it ended or refused it, or one of the classes for a server
// without disk, memory or connections, one that an operator has stopped, and one
// that finds itself damaged.
func ofStore(err error) bool {
	if isBroken(err) || outdated(err) {
		return true
	}
	switch c := code(err); {
	case c == readOnly, c == lockNotAvailable:
		return true
	case len(c) >= 2:
		return slices.Contains([]string{"08", "40", "53", "57", "58", "XX"}, c[:2])
	}
	return false
}

// unavailable marks an error of the store itself.
func unavailable(err error) error {
	if err == nil || errors.Is(err, journal.ErrUnavailable) || !ofStore(err) {
		return err
	}
	return fmt.Errorf("%w: %w", journal.ErrUnavailable, err)
}

// shown is a query as an error quotes it: on one line, and not whole.
func shown(query string) string {
	line := strings.Join(strings.Fields(query), " ")
	if len(line) > 60 {
		line = strings.ToValidUTF8(line[:60], "") + "…"
	}
	return line
}
