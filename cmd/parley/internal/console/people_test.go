package console_test

import (
	"net/url"
	"strings"
	"testing"
	"time"
)

// TestForgetOnThePage forgets a person with the form of a row.
func TestForgetOnThePage(t *testing.T) {
	s := filled(t, time.Now())
	olga := s.browser(t, operatorToken+"-long-enough")
	if _, before := answer(t, olga, s.get("/people")); !strings.Contains(before, "slack:U0MARA") {
		t.Fatalf("the page lacks the person: %s", before)
	}
	_, after := answer(t, olga, s.post("/people/slack:U0MARA/forget", url.Values{"note": {"has left"}}))
	if strings.Contains(after, ">Mara<") || !strings.Contains(after, "is forgotten") {
		t.Errorf("after the form: %s", after)
	}
	if _, audit := answer(t, olga, s.get("/audit")); !strings.Contains(audit, "people.forget") {
		t.Errorf("the audit: %s", audit)
	}
}
