package call

import (
	"context"
	"net/url"
	"sync"
	"time"

	"parley/adapters"
	"parley/ingest/wake"
)

const (
	// backgroundPerMinute bounds the background's calls of one method that reads history,
	// counted with the urgent ones: four fifths of the calls per minute that Slack
	// guarantees (tier 3). Slack often allows more, so urgent calls wait for its refusal
	// only.
	// https://docs.slack.dev/apis/web-api/rate-limits
	backgroundPerMinute = 40
	// backgroundBurst is the number of calls in a minute from which the background keeps a
	// steady pace, so that urgent calls soon after a gap find more than a fifth.
	backgroundBurst = 20
	// paceWindow is Slack's minute and one second more, because the latency of calls
	// varies.
	paceWindow = time.Minute + time.Second
)

// Paced makes a call as soon as the method's pace allows it, and again after each rate
// limit. The call is the background's until urgent is closed. If only the operator can fix a
// refusal, the error is a *adapters.RefusedError.
func (c *Client) Paced(ctx context.Context, urgent <-chan struct{}, method string, query url.Values, into Into) error {
	for p := c.pace(method); ; {
		if err := p.wait(ctx, urgent); err != nil {
			return err
		}
		err := c.Call(ctx, method, query, into)
		after, limited := adapters.RetryAfter(err)
		if !limited {
			return markRefusedHistory(method, err)
		}
		if !wake.After(ctx, after) {
			return ctx.Err()
		}
	}
}

// Ask makes an urgent call at once. While Slack's rate limit lasts, the error is a
// *adapters.SendError with the failure RateLimited.
func (c *Client) Ask(ctx context.Context, method string, query url.Values, into Into) error {
	c.pace(method).take(time.Now(), true)
	return c.Call(ctx, method, query, into)
}

// pace returns the pace of a method.
func (c *Client) pace(method string) *pace {
	known, _ := c.paces.LoadOrStore(method, new(pace))
	return known.(*pace)
}

// pace spaces the background's calls of one method. It counts the calls of this node alone. The
// zero value has counted no call.
type pace struct {
	mu    sync.Mutex
	calls []time.Time // times of the last minute's calls, oldest first
}

// wait blocks until the next call is allowed, and counts that call. The call is the
// background's until urgent is closed.
func (p *pace) wait(ctx context.Context, urgent <-chan struct{}) error {
	for hurried := false; ctx.Err() == nil; {
		wait := p.take(time.Now(), hurried)
		if wait <= 0 {
			return nil
		}
		select {
		case <-ctx.Done():
		case <-urgent:
			hurried, urgent = true, nil
		case <-time.After(wait):
		}
	}
	return ctx.Err()
}

// take counts a call and returns 0 if the call is allowed. Otherwise it returns the time
// until the call may be allowed.
func (p *pace) take(now time.Time, urgent bool) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.calls) > 0 && now.Sub(p.calls[0]) >= paceWindow {
		p.calls = p.calls[1:]
	}
	wait := time.Duration(0)
	if n := len(p.calls); n >= backgroundPerMinute && !urgent {
		wait = p.calls[n-backgroundPerMinute].Add(paceWindow).Sub(now)
	} else if n >= backgroundBurst && !urgent {
		wait = p.calls[n-1].Add(paceWindow / backgroundPerMinute).Sub(now)
	}
	if wait > 0 {
		return wait
	}
	p.calls = append(p.calls, now)
	return 0
}
