// Package postgrestest gives tests PostgreSQL databases of their own.
package postgrestest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// The environment variables of the package.
const (
	// Address is the address of a server on which the tests may create databases.
	Address = "PARLEY_TEST_POSTGRES_URL"
	// Required makes a missing server a failure if it is not empty.
	Required = "PARLEY_TEST_POSTGRES_REQUIRED"
)

// defaultAddress is the address of the local server.
const defaultAddress = "postgres://root@127.0.0.1:5432/test"

// answerWithin bounds one statement on the server. DROP DATABASE makes a checkpoint,
// which takes seconds on a busy server.
const answerWithin = time.Minute

// URL creates an empty database for a test and returns its address. It drops the
// database when the test ends, and skips the test if there is no server.
func URL(t testing.TB) string {
	t.Helper()
	address := os.Getenv(Address)
	if address == "" {
		address = defaultAddress
	}
	name := "parley_test_" + uuid.NewString()[:8]
	if err := run(t.Context(), address, "CREATE DATABASE "+name+" TEMPLATE template0 ENCODING 'UTF8'"); err != nil {
		if os.Getenv(Required) != "" {
			t.Fatalf("no PostgreSQL: %v", err)
		}
		t.Skipf("skipped: no PostgreSQL at %s; %s sets another address: %v", defaultAddress, Address, err)
	}
	t.Cleanup(func() {
		if err := run(context.WithoutCancel(t.Context()), address, "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			t.Errorf("drop the test's database: %v", err)
		}
	})
	made, err := url.Parse(address)
	if err != nil {
		t.Fatalf("%s is not an address: %v", Address, err)
	}
	made.Path = "/" + name
	return made.String()
}

// Schema creates an empty schema in a database of URL and returns an address that uses
// the schema as if it were a database. A schema is much cheaper than a database. Nodes in
// one database receive each other's notifications.
func Schema(t testing.TB, database string) string {
	t.Helper()
	name := "test_" + uuid.NewString()[:8]
	if err := run(t.Context(), database, "CREATE SCHEMA "+name); err != nil {
		t.Fatalf("create a schema: %v", err)
	}
	made, err := url.Parse(database)
	if err != nil {
		t.Fatalf("%s is not an address: %v", database, err)
	}
	query := made.Query()
	query.Set("options", "-csearch_path="+name)
	made.RawQuery = query.Encode()
	return made.String()
}

// run executes one statement on a separate connection.
func run(ctx context.Context, address, statement string) error {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	c, err := pgx.Connect(ctx, address)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer c.Close(ctx)
	_, err = c.Exec(ctx, statement)
	return err
}
