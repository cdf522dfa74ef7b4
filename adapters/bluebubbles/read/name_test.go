package read_test

import (
	"errors"
	"testing"

	"parley/adapters"
	"parley/adapters/bluebubbles/bluebubblestest"
	"parley/adapters/bluebubbles/internal/testapp"
)

// TestLookupOfAnEMail checks that the name of an e-mail address is found, and no other.
func TestLookupOfAnEMail(t *testing.T) {
	n := testapp.NewNode(t, testapp.Silent)
	n.AddContact(bluebubblestest.Contact{Address: testapp.Nora, Name: "Nora Lindqvist"})
	n.AddContact(bluebubblestest.Contact{Address: "Tomas@Example.org", Name: "Tomás Reyes"})
	if user, err := n.Adapter.LookupUser(t.Context(), "tomas@example.org"); err != nil || user.DisplayName != "Tomás Reyes" {
		t.Errorf("%+v, %v", user, err)
	}
	if user, err := n.Adapter.LookupUser(t.Context(), "nobody@example.org"); !errors.Is(err, adapters.ErrNoName) {
		t.Errorf("%+v, %v", user, err)
	}
}
