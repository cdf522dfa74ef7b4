package console_test

import (
	"fmt"
	"strings"
	"testing"

	"parley/adapters/browsertest"
	"parley/cmd/parley/internal/operator"
	"parley/ingest/journal/audit"
)

// enter opens a tab that is logged in with a ticket.
func (s *site) enter(t *testing.T) *browsertest.Tab {
	t.Helper()
	tab := browsertest.Open(t)
	tab.Goto(s.address + "/login#" + s.Ticket(operator.OnSocket("mara")))
	tab.Wait(`document.title.startsWith("Overview")`)
	s.inside = strings.TrimSuffix(browsertest.Eval[string](tab, "document.baseURI"), "/")
	return tab
}

func TestATicketLogsIn(t *testing.T) {
	s := newSite(t)
	tab := s.enter(t)
	if got := tab.Texts(`[data-test=needs]`); len(got) != 1 || got[0] != "Nothing." {
		t.Errorf("needs: %q", got)
	}
	if at := browsertest.Eval[string](tab, "location.href"); at != s.inside+"/" || !strings.HasPrefix(at, s.address+"/at/") {
		t.Errorf("the ticket stays in the address: %s", at)
	}
	tab.Goto(s.address + "/")
	tab.Wait(`document.title.startsWith("Overview")`)
	tab.Role("button", "Log out").Click()
	tab.Wait(`document.title.startsWith("Log in")`)
	for _, address := range []string{s.inside, s.address} {
		tab.Goto(address + "/")
		tab.Wait(`document.title.startsWith("Log in")`)
	}
}

// TestAPageFollows looks at the audit while operators act.
func TestAPageFollows(t *testing.T) {
	s := newSite(t)
	tab := s.enter(t)
	tab.Goto(s.inside + "/audit")
	const hostile = `<script>document.title = "broken"</script>`
	for i := range 3 {
		begun, err := s.journal.Audit.BeginAction(t.Context(), audit.Action{Who: "olga", What: "dead.retry", Subject: fmt.Sprint(i), Note: hostile})
		if err != nil {
			t.Fatal(err)
		}
		tab.Wait(fmt.Sprintf(`document.querySelectorAll("#actions [data-live]").length === %d`, i+1))
		if err := s.journal.Audit.EndAction(t.Context(), begun.ID, `{}`); err != nil {
			t.Fatal(err)
		}
		tab.Wait(fmt.Sprintf(`document.querySelector("#action-%d").innerText.includes("done")`, begun.ID))
	}
	if got := tab.Texts("#actions td[data-name=Subject] .id"); fmt.Sprint(got) != "[2 1 0]" {
		t.Errorf("the order is %q", got)
	}
	if got := tab.Texts("#actions td[data-name=Note]"); got[0] != hostile {
		t.Errorf("the note is %q", got[0])
	}
}
