package send_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"parley/adapters/discord/discordtest"
	"parley/adapters/discord/internal/testapp"
)

func TestUnclearPostIsSettledByItsNonce(t *testing.T) {
	l := testapp.Start(t, discordtest.Options{}, nil)
	now := time.Now()
	for n, late := range []bool{true, false} {
		post := l.Post(fmt.Sprint("k", n), testapp.Room, "", "the same words")
		l.Script(discordtest.Post, discordtest.Fault{Cut: true, Effect: late})
		if _, err := l.Adapter.Send(t.Context(), post); err == nil {
			t.Fatal("the call succeeded")
		}
		id, found, err := l.Adapter.Find(t.Context(), post)
		if err != nil || found != late {
			t.Errorf("Find returns %q, %v, %v", id, found, err)
		}
		if again := l.Send(post); late && again != id {
			t.Errorf("the second call returned %s, the event %s", again, id)
		}
	}
	if posts := l.Posts(testapp.Room); len(posts) != 2 {
		t.Errorf("%d posts", len(posts))
	}
	// Another node, or this one after a restart, knows no nonce. After some minutes it compares texts.
	post := l.Post("k9", testapp.Room, "", "the same words")
	for _, c := range []struct {
		key  string
		want int // posts
	}{{"k0", 2}, {"k1", 2}, {"k9", 3}} {
		post.Key = c.key
		other := testapp.NewAdapter(l.Server, nil)
		id, found, err := other.Find(t.Context(), post)
		if posts := l.Posts(testapp.Room); !found || err != nil || len(posts) != c.want || !slices.ContainsFunc(posts, func(m discordtest.Message) bool { return m.ID == id && m.Nonce == c.key }) {
			t.Errorf("%s, while the nonce is enforced: %q, %v, %v, %d posts", c.key, id, found, err, len(posts))
		}
	}
	other := testapp.NewAdapter(l.Server, nil)
	other.Client.Now = func() time.Time { return now.Add(10 * time.Minute) }
	var alike []string
	for _, m := range l.Posts(testapp.Room) {
		alike = append(alike, m.ID)
	}
	if id, found, err := other.Find(t.Context(), post); found || err != nil {
		t.Errorf("later, Find returns %q, %v, %v", id, found, err)
	}
	if ids, err := other.List(t.Context(), post); !slices.Equal(ids, alike) || err != nil {
		t.Errorf("later, List returns %q, %v; want %q", ids, err, alike)
	}
	post.Text = "other words"
	if ids, err := other.List(t.Context(), post); len(ids) > 0 || err != nil {
		t.Errorf("another text: %q, %v", ids, err)
	}
	l.Script(discordtest.Read, discordtest.Fault{Status: http.StatusServiceUnavailable})
	if _, err := other.List(t.Context(), post); err == nil {
		t.Error("a failed read is no error")
	}
}
