// Package discord has the scenarios that play Discord.
package discord

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"parley/adapters/discord/discordtest"
	"parley/adapters/slack/slacktest"
	"parley/cmd/parley-bench/internal/figure"
	"parley/cmd/parley-bench/internal/ledger"
	"parley/cmd/parley-bench/internal/rig"
	"parley/cmd/parley-bench/internal/trial"
	"parley/ingest/wake"
)

// Gateway drops Discord's gateway connection under load, restarts the daemon, and compares the
// journal with the messages.
type Gateway struct {
	drops, crashes, restarts, messages, channels, threads, shards int
	ordered                                                       bool
	rate, mentions, burstRate                                     float64
	burst, drain, historyLag                                      time.Duration

	*trial.Trial
	server *discordtest.Server
	rooms  []*ledger.Conversation // one in each channel, and in each thread
	due    atomic.Int64           // threads that people are about to open

	noting sync.Mutex
	begins []time.Time // of new sessions
}

func (g *Gateway) Define(f *rig.FlagSet) {
	f.Number(&g.drops, "drops", 100, 0, "number of dropped connections, of mixed kinds")
	f.Number(&g.crashes, "kills", 0, 0, "number of kill -9 under load, after the drops")
	f.BoolVar(&g.ordered, "ordered", false, "an answer before the one to an earlier question of its channel is a violation")
	f.Number(&g.restarts, "restarts", 3, 0, "number of restarts; the daemon is stopped by SIGTERM and by kill -9 in turn")
	f.Number(&g.messages, "messages", 200, 0, "number of messages during each downtime")
	f.Number(&g.channels, "channels", 20, 1, "number of channels")
	f.Number(&g.threads, "threads", 5, 0, "number of threads that people open, one after each forgotten session")
	f.Number(&g.shards, "shards", 1, 1, "number of shards; several daemons share them")
	f.Duration(&g.historyLag, "history-lag", 2*time.Second, 0, "time after which Discord shows a message in its history")
	f.Float(&g.rate, "rate", 500, 0.001, "messages per second")
	f.Float(&g.mentions, "mentions", 0.02, 0, "share of the messages that mention the bot and are answered")
	f.Duration(&g.burst, "burst", 20*time.Second, 0, "duration of a burst without drops")
	f.Float(&g.burstRate, "burst-rate", 5000, 0.001, "messages per second during the burst")
	f.Duration(&g.drain, "drain", 3*time.Minute, 0, "time limit until the journal has all messages")
}

// The person of the scenario, and the interval of Discord's heartbeats.
const (
	discordUser = "300000000000000001"
	heartbeat   = 3 * time.Second
)

func (g *Gateway) channel(n int) string { return fmt.Sprint(310_000_000_000_000_000 + n) }

// discordEpoch is the time from 1970 to the first Discord id.
// https://docs.discord.com/developers/reference#snowflakes
const discordEpoch = 1420070400000 * time.Millisecond

// guild returns the server of a shard.
// https://docs.discord.com/developers/events/gateway#sharding
func (g *Gateway) guild(shard int) string {
	return fmt.Sprint((80_000_000_000/g.shards*g.shards + shard) << 22)
}

func (g *Gateway) Run(ctx context.Context, b *rig.Bench) (err error) {
	if err := g.prepare(ctx, b, discordtest.Options{HistoryLag: g.historyLag, OnSession: g.note}, nil); err != nil {
		return err
	}
	forgotten, err := g.dropAll(ctx)
	if err == nil {
		err = g.crashAll(ctx)
	}
	for n := 0; n < g.restarts && err == nil; n++ {
		err = g.restart(ctx, n)
	}
	if err == nil {
		g.settle(ctx)
		err = g.flood(ctx)
	}
	if err != nil {
		return fmt.Errorf("%w\n%s", err, g.Nodes.LogTail())
	}
	g.settle(ctx)
	identifies, resumes := g.server.Starts()
	b.Printf("%d identifies, %d resumes; %d starts of %d shards and %d forgotten sessions\n", identifies, resumes, 1+g.crashes+g.restarts, g.shards, forgotten)
	if most := g.shards*(1+g.crashes+g.restarts) + forgotten; identifies > most {
		g.Faults = append(g.Faults, fmt.Sprintf("%d identifies, at most %d are due", identifies, most))
	}
	g.noting.Lock()
	begins := slices.Clone(g.begins)
	g.noting.Unlock()
	if err := errors.Join(g.compare(ctx), g.ReportMissed(ctx, begins...)); err != nil {
		return err
	}
	return g.Finish()
}

// note notes the begin of a session.
func (g *Gateway) note(resumed bool) {
	g.noting.Lock()
	defer g.noting.Unlock()
	if !resumed {
		g.begins = append(g.begins, time.Now())
	}
}

