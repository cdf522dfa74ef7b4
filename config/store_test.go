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
