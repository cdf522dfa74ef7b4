package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// agents measures what the daemon adds to the first token of each kind of agent, kills it
// while it asks them, and measures other threads beside an agent that misbehaves.
type agents struct {
	kind, part           string
	kills, samples, most int
	rate                 float64
	lasts                time.Duration
}

func (a *agents) define(f *flagSet) {
	kinds := []string{"all"}
	for _, d := range dialects() {
		kinds = append(kinds, d.kind)
	}
	f.choice(&a.kind, "kind", "all", kinds, "the kind of agent")
	f.choice(&a.part, "part", "all", []string{"all", "tokens", "kills", "beside"}, "tokens: the delay of the first token; kills: kill -9 under load; beside: threads beside an agent that misbehaves")
	f.number(&a.kills, "kills", 20, 1, "number of kills for each kind")
	f.number(&a.samples, "samples", 200, 1, "least number of answers for each number of streams")
	f.number(&a.most, "streams", 500, 1, "largest number of streams at once")
	f.float(&a.rate, "rate", 30, 0.001, "messages per second, under the kills and in each workspace beside")
	f.duration(&a.lasts, "lasts", 15*time.Second, time.Second, "duration of each measurement beside")
}

func (a *agents) run(ctx context.Context, b *bench) error {
	for _, d := range dialects() {
		if a.kind != "all" && a.kind != d.kind {
			continue
		}
		for _, part := range []struct {
			name string
			run  func(context.Context, *bench, dialect) error
		}{{"tokens", a.tokens}, {"kills", a.underKills}, {"beside", a.beside}} {
			if a.part != "all" && a.part != part.name {
				continue
			}
			if err := part.run(ctx, b, d); err != nil {
				return fmt.Errorf("%s: %s: %w", d.kind, part.name, err)
			}
		}
	}
	return nil
}

// The delay that the daemon may add to the first token.
const mostP50, mostP99 = 5 * time.Millisecond, 25 * time.Millisecond

// tokens measures the delay from the agent's first token to the first call of Slack, at 1, 50
// and 500 streams at once.
func (a *agents) tokens(ctx context.Context, b *bench, d dialect) error {
	var slow []string
	for _, n := range []int{1, 50, 500} {
		if n > a.most {
			continue
		}
		delays, err := a.firstTokens(ctx, b, d, n)
		if err != nil {
			return err
		}
		b.printf("%-9s  %3d streams at once  from the agent's first token to the first call of Slack: %v\n", d.kind, n, delays)
		if delays.p50 > mostP50 || delays.p99 > mostP99 {
			slow = append(slow, fmt.Sprintf("%d streams: p50 must be at most %v, p99 at most %v", n, mostP50, mostP99))
		}
	}
	return violations(slow)
}

// between is the time between two first tokens, and opening the time that the daemon has to
// open one stream before the first of them.
const between, opening = 20 * time.Millisecond, 10 * time.Millisecond

// firstTokens measures the delays while n answers stream. Their first tokens come one after
// the other, when all streams are open, and no answer ends before the last of them.
func (a *agents) firstTokens(ctx context.Context, b *bench, d dialect, n int) (times, error) {
	answers := shortAnswers(0)
	answers.dialect = d
	answers.first = func(id int) time.Duration {
		return 300*time.Millisecond + time.Duration(n)*opening + time.Duration(id%n)*between
	}
	answers.duration = func(id int) time.Duration { return 2*time.Second + time.Duration(n-id%n)*between }
	t, delays, err := b.startTimed(ctx, fmt.Sprintf("tokens-%s-%d", d.kind, n), setup{model: &answers, streams: true, runs: n})
	if err != nil {
		return times{}, err
	}
	for sent := 0; sent < a.samples; sent += n {
		traffic{trial: t, conversations: newConversations(n), each: 1, bare: true}.run(ctx, nil)
		if left := t.settle(ctx, sent+n, false, time.Minute); left != "" {
			return times{}, fmt.Errorf("not answered: %s\n%s", left, t.nodes.logTail())
		}
	}
	return delays(), t.finish()
}

