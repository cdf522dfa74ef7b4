package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"parley/adapters/discord/discordtest"
	"parley/adapters/slack/slacktest"
	"parley/ingest/wake"
)

// gateway drops Discord's gateway connection under load, restarts the daemon, and compares the
// journal with the messages.
type gateway struct {
	drops, crashes, restarts, messages, channels, threads, shards int
	ordered                                                       bool
	rate, mentions, burstRate                                     float64
	burst, drain, historyLag                                      time.Duration

	*trial
	server *discordtest.Server
	rooms  []*conversation // one in each channel, and in each thread
	due    atomic.Int64    // threads that people are about to open
}

func (g *gateway) define(f *flagSet) {
	f.number(&g.drops, "drops", 100, 0, "number of dropped connections, of mixed kinds")
	f.number(&g.crashes, "kills", 0, 0, "number of kill -9 under load, after the drops")
	f.BoolVar(&g.ordered, "ordered", false, "an answer before the one to an earlier question of its channel is a violation")
	f.number(&g.restarts, "restarts", 3, 0, "number of restarts; the daemon is stopped by SIGTERM and by kill -9 in turn")
	f.number(&g.messages, "messages", 200, 0, "number of messages during each downtime")
	f.number(&g.channels, "channels", 20, 1, "number of channels")
	f.number(&g.threads, "threads", 5, 0, "number of threads that people open, one after each forgotten session")
	f.number(&g.shards, "shards", 1, 1, "number of shards; several daemons share them")
	f.duration(&g.historyLag, "history-lag", 2*time.Second, 0, "time after which Discord shows a message in its history")
	f.float(&g.rate, "rate", 500, 0.001, "messages per second")
	f.float(&g.mentions, "mentions", 0.02, 0, "share of the messages that mention the bot and are answered")
	f.duration(&g.burst, "burst", 20*time.Second, 0, "duration of a burst without drops")
	f.float(&g.burstRate, "burst-rate", 5000, 0.001, "messages per second during the burst")
	f.duration(&g.drain, "drain", 3*time.Minute, 0, "time limit until the journal has all messages")
}

// The person of the scenario, and the interval of Discord's heartbeats.
const (
	discordUser = "300000000000000001"
	heartbeat   = 3 * time.Second
)

func (g *gateway) channel(n int) string { return fmt.Sprint(310_000_000_000_000_000 + n) }

// discordEpoch is the time from 1970 to the first Discord id.
// https://docs.discord.com/developers/reference#snowflakes
const discordEpoch = 1420070400000 * time.Millisecond

// guild returns the server of a shard.
// https://docs.discord.com/developers/events/gateway#sharding
func (g *gateway) guild(shard int) string {
	return fmt.Sprint((80_000_000_000/g.shards*g.shards + shard) << 22)
}

func (g *gateway) run(ctx context.Context, b *bench) (err error) {
	if err := g.prepare(ctx, b, discordtest.Options{HistoryLag: g.historyLag}, nil); err != nil {
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
		return fmt.Errorf("%w\n%s", err, g.nodes.logTail())
	}
	g.settle(ctx)
	identifies, resumes := g.server.Starts()
	b.printf("%d identifies, %d resumes; %d starts of %d shards and %d forgotten sessions\n", identifies, resumes, 1+g.crashes+g.restarts, g.shards, forgotten)
	if most := g.shards*(1+g.crashes+g.restarts) + forgotten; identifies > most {
		g.faults = append(g.faults, fmt.Sprintf("%d identifies, at most %d are due", identifies, most))
	}
	if err := errors.Join(g.compare(ctx), g.reportMissed(ctx)); err != nil {
		return err
	}
	return g.finish()
}

