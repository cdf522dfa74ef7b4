package exchange

import (
	"context"
	"sync"
)

// maxAnswers bounds the pages of the store that are in memory for all callers, and maxAnswersOfOne
// those for one token. A page has at most storage.PageBytes and its last row.
const maxAnswers, maxAnswersOfOne = 16, 4

// answers are the pages in memory, by token. The zero value has none.
type answers struct {
	mu    sync.Mutex
	all   int
	of    map[Owner]int
	ended chan struct{} // closed and replaced when one ends
}

// begin waits until one more page may be read for a token, or until ctx ends. The caller calls end
// after the page was written.
func (a *answers) begin(ctx context.Context, o Owner) (end func(), err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for a.all >= maxAnswers || a.of[o] >= maxAnswersOfOne {
		ended := a.ended
		a.mu.Unlock()
		select {
		case <-ended:
		case <-ctx.Done():
		}
		a.mu.Lock()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	if a.of == nil {
		a.of, a.ended = map[Owner]int{}, make(chan struct{})
	}
	a.all++
	a.of[o]++
	return func() { a.end(o) }, nil
}

func (a *answers) end(o Owner) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all--
	if a.of[o]--; a.of[o] == 0 {
		delete(a.of, o)
	}
	close(a.ended)
	a.ended = make(chan struct{})
}
