package call

import (
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"parley/adapters"
	"parley/adapters/discord/payload"
)

// Paces are the rate limits of the routes, as the headers of Discord's answers tell them. The
// zero value knows none. Under the empty name is the limit of all calls but some; see
// answersInteraction.
// https://docs.discord.com/developers/topics/rate-limits
type Paces struct {
	mu     sync.Mutex
	routes map[string]pace
}

// pace is the state of one rate limit.
type pace struct {
	limit, remaining int
	until            time.Time // when the calls are available again
}

// maxPaces bounds the remembered rate limits; the ended ones are dropped.
const maxPaces = 1000

// bucketOf returns the name of the rate limit of a request: its method and its path, whose ids
// below the first one do not count.
func bucketOf(request *http.Request) string {
	_, path, found := strings.Cut(request.URL.Path, "/channels/")
	if !found {
		return request.Method + " " + request.URL.Path
	}
	channel, rest, _ := strings.Cut(path, "/")
	kept := []string{request.Method, "channels", channel}
	for part := range strings.SplitSeq(rest, "/") {
		if !payload.IsID(part) && !strings.Contains(part, "%") {
			kept = append(kept, part)
		}
	}
	return strings.Join(kept, " ")
}

// scopeOf returns the scope of a route's rate limit: that of the posts for a route that posts or
// edits, and of the route itself for every other.
func scopeOf(name string) adapters.Scope {
	if strings.HasSuffix(name, " messages") && !strings.HasPrefix(name, http.MethodGet) {
		return adapters.ScopeChannel
	}
	return adapters.ScopeMethod
}

// Left returns the time that is left of a route's rest; 0 if it may be called.
func (p *Paces) Left(name string, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	all, own := p.routes[""], p.routes[name]
	left := time.Duration(0)
	if !answersInteraction(name) {
		left = all.until.Sub(now)
	}
	if own.remaining <= 0 {
		left = max(left, own.until.Sub(now))
	}
	return max(left, 0)
}

// answersInteraction reports whether a route is one of those to which the limit of all calls does
// not apply, because a person waits for the response.
// https://docs.discord.com/developers/topics/rate-limits#global-rate-limit
func answersInteraction(name string) bool {
	return strings.Contains(name, "/interactions/") || strings.Contains(name, "/webhooks/")
}

// Scarce returns the wait until a route's calls are available again if at most a fifth of them
// is left.
func (p *Paces) Scarce(name string, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if own := p.routes[name]; own.remaining*5 <= own.limit {
		return max(own.until.Sub(now), 0)
	}
	return 0
}

// learn notes the headers of an answer.
func (p *Paces) learn(name string, header http.Header, now time.Time) {
	limit, err := strconv.Atoi(header.Get("X-RateLimit-Limit"))
	remaining, err2 := strconv.Atoi(header.Get("X-RateLimit-Remaining"))
	if err != nil || err2 != nil {
		return
	}
	p.set(name, pace{limit, remaining, now.Add(min(headerSeconds(header, "X-RateLimit-Reset-After"), maxRetry))})
}

// Rest lets a route rest until a time.
func (p *Paces) Rest(name string, until time.Time) { p.set(name, pace{until: until}) }

// Reserve returns the wait for the next use of a name that may be used once in a time.
func (p *Paces) Reserve(name string, every time.Duration, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	wait := max(p.routes[name].until.Sub(now), 0)
	p.put(name, pace{until: now.Add(wait + every)})
	return wait
}

func (p *Paces) set(name string, state pace) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.put(name, state)
}

// put stores a state. The caller holds the lock.
func (p *Paces) put(name string, state pace) {
	if p.routes == nil {
		p.routes = map[string]pace{}
	}
	if len(p.routes) >= maxPaces {
		maps.DeleteFunc(p.routes, func(_ string, old pace) bool { return !old.until.After(time.Now()) })
	}
	p.routes[name] = state
}

// inherit takes over the rate limits of another one.
func (p *Paces) inherit(old *Paces) {
	old.mu.Lock()
	defer old.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.routes = maps.Clone(old.routes)
}

// headerSeconds returns a header's time, which is in seconds; 0 if there is none.
func headerSeconds(header http.Header, name string) time.Duration {
	n, _ := strconv.ParseFloat(header.Get(name), 64)
	return seconds(n)
}

func seconds(n float64) time.Duration {
	if !(n > 0 && n < 1e6) {
		return 0
	}
	return time.Duration(n * float64(time.Second))
}
