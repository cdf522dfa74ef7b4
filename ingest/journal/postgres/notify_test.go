package postgres_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/ingest/journal/postgres"
)

// listener receives the messages for a node.
type listener struct {
	heard  chan string
	missed chan struct{}
}

// listen starts a listener and returns it after its first missed.
func listen(t *testing.T, e *postgres.Engine, node string) *listener {
	t.Helper()
	l := &listener{heard: make(chan string, 1000), missed: make(chan struct{}, 1000)}
	ctx, cancel := context.WithCancel(t.Context())
	var listening sync.WaitGroup
	listening.Go(func() {
		e.Listen(ctx, node, func(words string) { l.heard <- words }, func() { l.missed <- struct{}{} })
	})
	t.Cleanup(func() {
		cancel()
		listening.Wait()
	})
	<-l.missed
	return l
}

func TestNotifyReachesOneNodeOrAll(t *testing.T) {
	t.Parallel()
	e := engine(t, postgres.Options{URL: database(t)})
	a, b := listen(t, e, "a"), listen(t, e, `b "B"; --`)
	e.Notify(`b "B"; --`, "for b")
	if got := <-b.heard; got != "for b" {
		t.Errorf("b heard %q", got)
	}
	e.Notify("", "for all")
	if diff := cmp.Diff([]string{"for all", "for all"}, []string{<-a.heard, <-b.heard}); diff != "" {
		t.Error(diff)
	}
}

func TestMessagesShareTransactions(t *testing.T) {
	t.Parallel()
	url := database(t)
	e := engine(t, postgres.Options{URL: url})
	c := connect(t, url)
	if _, err := c.Exec(t.Context(), `LISTEN "parley"; LISTEN "parley a"`); err != nil {
		t.Fatal(err)
	}
	const messages = 100
	want, before := map[string]bool{}, e.Taken()
	for i := range messages {
		words := fmt.Sprint("words ", i)
		want["parley a: "+words], want["parley: "+words] = true, true
		e.Notify("a", words)
		e.Notify("", words)
		e.Notify("a", words)
	}
	got, notices := map[string]bool{}, 0
	for len(got) < len(want) {
		notice, err := c.WaitForNotification(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got[notice.Channel+": "+notice.Payload] = true
		notices++
	}
	if diff := cmp.Diff(want, got); diff != "" || notices > 2*messages+messages/4 {
		t.Errorf("%d notifications: %s", notices, diff)
	}
	if taken := e.Taken() - before; taken > messages/4 {
		t.Errorf("%d transactions", taken)
	}
}

func TestAnInvalidMessageDisturbsNoOther(t *testing.T) {
	t.Parallel()
	e := engine(t, postgres.Options{URL: database(t)})
	l := listen(t, e, "a")
	long := strings.Repeat("x", 1024)
	e.Notify("a", long+"x")
	e.Notify("a", "two\nlines")
	for i := range 20 { // together more than a notification may have
		e.Notify("a", fmt.Sprintf("%04d%s", i, long[4:]))
	}
	e.Notify("a", "a\x00b\xff")
	heard := map[string]bool{}
	for range 22 {
		heard[<-l.heard] = true
	}
	for i := range 20 {
		delete(heard, fmt.Sprintf("%04d%s", i, long[4:]))
	}
	if diff := cmp.Diff(map[string]bool{"two\nlines": true, "a\uFFFDb\uFFFD": true}, heard); diff != "" {
		t.Error(diff)
	}
}

func TestAListenerReconnectsAndReportsMisses(t *testing.T) {
	t.Parallel()
	url := database(t)
	p := through(t, url)
	e := engine(t, postgres.Options{URL: url, ListenURL: p.url})
	l := listen(t, e, "a")
	p.goAway(2)
	e.Notify("a", "lost")
	<-l.missed
	e.Notify("a", "heard")
	for got := ""; got != "heard"; {
		got = <-l.heard
	}
	p.wantRefused(t, 2)
}

func TestNotifyNeverWaits(t *testing.T) {
	t.Parallel()
	p := through(t, database(t))
	e := engine(t, postgres.Options{URL: p.url})
	p.goAway(1 << 16)
	for i := range 10000 {
		e.Notify("a", fmt.Sprint(i))
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	e.Notify("a", "after the end")
}
