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

// The variables by which a test's environment speaks.
const (
	// Address holds the address of a server on which databases may be made.
	Address = "PARLEY_TEST_POSTGRES_URL"
	// Required, where it is not empty, makes a server that does not answer a failure.
	Required = "PARLEY_TEST_POSTGRES_REQUIRED"
)

// defaultAddress is where a machine that runs all tests has its server.
const defaultAddress = "postgres://root@127.0.0.1:5432/test"

// answerWithin is how long a server may take.
const answerWithin = 10 * time.Second

// URL makes an empty database for a test and returns its address; it is dropped
// when the test ends. The test is skipped where there is no server.
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
		t.Skipf("skipped: it needs a PostgreSQL at %s, or where %s says: %v", defaultAddress, Address, err)
	}
	t.Cleanup(func() {
		if err := run(context.WithoutCancel(t.Context()), address, "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			t.Errorf("drop the test's database: %v", err)
		}
	})
	made, err := url.Parse(address)
	if err != nil {
		t.Fatalf("%s is no address: %v", Address, err)
	}
	made.Path = "/" + name
	return made.String()
}

// Schema makes an empty schema in the database at an address that URL gave, and
// returns the address at which it stands for the whole. That is much cheaper than a
// database, and goes with it. Nodes in one database hear each other's bells.
func Schema(t testing.TB, database string) string {
	t.Helper()
	name := "test_" + uuid.NewString()[:8]
	if err := run(t.Context(), database, "CREATE SCHEMA "+name); err != nil {
		t.Fatalf("make a schema: %v", err)
	}
	made, err := url.Parse(database)
	if err != nil {
		t.Fatalf("%s is no address: %v", database, err)
	}
	query := made.Query()
	query.Set("options", "-csearch_path="+name)
	made.RawQuery = query.Encode()
	return made.String()
}

// run executes one statement on a connection of its own.
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
