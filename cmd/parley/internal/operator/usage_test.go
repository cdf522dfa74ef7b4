package operator_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/cmd/parley/internal/operator"
	"parley/ingest/journal/storage"
)

// TestUsage lists what was used, the row with the most tokens first. People and channels need the role of a reader.
func TestUsage(t *testing.T) {
	t.Parallel()
	s := searched(t)
	today := time.Now().UTC().Unix() / (24 * 60 * 60)
	err := s.Journal.Engine().Write(t.Context(), storage.WriteOptions{}, func(tx storage.Tx) error {
		for i, person := range []string{"slack:Mara", "slack:Tom", ""} {
			for ago := range int64(10) {
				if _, err := tx.Exec(`INSERT INTO usage_days (workspace, day, channel, agent, person, questions, answers, failures, work_ms, measured, tokens_in, tokens_out)
					VALUES ('acme', $1, $2, $3, $4, 2, 1, 1, 90000, $5, $6, 0)`, today-ago, "C1", fmt.Sprint("agent-", i), person, int64(i%2), int64(100*(i%2))); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	lists := func(token string, query url.Values) (rows []string, err error) {
		list, err := s.as(t, token).Usage(t.Context(), query)
		for _, u := range list.Items {
			tokens := "-"
			if u.TokensIn != nil {
				tokens = fmt.Sprint(*u.TokensIn)
			}
			rows = append(rows, fmt.Sprint(u.Key, " ", u.Name, " ", u.Questions, " ", u.Minutes, " ", tokens))
		}
		return rows, err
	}
	date := time.Unix(today*24*60*60, 0).UTC().Format(time.DateOnly)
	for name, c := range map[string]struct {
		token, query string
		want         []string
	}{
		"by agent, of seven days":  {viewerToken, "", []string{"agent-1  14 10.5 700", "agent-0  14 10.5 -", "agent-2  14 10.5 -"}},
		"by person":                {readerToken, "by=person&since=1d", []string{"slack:Tom Tom 2 1.5 100", "  2 1.5 -", "slack:Mara Mara 2 1.5 -"}},
		"by channel":               {readerToken, "by=channel&since=" + date, []string{"C1  6 4.5 100"}},
		"by day":                   {viewerToken, "by=day&since=1d", []string{date + "  6 4.5 100"}},
		"of another workspace":     {viewerToken, "workspace=guild", nil},
		"by workspace, since long": {viewerToken, "by=workspace&since=2w", []string{"acme  60 45 1000"}},
		"a page":                   {viewerToken, "limit=1&before=1", []string{"agent-0  14 10.5 -"}},
	} {
		query, _ := url.ParseQuery(c.query)
		got, err := lists(c.token, query)
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	for query, want := range map[string]int{"by=person": http.StatusForbidden, "by=channel": http.StatusForbidden, "by=mood": http.StatusBadRequest, "since=never": http.StatusBadRequest, "sincee=1d": http.StatusBadRequest} {
		parsed, _ := url.ParseQuery(query)
		if _, err := lists(viewerToken, parsed); status(err) != want && !(want == http.StatusBadRequest && strings.HasPrefix(fmt.Sprint(status(err)), "4")) {
			t.Errorf("%s: %v", query, err)
		}
	}
	if at, err := operator.UsageSince("3d", time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)); err != nil || at.Day() != 28 {
		t.Errorf("three days begin at %v, %v", at, err)
	}
}