// prepare starts Discord, the model and the daemon. Without answers of a model, the echo agent
// answers. Discord's live messages and those of a gap come in no common order.
func (g *Gateway) prepare(ctx context.Context, b *rig.Bench, options discordtest.Options, answers *trial.Behaviour) (err error) {
	g.Trial = &trial.Trial{Bench: b, Ledger: ledger.New(), Posts: g.discordPosts}
	g.Ledger.Unordered, g.Ledger.Mention = !g.ordered, "<@"+discordtest.BotUser+"> "
	if answers != nil {
		g.Model = trial.StartModel(b, g.Ledger, *answers)
	}
	options.Heartbeat = heartbeat
	if g.server, err = discordtest.Start(options); err != nil {
		return err
	}
	g.OnClose(g.server.Close)
	g.server.AddUser(discordtest.User{ID: discordUser, Username: "human"})
	for n := range g.shards {
		g.server.AddGuild(discordtest.Guild{ID: g.guild(n)})
	}
	for n := range g.channels {
		g.server.SetChannel(discordtest.Channel{ID: g.channel(n), Guild: g.guild(n % g.shards)})
		g.rooms = append(g.rooms, &ledger.Conversation{Place: ledger.Place{Channel: g.channel(n)}})
	}
	if g.Nodes, err = b.StartNodes(ctx, "parley", g.newDaemon); err != nil {
		return err
	}
	return g.server.AwaitShards(ctx, g.shards)
}

// newDaemon prepares a daemon with its configuration. Each mention is a turn of its own.
func (g *Gateway) newDaemon(name string, d *rig.Database) (*rig.Child, error) {
	agent, agents, preview := "echo", "", "off"
	if g.Model != nil {
		agent, agents, preview = "model", g.Model.Agent(name, ""), "edit, preview_every: 100ms"
	}
	return g.Bench.NewDaemon(name, d, agents, fmt.Sprintf(`id: bench
platform: discord
agent: %s
discord: {token: %s, api_url: %q, post_rate: 0, shards: %d, preview: %s, working: off, commands: false}
turns: {coalesce: 0s, coalesce_max: 0s}
catch_up: {messages: 10000}
context: {turns: 3}
`, agent, discordtest.Token, g.server.ClientURL(name), g.shards, preview))
}

// say lets the person write a message in one of the channels and threads, in turn, after the
// threads that are due are open.
func (g *Gateway) say() {
	for ; g.due.Load() > 0; g.due.Add(-1) {
		g.openThread()
	}
	n := g.Ledger.Count()
	silent := float64(n%1000) >= g.mentions*1000
	m := g.Ledger.Add(g.rooms[n%g.channels], ledger.Message{Unaddressed: silent, Silent: silent, OnSlack: true})
	said, _ := g.server.Say(discordtest.Message{Channel: m.Place.Channel, Author: discordUser, Content: m.Text(0)})
	m.TS = said.ID
}

// openThread opens a thread in one of the channels.
func (g *Gateway) openThread() {
	n := len(g.rooms) % g.channels
	id := fmt.Sprint((time.Now().Add(-discordEpoch).UnixMilli())<<22 + int64(len(g.rooms)))
	g.server.SetChannel(discordtest.Channel{ID: id, Guild: g.guild(n % g.shards), Parent: g.channel(n), Type: discordtest.PublicThread})
	g.rooms = append(g.rooms, &ledger.Conversation{Place: ledger.Place{Channel: id}})
}

// discordPosts returns the daemon's posts.
func (g *Gateway) discordPosts() (all []slacktest.Post) {
	for _, p := range g.server.Posts("") {
		all = append(all, slacktest.Post{Channel: p.Channel, TS: p.ID, Text: p.Content, At: p.Sent})
	}
	return all
}

// drop ends or breaks every connection in the n-th way. It returns the number of connections, and
// whether Discord has forgotten their sessions.
func (g *Gateway) drop(n int) (dropped int, forgotten bool) {
	kinds := discordtest.Kinds()
	if n %= len(kinds) + 1; n < len(kinds) {
		return g.server.Drop(kinds[n]), kinds[n] == discordtest.InvalidFalse || kinds[n] == discordtest.Forget
	}
	return g.server.CloseWith(closeTimedOut), true
}

// closeTimedOut is the close code after which a session cannot be resumed because it timed out.
const closeTimedOut = 4009

