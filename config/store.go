package config

import (
	"errors"
	"net/url"
	"strings"

	"parley/config/secret"
)

// The store's engines.
const (
	SQLite   = "sqlite"
	Postgres = "postgres"
)

// Store says where the journal is kept.
type Store struct {
	Engine string // SQLite or Postgres
	// Path is SQLite's file.
	Path string
	// URL is the address of a PostgreSQL database; it may hold a password.
	URL secret.Value
}

// UnmarshalText reads sqlite:<file> or postgres://user@host/database.
func (s *Store) UnmarshalText(text []byte) error {
	given := string(text)
	if path, ok := strings.CutPrefix(given, "sqlite:"); ok {
		if path == "" || strings.HasPrefix(path, "//") {
			return errors.New("must name a file directly after sqlite:, as in sqlite:data/parley.db")
		}
		*s = Store{Engine: SQLite, Path: path}
		return nil
	}
	address, err := url.Parse(given)
	if err != nil || address.Scheme != "postgres" && address.Scheme != "postgresql" {
		return errors.New("must be sqlite:<file> or postgres://user@host/database")
	}
	*s = Store{Engine: Postgres, URL: secret.New(given)}
	return nil
}
