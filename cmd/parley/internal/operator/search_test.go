package operator_test

import (
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/cmd/parley/internal/operator"
	"parley/config"
	"parley/ingest/journal/listing"
	"parley/ingest/journal/storage"
)

// searched returns a service with messages in a room and in a direct conversation, and their index.
func searched(t *testing.T) *service {
	t.Helper()
	s := newService(t)
	s.config.Workspaces = []config.Workspace{config.NewWorkspace("acme", "slack", ""), config.NewWorkspace("guild", "discord", "")}
	at := s.Now().UnixMilli()
	err := s.Journal.Engine().Write(t.Context(), storage.WriteOptions{}, func(tx storage.Tx) error {
		_, err := tx.Exec(`INSERT INTO channels (workspace, id, type) VALUES ('acme', 'C1', 'room'), ('guild', 'G1', 'room'), ('acme', 'D1', 'direct')`)
		thread := func(id int64, workspace, channel, agent string) {
			if err == nil {
				_, err = tx.Exec(`INSERT INTO threads (id, key, uuid, workspace, platform, channel, agent, last_at, next_seq) VALUES ($1, $2, $3, $4, 'slack', $5, $6, $7, 9)`,
					id, "slack:"+workspace+":"+channel, "uuid-"+channel, workspace, channel, agent, at+id)
			}
		}
		say := func(thread, seq int64, workspace, by, text string, ago int64) {
			if err == nil {
				id := workspace + string(rune('0'+thread)) + string(rune('0'+seq))
				_, err = tx.Exec(`INSERT INTO messages (id, thread, seq, workspace, external_id, sender_id, author, trigger, content, metadata, version, origin, sent_at, created_at)
					VALUES ($1, $2, $3, $4, $1, $5, 'human', 'none', $6, $7, 1, 'live', $8, $8)`, id, thread, seq, workspace, "slack:"+by, text,
					[]byte(`{"source":"slack","sender_id":"slack:`+by+`","sender_display_name":"`+by+`","sender_type":"human"}`), at-ago)
			}
		}
		thread(1, "acme", "C1", "helper")
		thread(2, "acme", "D1", "helper")
		thread(3, "guild", "G1", "coder")
		say(1, 1, "acme", "Mara", "the tomatoes need water", 48*3600_000)
		say(2, 1, "acme", "Olivia", "water is a secret", 3600_000)
		say(3, 1, "guild", "Tom", "tomatoes and water", 1000)
		say(1, 2, "acme", "Mara", "more WATER please", 500)
		return err
	})
	if err == nil {
		err = s.Journal.Search.FillSearch(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSearchByRole finds messages with their names; a viewer finds none of a direct conversation, and its answer does not tell that there
// is one.
func TestSearchByRole(t *testing.T) {
	t.Parallel()
	s := searched(t)
	for _, c := range []struct {
		token string
		query url.Values
		want  []string
	}{
		{readerToken, url.Values{"q": {"water"}}, []string{"more WATER please", "tomatoes and water", "water is a secret", "the tomatoes need water"}},
		{viewerToken, url.Values{"q": {"water"}}, []string{"more WATER please", "tomatoes and water", "the tomatoes need water"}},
		{viewerToken, url.Values{"q": {"secret"}}, nil},
		{viewerToken, url.Values{"q": {"water"}, "channel": {"D1"}}, nil},
		{readerToken, url.Values{"q": {"water"}, "channel": {"D1"}}, []string{"water is a secret"}},
		{readerToken, url.Values{"q": {"Water TOMATOES"}, "workspace": {"acme"}}, []string{"the tomatoes need water"}},
		{readerToken, url.Values{"q": {"water"}, "agent": {"coder"}}, []string{"tomatoes and water"}},
		{readerToken, url.Values{"q": {"water"}, "since": {"2h"}}, []string{"more WATER please", "tomatoes and water", "water is a secret"}},
		{readerToken, url.Values{"q": {"water"}, "until": {s.Now().Add(-2 * time.Hour).UTC().Format(time.RFC3339)}}, []string{"the tomatoes need water"}},
	} {
		var got []string
		client := s.as(t, c.token)
		c.query.Set("limit", "1")
		for {
			page, err := client.SearchMessages(t.Context(), c.query)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range page.Items {
				got = append(got, m.Content)
			}
			if page.Next == nil {
				break
			}
			c.query.Set("before", *page.Next)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%v (-want +got):\n%s", c.query, diff)
		}
	}
	page, err := s.as(t, viewerToken).SearchMessages(t.Context(), url.Values{"q": {"please"}})
	if err != nil || len(page.Items) != 1 || page.Items[0].Sender != "Mara" || page.Items[0].ThreadSeq != 2 || page.Items[0].ThreadID != "uuid-C1" {
		t.Errorf("%+v %v", page, err)
	}
	for _, query := range []url.Values{{}, {"q": {"!"}}, {"q": {"water"}, "workspace": {"other"}}, {"q": {"water"}, "since": {"soon"}}, {"q": {"water"}, "x": {"y"}}} {
		if _, err := s.as(t, readerToken).SearchMessages(t.Context(), query); status(err) != http.StatusBadRequest && status(err) != http.StatusUnprocessableEntity {
			t.Errorf("%v: %v", query, err)
		}
	}
}

// TestThreadsWithWords lists the threads of found messages once, by the same rule.
func TestThreadsWithWords(t *testing.T) {
	t.Parallel()
	s := searched(t)
	for token, want := range map[string][]string{readerToken: {"C1", "G1", "D1"}, viewerToken: {"C1", "G1"}} {
		page, err := s.as(t, token).Threads(t.Context(), url.Values{"q": {"water"}})
		var got []string
		for _, x := range page.Items {
			got = append(got, x.Channel)
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v", token, got, err)
		}
	}
	if _, err := s.Threads(t.Context(), operator.Caller{}, operator.ThreadQuery{ThreadFilter: listing.ThreadFilter{State: "lost", Limit: 1}}); err == nil {
		t.Error("an unknown state is taken")
	}
}

// TestSearchForPeople needs the role of a reader: a name may be of a direct conversation alone.
func TestSearchForPeople(t *testing.T) {
	t.Parallel()
	s := searched(t)
	if _, err := s.as(t, viewerToken).SearchPeople(t.Context(), "", "oli", 0); status(err) != http.StatusForbidden {
		t.Errorf("a viewer: %v", err)
	}
	list, err := s.as(t, readerToken).SearchPeople(t.Context(), "", "a", 2)
	var names []string
	for _, p := range list.Items {
		names = append(names, p.Workspace+" "+p.Name)
	}
	if err != nil || !slices.Equal(names, []string{"acme Mara", "acme Olivia"}) {
		t.Errorf("%q, %v", names, err)
	}
	if list, err = s.as(t, readerToken).SearchPeople(t.Context(), "guild", "slack:Tom", 0); err != nil || len(list.Items) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestChannelsHaveNames for those who may read their threads.
func TestChannelsHaveNames(t *testing.T) {
	t.Parallel()
	s := searched(t)
	s.running()
	s.Live.Workspaces = &workspaces{names: map[string]string{"C1": "garden", "D1": "mara and tom"}}
	for token, want := range map[string]map[string]string{readerToken: {"C1": "garden", "D1": "mara and tom", "G1": ""}, viewerToken: {"C1": "garden", "D1": "", "G1": ""}} {
		page, err := s.as(t, token).Threads(t.Context(), nil)
		got := map[string]string{}
		for _, x := range page.Items {
			got[x.Channel] = x.ChannelName
		}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v %s", token, err, diff)
		}
	}
}

// TestUntil takes a whole day.
func TestUntil(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"2026-11-27": time.Date(2026, 11, 27, 23, 59, 59, 999e6, time.UTC), "2026-11-27T09:00:00Z": time.Date(2026, 11, 27, 9, 0, 0, 0, time.UTC), "1d": now.AddDate(0, 0, -1),
	} {
		if got, err := operator.Until(text, now); err != nil || !got.Equal(want) {
			t.Errorf("%s: %v %v", text, got, err)
		}
	}
}