// prepare starts Discord, the model and the daemon. Without answers of a model, the echo agent
// answers. Discord's live messages and those of a gap come in no common order.
func (g *gateway) prepare(ctx context.Context, b *bench, options discordtest.Options, answers *behaviour) (err error) {
	g.trial = &trial{bench: b, ledger: newLedger(), posts: g.discordPosts}
	g.ledger.unordered, g.ledger.mention = !g.ordered, "<@"+discordtest.BotUser+"> "
	if answers != nil {
		g.model = b.startModel(g.ledger, *answers)
	}
	options.Heartbeat = heartbeat
	if g.server, err = discordtest.Start(options); err != nil {
		return err
	}
	g.onClose(g.server.Close)
	g.server.AddUser(discordtest.User{ID: discordUser, Username: "human"})
	for n := range g.shards {
		g.server.AddGuild(discordtest.Guild{ID: g.guild(n)})
	}
	for n := range g.channels {
		g.server.SetChannel(discordtest.Channel{ID: g.channel(n), Guild: g.guild(n % g.shards)})
		g.rooms = append(g.rooms, &conversation{place: place{channel: g.channel(n)}})
	}
	if g.nodes, err = b.startNodes(ctx, "parley", g.newDaemon); err != nil {
		return err
	}
	return g.server.AwaitShards(ctx, g.shards)
}

