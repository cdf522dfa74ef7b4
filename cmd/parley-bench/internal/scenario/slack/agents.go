package slack

import (
	"context"
	"fmt"
	"sync"
	"time"

	"parley/adapters/slack/slacktest"
	"parley/cmd/parley-bench/internal/figure"
	"parley/cmd/parley-bench/internal/ledger"
	"parley/cmd/parley-bench/internal/rig"
	"parley/cmd/parley-bench/internal/trial"
)

// Agents measures what the daemon adds to the first token of each kind of agent, and kills it
// while it asks them.
type Agents struct {
	kind, part           string
	kills, samples, most int
	rate                 float64
}

func (a *Agents) Define(f *rig.FlagSet) {
	kinds := []string{"all"}
	for _, d := range trial.Dialects() {
		kinds = append(kinds, d.Kind)
	}
	f.Choice(&a.kind, "kind", "all", kinds, "the kind of agent")
	f.Choice(&a.part, "part", "all", []string{"all", "tokens", "kills"}, "tokens: the delay of the first token; kills: kill -9 under load")
	f.Number(&a.kills, "kills", 20, 1, "number of kills for each kind")
	f.Number(&a.samples, "samples", 200, 1, "least number of answers for each number of streams")
	f.Number(&a.most, "streams", 500, 1, "largest number of streams at once")
	f.Float(&a.rate, "rate", 30, 0.001, "messages per second under the kills")
}

func (a *Agents) Run(ctx context.Context, b *rig.Bench) error {
	for _, d := range trial.Dialects() {
		if a.kind != "all" && a.kind != d.Kind {
			continue
		}
		var err error
		if a.part != "kills" {
			err = a.tokens(ctx, b, d)
		}
		if err == nil && a.part != "tokens" {
			err = a.underKills(ctx, b, d)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", d.Kind, err)
		}
	}
	return nil
}

// The delay that the daemon may add to the first token.
const mostP50, mostP99 = 5 * time.Millisecond, 25 * time.Millisecond

// tokens measures the delay from the agent's first token to the first call of Slack, at 1, 50
// and 500 streams at once.
func (a *Agents) tokens(ctx context.Context, b *rig.Bench, d trial.Dialect) error {
	var slow []string
	for _, n := range []int{1, 50, 500} {
		if n > a.most {
			continue
		}
		delays, err := a.firstTokens(ctx, b, d, n)
		if err != nil {
			return err
		}
		b.Printf("%-9s  %3d streams at once  from the agent's first token to the first call of Slack: %v\n", d.Kind, n, delays)
		if delays.P50 > mostP50 || delays.P99 > mostP99 {
			slow = append(slow, fmt.Sprintf("%d streams: p50 must be at most %v, p99 at most %v", n, mostP50, mostP99))
		}
	}
	return trial.Violations(slow)
}

// between is the time between two first tokens, and opening the time that the daemon has to
// open one stream before the first of them.
const between, opening = 20 * time.Millisecond, 10 * time.Millisecond

// firstTokens measures the delays while n answers stream. Their first tokens come one after
// the other, when all streams are open, and no answer ends before the last of them. It leaves
// out direct chats, since a chat is one place for several messages.
func (a *Agents) firstTokens(ctx context.Context, b *rig.Bench, d trial.Dialect, n int) (figure.Times, error) {
	var tokens, calls sync.Map // the first times, by message and by place
	answers := trial.ShortAnswers(0)
	answers.Dialect = d
	answers.First = func(id int) time.Duration {
		return 300*time.Millisecond + time.Duration(n)*opening + time.Duration(id%n)*between
	}
	answers.Duration = func(id int) time.Duration { return 2*time.Second + time.Duration(n-id%n)*between }
	answers.OnFirstToken = func(id int) { tokens.Store(id, time.Now()) }
	onCall := func(call slacktest.Call) {
		if call.Method == "chat.startStream" || call.Method == "chat.postMessage" {
			calls.LoadOrStore(ledger.Place{Channel: call.Form.Get("channel"), Root: call.Form.Get("thread_ts")}, time.Now())
		}
	}
	s := trial.Setup{Model: &answers, Streams: true, Runs: n, Slack: slacktest.Options{OnCall: onCall}}
	t, err := trial.Start(ctx, b, fmt.Sprintf("tokens-%s-%d", d.Kind, n), s)
	if err != nil {
		return figure.Times{}, err
	}
	for sent := 0; sent < a.samples; sent += n {
		trial.Traffic{Trial: t, Conversations: ledger.NewConversations(n), Each: 1, Bare: true}.Run(ctx, nil)
		if left := t.Settle(ctx, sent+n, false, time.Minute); left != "" {
			return figure.Times{}, fmt.Errorf("not answered: %s\n%s", left, t.Nodes.LogTail())
		}
	}
	var all []time.Duration
	for _, m := range t.Ledger.Messages {
		token, said := tokens.Load(m.ID)
		call, shown := calls.Load(m.Place)
		if said && shown && !m.Direct() {
			all = append(all, call.(time.Time).Sub(token.(time.Time)))
		}
	}
	return figure.Summarize(all), t.Finish()
}

// underKills kills the daemon under load. No run may be asked twice, except one whose request
// a kill ended, and each reply must be there once.
func (a *Agents) underKills(ctx context.Context, b *rig.Bench, d trial.Dialect) error {
	answers := trial.LongAnswers()
	answers.Dialect = d
	t, err := trial.Start(ctx, b, "kills-"+d.Kind, trial.Setup{Model: &answers})
	if err != nil {
		return err
	}
	load := trial.Traffic{Trial: t, Conversations: ledger.NewConversations(100), Workers: 16, Rate: a.rate}
	err = trial.During(func(stop <-chan struct{}) { load.Run(ctx, stop) }, func() error {
		return trial.Repeat(ctx, b.Random, a.kills, 2*time.Second, func() error { return t.Nodes.CrashOne(ctx, b.Random) })
	})
	if err != nil {
		return err
	}
	left := t.Settle(ctx, 0, false, 2*time.Minute)
	deaths := t.Nodes.Deaths
	faults, repeated := t.Ledger.AskedTwice(deaths)
	b.Printf("%-9s  %d kills, %d requests, %d of them again after a kill, %d without a reason\n", d.Kind, len(deaths), len(t.Ledger.Requests), repeated, len(faults))
	return t.Finish(append(faults, left)...)
}