// underKills kills the daemon under load. No run may be asked twice, except one whose request
// a kill ended, and each reply must be there once.
func (a *agents) underKills(ctx context.Context, b *bench, d dialect) error {
	answers := longAnswers()
	answers.dialect = d
	t, err := b.startTrial(ctx, "kills-"+d.kind, setup{model: &answers})
	if err != nil {
		return err
	}
	load := traffic{trial: t, conversations: newConversations(100), workers: 16, rate: a.rate}
	err = during(func(stop <-chan struct{}) { load.run(ctx, stop) }, func() error {
		return repeat(ctx, b.random, a.kills, 2*time.Second, func() error { return t.nodes.crashOne(ctx, b.random) })
	})
	if err != nil {
		return err
	}
	left := t.settle(ctx, 0, false, 2*time.Minute)
	deaths := t.nodes.deaths
	faults, repeated := t.ledger.askedTwice(deaths)
	b.printf("%-9s  %d kills, %d requests, %d of them again after a kill, %d without a reason\n", d.kind, len(deaths), len(t.ledger.requests), repeated, len(faults))
	return t.finish(append(faults, left)...)
}

// beside measures the answers of one workspace, alone and beside another whose agent
// misbehaves in every way.
func (a *agents) beside(ctx context.Context, b *bench, d dialect) error {
	bad := &misbehaving{dialect: d}
	bad.url = b.serve(bad)
	answers := shortAnswers(100 * time.Millisecond)
	answers.dialect = d
	others := []*neighbour{{id: "bad", agent: "bad"}}
	measure := &tenants{rate: a.rate, beside: a.rate, lasts: a.lasts, threads: 200}
	l, err := measure.start(ctx, b, "beside-"+d.kind, setup{model: &answers,
		agents: d.agent("bad", bad.url, ", timeout: 3s, first_byte: 1s, max_bytes: 65536, max_concurrent: 16")}, others)
	if err != nil {
		return err
	}
	alone, err := measure.measure(ctx, l, d.kind+" alone", nil, func() {})
	if err != nil {
		return err
	}
	bad.asked.Store(0)
	loaded, err := measure.measure(ctx, l, d.kind+" beside a bad one", others, func() {})
	if err != nil {
		return err
	}
	b.printf("%-9s  the bad agent got %d requests and its threads %d posts\n", d.kind, bad.asked.Load(), len(others[0].api.Posts()))
	if loaded.p99 > 2*alone.p99 {
		l.faults = append(l.faults, fmt.Sprintf("p99 rose from %s to %s", millis(alone.p99), millis(loaded.p99)))
	}
	return l.finish()
}

// misbehaving is an agent's server that answers no request well.
type misbehaving struct {
	dialect dialect
	url     string
	asked   atomic.Int64
}

// ServeHTTP answers each request in the next bad way.
func (m *misbehaving) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if m.dialect.later && r.Method == http.MethodPost {
		acceptRun(w, r.Header.Get("Idempotency-Key"))
		return
	}
	n := m.asked.Add(1)
	_, _ = io.Copy(io.Discard, r.Body) // only then the server notices that the daemon has gone
	stream := func(text string) {
		w.Header().Set("Content-Type", "text/event-stream")
		_ = write(w, m.dialect.begin+with(m.dialect.delta, `"It was"`)+text)
	}
	hang := func() { <-r.Context().Done() }
	switch n % 10 {
	case 0: // slow first byte
		hang()
	case 1: // hang in the middle
		stream("")
		hang()
	case 2: // truncated
		stream(`data: {"ty`)
	case 3: // invalid
		stream("data: [1]\n\n")
	case 4: // enormous
		stream("data: " + strings.Repeat("x", 2<<20))
	case 5: // without end
		for stream(""); write(w, ": "+strings.Repeat("x", 1000)+"\n\n") == nil; {
			continue
		}
	case 6:
		w.Header().Set("Retry-After", "1")
		http.Error(w, "busy", http.StatusTooManyRequests)
	case 7:
		http.Error(w, "broken", http.StatusInternalServerError)
	case 8:
		http.Redirect(w, r, m.url+"/elsewhere", http.StatusTemporaryRedirect)
	case 9: // wrong content type
		_ = write(w, "<html>")
	}
}