// dropAll drops connections under load. It returns the number of sessions that Discord forgot.
func (g *Gateway) dropAll(ctx context.Context) (forgotten int, err error) {
	begun, threads := time.Now(), g.threads
	err = trial.During(func(stop <-chan struct{}) { trial.Pump(ctx, g.rate, trial.Endless, stop, g.say) }, func() error {
		n := 0
		return trial.Repeat(ctx, g.Random, g.drops, 200*time.Millisecond, func() error {
			identifies, resumes := g.server.Starts()
			dropped, forgets := g.drop(n)
			n++
			if forgets {
				forgotten += dropped
				if threads--; threads >= 0 {
					g.due.Add(1)
				}
			}
			return g.server.AwaitStarts(ctx, identifies+resumes+dropped)
		})
	})
	g.Printf("%d drops and %d messages in %v\n", g.drops, g.Ledger.Count(), figure.Round(begun))
	return forgotten, err
}

// crashLife is the longest time between a start and a kill.
const crashLife = 4 * time.Second

// crashAll kills a daemon again and again under load.
func (g *Gateway) crashAll(ctx context.Context) error {
	if g.crashes == 0 {
		return nil
	}
	before, begun := g.Ledger.Count(), time.Now()
	err := trial.During(func(stop <-chan struct{}) { trial.Pump(ctx, g.rate, trial.Endless, stop, g.say) }, func() error {
		return trial.Repeat(ctx, g.Random, g.crashes, crashLife, func() error {
			if err := g.Nodes.CrashOne(ctx, g.Random); err != nil {
				return err
			}
			return g.server.AwaitShards(ctx, g.shards)
		})
	})
	g.Printf("%d kills and %d messages in %v\n", g.crashes, g.Ledger.Count()-before, figure.Round(begun))
	return err
}

// restart ends the daemon, says messages, and starts it again.
func (g *Gateway) restart(ctx context.Context, n int) error {
	daemon, end := g.Nodes.All[0], g.Nodes.All[0].Stop
	if n%2 == 1 {
		end = daemon.Kill
	}
	err := trial.During(func(stop <-chan struct{}) { trial.Pump(ctx, g.rate, trial.Endless, stop, g.say) }, func() error {
		wake.After(ctx, 200*time.Millisecond)
		return end()
	})
	if err != nil {
		return err
	}
	begun := time.Now()
	trial.Pump(ctx, g.rate, g.messages, nil, g.say)
	if g.Daemons > 1 {
		if err := g.server.AwaitShards(ctx, g.shards); err != nil {
			return err
		}
		g.Printf("the other daemons have all shards after %v\n", figure.Round(begun))
	}
	if _, err := daemon.Start(ctx); err != nil {
		return err
	}
	return g.server.AwaitShards(ctx, g.shards)
}

// flood says messages at the burst's rate, and checks that the connection survives it.
func (g *Gateway) flood(ctx context.Context) error {
	if g.burst == 0 {
		return nil
	}
	identifies, resumes := g.server.Starts()
	before, begun := g.Ledger.Count(), time.Now()
	trial.Pump(ctx, g.burstRate, int(g.burstRate*g.burst.Seconds()), nil, g.say)
	said := time.Since(begun)
	g.settle(ctx)
	took := time.Since(begun)
	n := float64(g.Ledger.Count() - before)
	memory := g.Nodes.Memory()
	g.Printf("burst: %.0f messages/s said, %.0f/s stored; %v\n", n/said.Seconds(), n/took.Seconds(), memory)
	if i, r := g.server.Starts(); i != identifies || r != resumes {
		g.Faults = append(g.Faults, "the connection broke during the burst")
	}
	return ctx.Err()
}

// settle waits until the journal has all messages and the daemon no unfinished work.
func (g *Gateway) settle(ctx context.Context) {
	g.Faults = append(g.Faults, g.Nodes.Settle(ctx, g.drain, func(*rig.Backlog) string {
		var stored int
		_ = g.Nodes.Store.QueryRowContext(ctx, `SELECT count(*) FROM messages WHERE author = 'human'`).Scan(&stored) // 0 after an error
		return trial.Fewer(stored, g.Ledger.Count(), "messages are stored")
	}))
}

// compare compares the journal with the messages. Messages that were read after a gap have the
// place of their arrival, so the order of the live ones counts.
func (g *Gateway) compare(ctx context.Context) error {
	found, err := g.Journal(ctx, "origin = 'live'", "seq")
	g.Printf("%d messages: %d lost, %d doubled, %d out of order, %d read after a gap\n",
		g.Ledger.Count(), found.Lost, found.Doubled, found.Disordered, found.Unplaced)
	if g.Daemons > 1 { // two nodes may record the messages of a shard that moves at the same time
		found.Disordered = 0
	}
	if found.Lost+found.Doubled+found.Disordered > 0 {
		g.Faults = append(g.Faults, "the journal differs from the messages")
	}
	return err
}
