package slack

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"parley/adapters/slack/slacktest"
	"parley/cmd/parley-bench/internal/figure"
	"parley/cmd/parley-bench/internal/ledger"
	"parley/cmd/parley-bench/internal/rig"
	"parley/cmd/parley-bench/internal/trial"
	"parley/ingest/wake"
)

// Sockets disconnects Socket Mode connections under load and checks the ledger.
type Sockets struct {
	disconnects, sockets, threads, channels int
	rate                                    float64
	every, drain                            time.Duration
}

func (s *Sockets) Define(f *rig.FlagSet) {
	f.Number(&s.disconnects, "disconnects", 100, 0, "number of disconnects, in a random order of all kinds")
	f.Number(&s.sockets, "sockets", 2, 1, "number of connections that each daemon keeps open")
	f.Number(&s.threads, "threads", 12, 1, "number of conversations; every fourth is a direct message")
	f.Number(&s.channels, "channels", 6, 1, "number of channels for the other conversations")
	f.Float(&s.rate, "rate", 20, 0.001, "messages per second of all conversations together")
	f.Duration(&s.every, "every", 2*time.Second, time.Millisecond, "mean time between two disconnects")
	f.Duration(&s.drain, "drain", 10*time.Minute, 0, "time limit for the remaining work; Slack sends an event for the last time after six minutes")
}

// disconnect is one kind of disconnect. It returns the number of sockets that it hit.
type disconnect struct {
	name string
	do   func(*slacktest.Server) int
}

// openMethod is the method that opens a socket.
const openMethod = "apps.connections.open"

// disconnects returns all kinds in the shares in which they come. Half-open sockets are
// last, since the daemon needs half a minute to notice one.
func disconnects() (all []disconnect) {
	unavailable := slacktest.Fault{Status: http.StatusServiceUnavailable}
	for _, kind := range []struct {
		share int
		disconnect
	}{
		{5, disconnect{"warning", func(s *slacktest.Server) int { return s.Disconnect("warning", 1) }}},
		{5, disconnect{"refresh_requested", func(s *slacktest.Server) int { return s.Disconnect("refresh_requested", 1) }}},
		{3, disconnect{"cut", func(s *slacktest.Server) int { return s.Cut(1) }}},
		{2, disconnect{"cut, and 503 for the next", func(s *slacktest.Server) int { return cutAndRefuse(s, 1, unavailable) }}},
		{1, disconnect{"cut, and 429 for the next", func(s *slacktest.Server) int { return cutAndRefuse(s, 1, slacktest.RateLimited(time.Second)) }}},
		{1, disconnect{"all refreshed", func(s *slacktest.Server) int { return s.Disconnect("refresh_requested", slacktest.All) }}},
		{1, disconnect{"all cut, and 503 for as many", func(s *slacktest.Server) int { return cutAndRefuse(s, slacktest.All, unavailable) }}},
		{2, disconnect{"half-open", func(s *slacktest.Server) int { return s.Mute(1) }}},
	} {
		all = append(all, slices.Repeat([]disconnect{kind.disconnect}, kind.share)...)
	}
	return all
}

// cutAndRefuse cuts at most n sockets and refuses the same number of new ones. If no
// socket is open, it refuses none; otherwise the daemon might never open one again.
func cutAndRefuse(s *slacktest.Server, n int, fault slacktest.Fault) int {
	open, _ := s.Sockets()
	for range min(n, open) {
		s.Script(openMethod, fault)
	}
	return s.Cut(min(n, open))
}

func (s *Sockets) Run(ctx context.Context, b *rig.Bench) error {
	t, err := trial.Start(ctx, b, "parley", trial.Setup{Sockets: s.sockets, SlackRetries: true})
	if err != nil {
		return err
	}
	load := trial.Traffic{Trial: t, Conversations: ledger.NewRooms(0, s.threads, s.channels), Rate: s.rate}
	begun, counts := time.Now(), map[string]int{}
	err = trial.During(func(stop <-chan struct{}) { load.Run(ctx, stop) }, func() error {
		return s.disconnectAll(ctx, t, counts)
	})
	if err != nil {
		return err
	}
	loaded := figure.Round(begun)
	left := t.Settle(ctx, t.Ledger.Due(), true, s.drain)
	var kinds []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		kinds = append(kinds, fmt.Sprintf("%d %s", counts[name], name))
	}
	_, most := t.API.Sockets()
	t.Printf("disconnects: %s; most sockets at once %d\n", strings.Join(kinds, ", "), most)
	t.Printf("loaded for %v, settled %v later; %d events had no acknowledgement after Slack's last attempt, %d found no socket\n",
		loaded, figure.Round(begun)-loaded, t.API.Unacked(), t.API.Missed())
	first, later, none := t.Ledger.Acks(0)
	t.Printf("%d messages acknowledged at the first attempt, %v; %d at a later one, %v; %d came by no event\n",
		len(first), figure.Summarize(first), len(later), figure.Summarize(later), none)
	return t.FinishLate(ctx, left)
}

// disconnectAll makes all disconnects in random order, and counts them by name. If no
// socket is open, it waits for one. It returns when a socket is open again.
func (s *Sockets) disconnectAll(ctx context.Context, t *trial.Trial, counts map[string]int) error {
	kinds := disconnects()
	plan := slices.Repeat(kinds, (s.disconnects+len(kinds)-1)/len(kinds))
	t.Random.Shuffle(len(plan), func(i, j int) { plan[i], plan[j] = plan[j], plan[i] })
	err := trial.Repeat(ctx, t.Random, s.disconnects, 2*s.every, func() error {
		kind := plan[0]
		plan = plan[1:]
		counts[kind.name]++
		for kind.do(t.API) == 0 {
			if err := t.Nodes.Alive(); err != nil {
				return err
			}
			if !wake.After(ctx, 100*time.Millisecond) {
				return ctx.Err()
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return t.API.AwaitFresh(ctx, 1)
}
