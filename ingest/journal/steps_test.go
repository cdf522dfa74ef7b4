package journal_test

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/ingest/journal/postgres"
	"parley/ingest/journal/sqlite"
	"parley/ingest/journal/storage/schema"
)

// released has the SHA-256 of each step that a store may have, as its engine gets it. A line is added with a step for each
// engine, and never changes.
var released = map[string]string{
	"postgres 0001_init.sql":             "0d737b2046ab8911787c1b25955632c9b5e9d20bc7b75c062d906f307090f73d",
	"postgres 0002_message_ids.sql":      "4e177918ce5fcb1db631346dd3451c4ee957039ab9cf371d0478cd3b95203ea1",
	"postgres 0003_fewer_indexes.sql":    "659cea3903f405e8bac18938a433a36085b3e093dd39da573a43ec8711e53b67",
	"sqlite 0001_init.sql":               "65ca5295137527d5a23d3c2315bb59f80411381337453080add30b6a410cad1f",
	"sqlite 0003_fewer_indexes.sql":      "659cea3903f405e8bac18938a433a36085b3e093dd39da573a43ec8711e53b67",
	"sqlite 0002_message_ids.sql":        "900bb648d2dcdef5e41215cb18e92f3653603d0eb4f13c45f32d34eec258da67",
	"postgres 0004_forgotten.sql":        "dc398a2241fe23064f970c248ff5c3f1168a733af181b37d46c8469c4903e748",
	"sqlite 0004_forgotten.sql":          "337f7060f5fd4c7f3dc567e01dfdb0e741f3d64af4a652123a4d4275c4c10abe",
	"postgres 0005_strangers.sql":        "a8f6d7470ba169b996d8979eb025471e04fcf28f3890e58d061f75b4e332aebd",
	"sqlite 0005_strangers.sql":          "b43e933c1ad16d1d8b9194a745f8570478441d7e03fc942b0e0896b50c23b163",
	"postgres 0006_sessions_and_use.sql": "33bf29121e95637b9c1801b7a9ce601e8e5ded56890a27847b3a9971eed84b6a",
	"sqlite 0006_sessions_and_use.sql":   "b6b514f165ecee055959fbb69621ea41e95c27017cb52c33f8b2c3e9cc0a7b45",
}

// TestReleasedStepsStay proves that a store of any version gets the same steps for good.
func TestReleasedStepsStay(t *testing.T) {
	t.Parallel()
	got := map[string]string{}
	for engine, steps := range map[string][]schema.Step{"postgres": postgres.Steps(), "sqlite": sqlite.Steps()} {
		for _, step := range steps {
			sum := sha256.Sum256([]byte(step.Text))
			got[engine+" "+step.Name] = hex.EncodeToString(sum[:])
		}
	}
	if diff := cmp.Diff(released, got); diff != "" {
		t.Errorf("a released step never changes; a new one goes into the list: %s", diff)
	}
}