// newDaemon prepares a daemon with its configuration. Each mention is a turn of its own.
func (g *gateway) newDaemon(name string, d *database) (*child, error) {
	agent, agents, preview := "echo", "", "off"
	if g.model != nil {
		agent, agents, preview = "model", g.model.agent(name, ""), "edit, preview_every: 100ms"
	}
	return g.bench.newDaemon(name, d, agents, fmt.Sprintf(`id: bench
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
func (g *gateway) say() {
	for ; g.due.Load() > 0; g.due.Add(-1) {
		g.openThread()
	}
	n := g.ledger.count()
	silent := float64(n%1000) >= g.mentions*1000
	m := g.ledger.add(g.rooms[n%g.channels], message{unaddressed: silent, silent: silent, onSlack: true})
	said, _ := g.server.Say(discordtest.Message{Channel: m.place.channel, Author: discordUser, Content: m.text(0)})
	m.ts = said.ID
}

// openThread opens a thread in one of the channels.
func (g *gateway) openThread() {
	n := len(g.rooms) % g.channels
	id := fmt.Sprint((time.Now().Add(-discordEpoch).UnixMilli())<<22 + int64(len(g.rooms)))
	g.server.SetChannel(discordtest.Channel{ID: id, Guild: g.guild(n % g.shards), Parent: g.channel(n), Type: discordtest.PublicThread})
	g.rooms = append(g.rooms, &conversation{place: place{channel: id}})
}

// discordPosts returns the daemon's posts.
func (g *gateway) discordPosts() (all []slacktest.Post) {
	for _, p := range g.server.Posts("") {
		all = append(all, slacktest.Post{Channel: p.Channel, TS: p.ID, Text: p.Content})
	}
	return all
}

// drop ends or breaks every connection in the n-th way. It returns the number of connections, and
// whether Discord has forgotten their sessions.
func (g *gateway) drop(n int) (dropped int, forgotten bool) {
	kinds := discordtest.Kinds()
	if n %= len(kinds) + 1; n < len(kinds) {
		return g.server.Drop(kinds[n]), kinds[n] == discordtest.InvalidFalse || kinds[n] == discordtest.Forget
	}
	return g.server.CloseWith(closeTimedOut), true
}

// closeTimedOut is the close code after which a session cannot be resumed because it timed out.
const closeTimedOut = 4009

// dropAll drops connections under load. It returns the number of sessions that Discord forgot.
func (g *gateway) dropAll(ctx context.Context) (forgotten int, err error) {
	begun, threads := time.Now(), g.threads
	err = during(func(stop <-chan struct{}) { pump(ctx, g.rate, endless, stop, g.say) }, func() error {
		n := 0
		return repeat(ctx, g.random, g.drops, 200*time.Millisecond, func() error {
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
	g.printf("%d drops and %d messages in %v\n", g.drops, g.ledger.count(), round(begun))
	return forgotten, err
}

// crashLife is the longest time between a start and a kill.
const crashLife = 4 * time.Second

// crashAll kills a daemon again and again under load.
func (g *gateway) crashAll(ctx context.Context) error {
	if g.crashes == 0 {
		return nil
	}
	before, begun := g.ledger.count(), time.Now()
	err := during(func(stop <-chan struct{}) { pump(ctx, g.rate, endless, stop, g.say) }, func() error {
		return repeat(ctx, g.random, g.crashes, crashLife, func() error {
			if err := g.nodes.crashOne(ctx, g.random); err != nil {
				return err
			}
			return g.server.AwaitShards(ctx, g.shards)
		})
	})
	g.printf("%d kills and %d messages in %v\n", g.crashes, g.ledger.count()-before, round(begun))
	return err
}

// restart ends the daemon, says messages, and starts it again.
func (g *gateway) restart(ctx context.Context, n int) error {
	daemon, end := g.nodes.all[0], g.nodes.all[0].stop
	if n%2 == 1 {
		end = daemon.kill
	}
	err := during(func(stop <-chan struct{}) { pump(ctx, g.rate, endless, stop, g.say) }, func() error {
		wake.After(ctx, 200*time.Millisecond)
		return end()
	})
	if err != nil {
		return err
	}
	begun := time.Now()
	pump(ctx, g.rate, g.messages, nil, g.say)
	if g.daemons > 1 {
		if err := g.server.AwaitShards(ctx, g.shards); err != nil {
			return err
		}
		g.printf("the other daemons have all shards after %v\n", round(begun))
	}
	if _, err := daemon.start(ctx); err != nil {
		return err
	}
	return g.server.AwaitShards(ctx, g.shards)
}

// flood says messages at the burst's rate, and checks that the connection survives it.
func (g *gateway) flood(ctx context.Context) error {
	if g.burst == 0 {
		return nil
	}
	identifies, resumes := g.server.Starts()
	before, begun := g.ledger.count(), time.Now()
	pump(ctx, g.burstRate, int(g.burstRate*g.burst.Seconds()), nil, g.say)
	said := time.Since(begun)
	g.settle(ctx)
	took := time.Since(begun)
	n := float64(g.ledger.count() - before)
	memory := g.nodes.memory()
	g.printf("burst: %.0f messages/s said, %.0f/s stored; %v\n", n/said.Seconds(), n/took.Seconds(), memory)
	if i, r := g.server.Starts(); i != identifies || r != resumes {
		g.faults = append(g.faults, "the connection broke during the burst")
	}
	return ctx.Err()
}

// settle waits until the journal has all messages and the daemon no unfinished work.
func (g *gateway) settle(ctx context.Context) {
	g.faults = append(g.faults, g.nodes.settle(ctx, g.drain, func(*backlog) string {
		var stored int
		_ = g.nodes.store.QueryRowContext(ctx, `SELECT count(*) FROM messages WHERE author = 'human'`).Scan(&stored) // 0 after an error
		return fewer(stored, g.ledger.count(), "messages are stored")
	}))
}

// compare compares the journal with the messages. Messages that were read after a gap have the
// place of their arrival, so the order of the live ones counts.
func (g *gateway) compare(ctx context.Context) error {
	found, err := g.journal(ctx, "origin = 'live'", "seq")
	g.printf("%d messages: %d lost, %d doubled, %d out of order, %d read after a gap\n",
		g.ledger.count(), found.lost, found.doubled, found.disordered, found.unplaced)
	if g.daemons > 1 { // two nodes may record the messages of a shard that moves at the same time
		found.disordered = 0
	}
	if found.lost+found.doubled+found.disordered > 0 {
		g.faults = append(g.faults, "the journal differs from the messages")
	}
	return err
}
