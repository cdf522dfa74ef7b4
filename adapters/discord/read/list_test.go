package read_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"parley/adapters/discord/discordtest"
	"parley/adapters/discord/internal/testapp"
)

// TestASearchReadsNotTheWholeChannel checks that the search for a post ends some time behind the first
// post that looks like it, however many messages follow.
func TestASearchReadsNotTheWholeChannel(t *testing.T) {
	var calls testapp.Calls
	var ahead atomic.Int64 // of the clock, in seconds
	l := testapp.Prepare(t, discordtest.Options{OnCall: calls.Note, Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load()) * time.Second) }}, nil)
	post := l.Post("k1", testapp.Room, "", "the words")
	id := l.Send(post)
	for n := range 250 {
		ahead.Add(10)
		l.MaraSays(testapp.Room, fmt.Sprint(n))
	}
	if ids, err := l.Adapter.List(t.Context(), post); err != nil || !slices.Equal(ids, []string{id}) {
		t.Errorf("List returns %q, %v", ids, err)
	}
	if n := len(calls.Of(discordtest.Read)); n != 1 {
		t.Errorf("%d reads of pages", n)
	}
}
