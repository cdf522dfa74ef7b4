package config

import (
	"errors"
	"net/url"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"

	"parley/config/secret"
)

// The store's engines.
const (
	SQLite   = "sqlite"
	Postgres = "postgres"
)

// defaultConnections is how many connections a node has where nothing says it.
const defaultConnections = 12

// Store says where the journal is kept. It may be printed.
type Store struct {
	Engine string // SQLite or Postgres
	// Path is SQLite's file.
	Path string
	// URL is the address of a PostgreSQL database; it may hold a password.
	URL secret.Value
	// ListenURL is a direct address of the same database, for LISTEN, which a
	// transaction pooler in front of URL does not pass on. Unset: URL is direct.
	ListenURL secret.Value
	// Connections is how many connections to PostgreSQL a node opens at the
	// most, beside the one that listens; 0 for SQLite.
	Connections int
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
	if !isPostgres(given) {
		return errors.New("must be sqlite:<file> or postgres://user@host/database")
	}
	*s = Store{Engine: Postgres, URL: secret.New(given), Connections: defaultConnections}
	return nil
}

func isPostgres(address string) bool {
	u, err := url.Parse(address)
	return err == nil && (u.Scheme == "postgres" || u.Scheme == "postgresql")
}

// Equal says whether both are the same setting.
func (s Store) Equal(other Store) bool { return s.plain() == other.plain() }

// plain is the store with its secrets in a form that == compares.
func (s Store) plain() [5]any {
	return [5]any{s.Engine, s.Path, s.URL.Reveal(), s.ListenURL.Reveal(), s.Connections}
}

// storeKeys is the store's longer form.
type storeKeys struct {
	URL         string `yaml:"url"`
	ListenURL   string `yaml:"listen_url"`
	Connections int    `yaml:"connections"`
}

// store reads the longer form of a store.
func (f *file) store(node *yaml.Node, path string) (any, bool) {
	values := f.mapping(node, path, reflect.TypeFor[storeKeys]())
	at := func(key string) string { return join(path, key) }
	fault := func(key, words string) { f.fault(f.line(at(key)), at(key), words) }
	address, given := values["url"].(string)
	if !given {
		if !f.faulty(at("url")) {
			fault("url", "is required: sqlite:<file> or postgres://user@host/database")
		}
		return nil, false
	}
	var s Store
	if err := s.UnmarshalText([]byte(address)); err != nil {
		fault("url", err.Error())
		return nil, false
	}
	for _, key := range []string{"listen_url", "connections"} {
		if s.Engine == SQLite && f.has(at(key)) && !f.faulty(at(key)) {
			fault(key, "is for PostgreSQL alone: SQLite has nothing to connect to")
		}
	}
	if direct, given := values["listen_url"].(string); given {
		s.ListenURL = secret.New(direct)
		if s.Engine == Postgres && !isPostgres(direct) {
			fault("listen_url", "must be postgres://user@host/database")
		}
	}
	if n, given := values["connections"].(int); given {
		s.Connections = n
		if s.Engine == Postgres && n < 2 {
			fault("connections", "must be at least 2")
		}
	}
	return s, true
}
