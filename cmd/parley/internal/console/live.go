package console

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"parley/cmd/parley/internal/operator"
)

const (
	// period is the time between two renderings of a page that somebody looks at.
	period = time.Second
	// share is the part of one core that renderings may take: one part in share.
	share = 12
	// maxTabs bounds the open streams of a process.
	maxTabs = 2000
	// behind is the number of changes that a tab may have waiting. A tab that has more reloads.
	behind = 16
)

// view is what one tab looks at. Tabs with the same view share its renderings.
type view struct {
	page string // path and query
	by   operator.Caller
}

// news is one event for a tab.
type news struct {
	event string // whole, patch or reload
	data  []byte
}

// feed is a view that at least one tab follows.
type feed struct {
	tabs map[chan news]bool
	last []fragment
	read bool // last is valid
}

// live renders the pages that tabs follow, one after the other, and tells the tabs what changed.
// However many tabs are open, it leaves pauses, so that it takes a share of one core at most.
type live struct {
	render func(ctx context.Context, v view) ([]byte, error)

	mu     sync.Mutex
	feeds  map[view]*feed
	count  int // of tabs
	closed bool
	more   chan struct{}
}

func newLive(render func(ctx context.Context, v view) ([]byte, error)) *live {
	return &live{render: render, feeds: map[view]*feed{}, more: make(chan struct{}, 1)}
}

// join adds a tab. It returns nil if there are too many. The channel is closed if the tab is behind.
func (l *live) join(v view) chan news {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.count >= maxTabs {
		return nil
	}
	f := l.feeds[v]
	if f == nil {
		f = &feed{tabs: map[chan news]bool{}}
		l.feeds[v] = f
	}
	tab := make(chan news, behind)
	f.tabs[tab] = true
	l.count++
	if f.read {
		tab <- encoded("whole", f.last)
	}
	select {
	case l.more <- struct{}{}:
	default:
	}
	return tab
}

// leave removes a tab.
func (l *live) leave(v view, tab chan news) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f := l.feeds[v]; f != nil && f.tabs[tab] {
		l.drop(v, f, tab)
	}
}

func (l *live) drop(v view, f *feed, tab chan news) {
	delete(f.tabs, tab)
	close(tab)
	if l.count--; len(f.tabs) == 0 {
		delete(l.feeds, v)
	}
}

// close ends the streams of all tabs, and admits no others. The tabs try again.
func (l *live) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for v, f := range l.feeds {
		for tab := range f.tabs {
			l.drop(v, f, tab)
		}
	}
}

// isClosed reports whether close was called.
func (l *live) isClosed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

// run renders until ctx ends.
func (l *live) run(ctx context.Context) {
	for {
		begun := time.Now()
		views := l.views()
		for _, v := range views {
			took := l.refresh(ctx, v)
			if !wait(ctx, took*(share-1), nil) {
				return
			}
		}
		pause, more := period-time.Since(begun), l.more
		if len(views) > 0 {
			more = nil
		}
		if !wait(ctx, pause, more) {
			return
		}
	}
}

// wait returns false if ctx ends first. If a page has no reader, more ends the wait.
func wait(ctx context.Context, pause time.Duration, more <-chan struct{}) bool {
	var end <-chan time.Time
	if more == nil {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		end = timer.C
	}
	select {
	case <-ctx.Done():
		return false
	case <-end:
	case <-more:
	}
	return true
}

func (l *live) views() []view {
	l.mu.Lock()
	defer l.mu.Unlock()
	views := make([]view, 0, len(l.feeds))
	for v := range l.feeds {
		views = append(views, v)
	}
	return views
}

// refresh renders a view, tells its tabs what changed, and returns the time that it took.
func (l *live) refresh(ctx context.Context, v view) time.Duration {
	begun := time.Now()
	page, err := l.render(ctx, v)
	if err != nil {
		return time.Since(begun) // the tabs do not change; the next round tries again
	}
	now := fragmentsOf(page)
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.feeds[v]
	if f == nil {
		return time.Since(begun)
	}
	told := encoded("whole", now)
	if f.read {
		changed := changes(f.last, now)
		if len(changed) == 0 {
			return time.Since(begun)
		}
		told = encoded("patch", changed)
	}
	f.last, f.read = now, true
	for tab := range f.tabs {
		select {
		case tab <- told:
		default:
			l.drop(v, f, tab)
		}
	}
	return time.Since(begun)
}

func encoded(event string, fragments []fragment) news {
	if fragments == nil {
		fragments = []fragment{} // a page may have none
	}
	data, _ := json.Marshal(fragments) // texts have no error
	return news{event: event, data: data}
}
