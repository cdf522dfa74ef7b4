package discord

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"parley/adapters/discord/discordtest"
	"parley/adapters/slack/slacktest"
	"parley/cmd/parley-bench/internal/figure"
	"parley/cmd/parley-bench/internal/ledger"
	"parley/cmd/parley-bench/internal/rig"
	"parley/cmd/parley-bench/internal/trial"
	"parley/ingest/wake"
)

// Edits kills the daemon while answers grow in Discord, and compares every answer with the
// model's.
type Edits struct {
	Gateway
	kills int
	after time.Duration
}

func (e *Edits) Define(f *rig.FlagSet) {
	f.Number(&e.kills, "kills", 50, 0, "number of kills, each while an answer stands half there")
	f.Number(&e.channels, "channels", 40, 1, "number of channels; each answers one question at a time")
	f.Float(&e.rate, "rate", 5, 0.001, "questions per second")
	f.Duration(&e.after, "after", 2*time.Second, 1, "longest time between a start and a kill")
	f.Duration(&e.drain, "drain", 5*time.Minute, 0, "time limit for the remaining answers")
}

// discordAnswer is the answer of the model: it fits into one message.
func discordAnswer(id, revision int) []string {
	return []string{strings.TrimSpace(strings.Repeat(ledger.Mark(id, revision, 1)+" is all that I can say of it. ", 40))}
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
			{P: 0.002, Fault: discordtest.Fault{Late: trial.Latest}},
		} {
			c.Route = route
			all = append(all, c)
		}
	}
	return all
}

func (e *Edits) Run(ctx context.Context, b *rig.Bench) (err error) {
	e.shards, e.mentions = 1, 1
	slow := trial.SlowAnswers()
	slow.Answer = discordAnswer
	faults := discordtest.Mix(b.Seed, discordFaults(discordtest.Post, discordtest.Edit, discordtest.Remove)...)
	if err := e.prepare(ctx, b, discordtest.Options{Plan: faults}, &slow); err != nil {
		return err
	}
	begun := time.Now()
	err = trial.During(func(stop <-chan struct{}) { trial.Pump(ctx, e.rate, trial.Endless, stop, e.say) }, func() error {
		return trial.Repeat(ctx, e.Random, e.kills, e.after, func() error {
			if err := rig.Await(ctx, e.half); err != nil {
				return err
			}
			return e.Nodes.CrashOne(ctx, e.Random)
		})
	})
	if err != nil {
		return fmt.Errorf("%w\n%s", err, e.Nodes.LogTail())
	}
	b.Printf("%d kills and %d questions in %v\n", e.kills, e.Ledger.Count(), figure.Round(begun))
	e.settle(ctx)
	if !wake.After(ctx, trial.Latest) { // a late effect could double a post
		return ctx.Err()
	}
	return e.Finish()
}

// half reports whether some post is the beginning of an answer.
func (e *Edits) half() bool {
	return slices.ContainsFunc(e.Posts(), func(p slacktest.Post) bool {
		id, revision, _, ok := ledger.ReadMark(p.Text)
		return ok && p.Text != discordAnswer(id, revision)[0]
	})
}
