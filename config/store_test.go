package config_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/config"
	"parley/config/secret"
)

const (
	pooled = "postgres://me:pw@pooler/parley"
	direct = "postgres://me:pw@db/parley"
)

// TestStore reads every form of the key store.
func TestStore(t *testing.T) {
	t.Setenv("POOLED", pooled)
	t.Setenv("PASSWORD", "pw")
	t.Setenv("MANY", "40")
	for text, want := range map[string]config.Store{
		"sqlite:x.db":                        {Engine: config.SQLite, Path: "x.db"},
		"{url: 'sqlite:x.db'}":               {Engine: config.SQLite, Path: "x.db"},
		direct:                               {Engine: config.Postgres, URL: secret.New(direct), Connections: 12},
		"{url: '" + direct + "'}":            {Engine: config.Postgres, URL: secret.New(direct), Connections: 12},
		"postgresql://db/parley":             {Engine: config.Postgres, URL: secret.New("postgresql://db/parley"), Connections: 12},
		"{url: '${POOLED}', connections: 2}": {Engine: config.Postgres, URL: secret.New(pooled), Connections: 2},
		"\n  url: ${POOLED}\n  listen_url: postgres://me:${PASSWORD}@db/parley\n  connections: ${MANY}": {
			Engine: config.Postgres, URL: secret.New(pooled), ListenURL: secret.New(direct), Connections: 40,
		},
	} {
		if diff := cmp.Diff(want, load(t, "store: "+text+"\n", "").Store, equalSecrets); diff != "" {
			t.Errorf("store: %s (-want +got):\n%s", text, diff)
		}
	}
}

// TestStoreEqual compares a store with a copy, and with copies that differ in one setting.
func TestStoreEqual(t *testing.T) {
	t.Parallel()
	whole := func() config.Store {
		return config.Store{Engine: config.Postgres, Path: "p", URL: secret.New(pooled), ListenURL: secret.New(direct), Connections: 12}
	}
	if !whole().Equal(whole()) {
		t.Error("a store does not equal its copy")
	}
	for name, change := range map[string]func(*config.Store){
		"engine":      func(s *config.Store) { s.Engine = config.SQLite },
		"path":        func(s *config.Store) { s.Path = "q" },
		"url":         func(s *config.Store) { s.URL = secret.New(direct) },
		"listen_url":  func(s *config.Store) { s.ListenURL = secret.Value{} },
		"connections": func(s *config.Store) { s.Connections = 13 },
	} {
		other := whole()
		if change(&other); other.Equal(whole()) {
			t.Errorf("stores with a different %s are equal", name)
		}
	}
}
