package console

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// fragmentsIn returns the fragments of an event.
func fragmentsIn(t *testing.T, n news) []fragment {
	t.Helper()
	var list []fragment
	if err := json.Unmarshal(n.data, &list); err != nil {
		t.Fatal(err)
	}
	return list
}

func TestTabsGetAllAndThenChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int64
		l := newLive(func(context.Context, view) ([]byte, error) {
			return fmt.Appendf(nil, `<p id="a" data-live>same</p><p id="b" data-live>%d</p>`, n.Load()), nil
		})
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go l.run(ctx)
		v := view{page: "/"}
		first := l.join(v)
		if got := <-first; got.event != "whole" || len(fragmentsIn(t, got)) != 2 {
			t.Fatalf("first: %s %s", got.event, got.data)
		}
		<-time.After(5 * period) // nothing changes, so nothing is told
		n.Store(1)
		if got := <-first; got.event != "patch" || len(fragmentsIn(t, got)) != 1 {
			t.Fatalf("then: %s %s", got.event, got.data)
		}
		late := l.join(v)
		if got := <-late; got.event != "whole" || fragmentsIn(t, got)[1].HTML != `<p id="b" data-live>1</p>` {
			t.Fatalf("a later tab: %s %s", got.event, got.data)
		}
		l.leave(v, first)
		l.leave(v, late)
		if l.count != 0 || len(l.feeds) != 0 {
			t.Errorf("%d tabs and %d feeds are left", l.count, len(l.feeds))
		}
	})
}

func TestATabThatIsBehindIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		l := newLive(func(context.Context, view) ([]byte, error) {
			n++
			return fmt.Appendf(nil, `<p id="a" data-live>%d</p>`, n), nil
		})
		tab := l.join(view{page: "/"})
		for range behind + 1 {
			l.refresh(t.Context(), view{page: "/"})
		}
		got := 0
		for range tab {
			got++
		}
		if got != behind || l.count != 0 {
			t.Errorf("%d events before the end, and %d tabs", got, l.count)
		}
	})
}

// TestRenderingsTakeAShare renders pages that take 100 ms each, for so many views that there is never
// nothing to do.
func TestRenderingsTakeAShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const cost = 100 * time.Millisecond
		rendered := 0
		l := newLive(func(context.Context, view) ([]byte, error) {
			<-time.After(cost)
			rendered++
			return nil, nil
		})
		for i := range 1000 {
			if l.join(view{page: fmt.Sprint("/threads/", i)}) == nil {
				t.Fatal("no place for a tab")
			}
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		l.run(ctx)
		if most := int(time.Minute / cost / share); rendered > most+1 || rendered < most/2 {
			t.Errorf("%d renderings in a minute, the share is %d", rendered, most)
		}
	})
}
