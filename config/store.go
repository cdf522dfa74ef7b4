package config

import (
	"errors"
	"net/url"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"

	"parley/config/secret"
)

// The engines of a store.
const (
	SQLite   = "sqlite"
	Postgres = "postgres"
)

// defaultConnections is the default of Store.Connections for PostgreSQL.
const defaultConnections = 12

// Store is the place of the journal. Printing a Store shows no secret.
type Store struct {
	Engine string // SQLite or Postgres
	// Path is the file of an SQLite database.
	Path string
	// URL is the address of a PostgreSQL database. It may contain a password.
	URL secret.Value
	// ListenURL is a direct address of the same database for LISTEN, which a
	// transaction pooler at URL does not pass on. If it is unset, URL is direct.
	ListenURL secret.Value
	// Connections is the maximum number of connections of a node to PostgreSQL, besides
	// the one that listens. It is 0 for SQLite.
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
		return errors.New("must be sqlite:<file> or " + postgresForm)
	}
	*s = Store{Engine: Postgres, URL: secret.New(given), Connections: defaultConnections}
	return nil
}

// postgresForm is the form of an address that isPostgres accepts.
const postgresForm = "postgres://user@host/database, where / ? # @ % in a password are written as %2F %3F %23 %40 %25"

func isPostgres(address string) bool {
	u, err := url.Parse(address)
	return err == nil && (u.Scheme == "postgres" || u.Scheme == "postgresql")
}

// storeKeys are the keys of a store's long form.
type storeKeys struct {
	URL         string `yaml:"url"`
	ListenURL   string `yaml:"listen_url"`
	Connections int    `yaml:"connections"`
}

// store reads the long form of a store. It returns false if the url has a fault.
func (f *file) store(node *yaml.Node, path string) (any, bool) {
	values := f.mapping(node, path, reflect.TypeFor[storeKeys]())
	var check checks
	defer func() { f.report(check.faults) }()
	at := func(key string) string { return join(path, key) }

	var s Store
	address, given := values["url"].(string)
	check.require(given, at("url"), "is required: sqlite:<file> or postgres://user@host/database")
	if !given {
		return nil, false
	}
	if err := s.UnmarshalText([]byte(address)); err != nil {
		check.require(false, at("url"), err.Error())
		return nil, false
	}
	for _, key := range []string{"listen_url", "connections"} {
		check.require(s.Engine == Postgres || !f.has(at(key)), at(key), "has an effect only with PostgreSQL: remove it")
	}
	if direct, given := values["listen_url"].(string); given {
		s.ListenURL = secret.New(direct)
		check.require(isPostgres(direct), at("listen_url"), "must be "+postgresForm)
	}
	if n, given := values["connections"].(int); given {
		s.Connections = n
		check.require(n >= 2, at("connections"), "must be at least 2")
	}
	return s, true
}

// ReadStore reads a store from a word of a command line: sqlite:<file> or postgres://user@host/database,
// in which ${NAME} and ${file:path} are replaced, so that no password is in the list of processes. Paths
// begin at the working directory.
func ReadStore(word string) (s Store, err error) {
	text, _, faults := newFile(File).substitute(word)
	if len(faults) > 0 {
		return s, errors.Join(faults...)
	}
	return s, s.UnmarshalText([]byte(text))
}
