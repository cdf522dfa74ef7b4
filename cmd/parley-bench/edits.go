package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"parley/adapters/discord/discordtest"
	"parley/adapters/slack/slacktest"
	"parley/ingest/wake"
)

// edits kills the daemon while answers grow in Discord, and compares every answer with the
// model's.
type edits struct {
	gateway
	kills int
	after time.Duration
}

func (e *edits) define(f *flagSet) {
	f.number(&e.kills, "kills", 50, 0, "number of kills, each while an answer stands half there")
	f.number(&e.channels, "channels", 40, 1, "number of channels; each answers one question at a time")
	f.float(&e.rate, "rate", 5, 0.001, "questions per second")
	f.duration(&e.after, "after", 2*time.Second, 1, "longest time between a start and a kill")
	f.duration(&e.drain, "drain", 5*time.Minute, 0, "time limit for the remaining answers")
}

// discordAnswer is the answer of the model: it fits into one message.
func discordAnswer(id, revision int) []string {
	return []string{strings.TrimSpace(strings.Repeat(mark(id, revision, 1)+" is all that I can say of it. ", 40))}
}

// discordFaults returns the faults of some routes. After an effect that comes late, the nonce
// settles whether the post is there.
func discordFaults(routes ...string) (all []discordtest.Chance) {
	for _, route := range routes {
		for _, c := range []discordtest.Chance{
			{P: 0.01, Fault: discordtest.RateLimited(time.Second)},
			{P: 0.01, Fault: discordtest.Fault{Status: http.StatusServiceUnavailable}},
			{P: 0.01, Fault: discordtest.Fault{Status: http.StatusInternalServerError, Effect: true}},
			{P: 0.02, Fault: discordtest.Fault{Cut: true, Effect: true}},
			{P: 0.005, Fault: discordtest.Fault{Late: 3 * time.Second}},
			{P: 0.002, Fault: discordtest.Fault{Late: latest}},
		} {
			c.Route = route
			all = append(all, c)
		}
	}
	return all
}

func (e *edits) run(ctx context.Context, b *bench) (err error) {
	e.shards, e.mentions = 1, 1
	slow := slowAnswers()
	slow.answer = discordAnswer
	faults := discordtest.Mix(b.seed, discordFaults(discordtest.Post, discordtest.Edit, discordtest.Remove)...)
	if err := e.prepare(ctx, b, discordtest.Options{Plan: faults}, &slow); err != nil {
		return err
	}
	begun := time.Now()
	err = during(func(stop <-chan struct{}) { pump(ctx, e.rate, endless, stop, e.say) }, func() error {
		return repeat(ctx, e.random, e.kills, e.after, func() error {
			if err := await(ctx, e.half); err != nil {
				return err
			}
			return e.nodes.crashOne(ctx, e.random)
		})
	})
	if err != nil {
		return fmt.Errorf("%w\n%s", err, e.nodes.logTail())
	}
	b.printf("%d kills and %d questions in %v\n", e.kills, e.ledger.count(), round(begun))
	e.settle(ctx)
	if !wake.After(ctx, latest) { // a late effect could double a post
		return ctx.Err()
	}
	return e.finish()
}

// half reports whether some post is the beginning of an answer.
func (e *edits) half() bool {
	return slices.ContainsFunc(e.posts(), func(p slacktest.Post) bool {
		id, revision, _, ok := readMark(p.Text)
		return ok && p.Text != discordAnswer(id, revision)[0]
	})
}
