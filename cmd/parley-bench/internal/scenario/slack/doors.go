package slack

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"parley/cmd/parley-bench/internal/figure"
	"parley/cmd/parley-bench/internal/ledger"
	"parley/cmd/parley-bench/internal/rig"
	"parley/cmd/parley-bench/internal/trial"
	"parley/ingest/wake"
)

// Doors attacks the daemon as an unknown caller, beside Slack's own messages.
type Doors struct {
	rate              float64
	lasts             time.Duration
	callers, guessers int
}

func (d *Doors) Define(f *rig.FlagSet) {
	f.Float(&d.rate, "rate", 100, 0.001, "Slack's messages per second beside each attack")
	f.Duration(&d.lasts, "lasts", 5*time.Second, time.Millisecond, "duration of each attack")
	f.Number(&d.callers, "callers", 300, 1, "connections with a body of 1 MiB")
	f.Number(&d.guessers, "guessers", 8, 1, "connections that guess tokens and signatures")
}

const (
	// attackBody is the length of an attacker's body: the largest that a hook takes.
	attackBody = 1 << 20
	// maxAttackGrowth bounds the daemon's further memory during an attack, in bytes: 32 MiB for
	// bodies, and what connections and the garbage collector need.
	maxAttackGrowth = 96e6
	// freeGuesses is the number of failures of an address within a minute that get a 401.
	freeGuesses = 20
)

// attack is one way to attack a daemon. It runs until ctx ends and returns a description.
type attack struct {
	name string
	run  func(ctx context.Context, c *rig.Child) string
}

func (d *Doors) Run(ctx context.Context, b *rig.Bench) error {
	t, err := trial.Start(ctx, b, "parley", trial.Setup{})
	if err != nil {
		return err
	}
	target := t.Nodes.All[0]
	load := trial.Traffic{Trial: t, Conversations: ledger.NewConversations(64), Workers: 16, Rate: d.rate, Bare: true}
	var faults []string
	err = trial.During(func(stop <-chan struct{}) { load.Run(ctx, stop) }, func() error {
		for _, a := range d.attacks() {
			begun := time.Now()
			attacked, end := context.WithTimeout(ctx, d.lasts)
			var group sync.WaitGroup
			var words string
			group.Go(func() { words = a.run(attacked, target) })
			growth := t.Nodes.Growth(attacked)
			group.Wait()
			end()
			var took []time.Duration
			for _, one := range t.Transport.Since(begun) {
				took = append(took, one.Ended.Sub(one.Sent))
			}
			beside := figure.Summarize(took)
			b.Printf("%-12s %s; %s more memory; Slack's answers beside it: %v\n", a.name, words, figure.Megabytes(growth), beside)
			if beside.Max >= rig.SlackTimeout {
				faults = append(faults, fmt.Sprintf("%s: Slack waited %v", a.name, beside.Max))
			}
			if growth > maxAttackGrowth {
				faults = append(faults, a.name+": "+figure.Megabytes(growth)+" more memory")
			}
		}
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	left := t.Settle(ctx, 0, false, time.Minute)
	return t.Finish(append(faults, left)...)
}

func (d *Doors) attacks() []attack {
	now := func() string { return strconv.FormatInt(time.Now().Unix(), 10) }
	forged := func() http.Header {
		return http.Header{"X-Slack-Request-Timestamp": {now()}, "X-Slack-Signature": {"v0=" + strings.Repeat("0", 64)}}
	}
	return []attack{
		{"none", func(ctx context.Context, _ *rig.Child) string { <-ctx.Done(); return "no attack" }},
		{"unsigned", func(ctx context.Context, c *rig.Child) string {
			return d.bodies(ctx, c, func() http.Header { return nil })
		}},
		{"forged", func(ctx context.Context, c *rig.Child) string { return d.bodies(ctx, c, forged) }},
		{"idle", d.idle},
		{"signatures", func(ctx context.Context, c *rig.Child) string {
			return d.guess(ctx, c, http.MethodPost, rig.HookPath, forged)
		}},
		{"tokens", func(ctx context.Context, c *rig.Child) string {
			return d.guess(ctx, c, http.MethodGet, "/api/v1/workspaces/acme/threads", func() http.Header {
				return http.Header{"Authorization": {"Bearer guess-" + strconv.FormatInt(time.Now().UnixNano(), 36)}}
			})
		}},
	}
}

// bodies sends bodies that lack their last byte, on many connections. A closed connection is
// opened again.
func (d *Doors) bodies(ctx context.Context, c *rig.Child, header func() http.Header) string {
	var refused atomic.Int64
	var group sync.WaitGroup
	body := strings.Repeat("x", attackBody-1)
	for range d.callers {
		group.Go(func() {
			for ctx.Err() == nil {
				if sendSlowly(ctx, c.Address, header(), body) {
					refused.Add(1)
				}
				wake.After(ctx, 10*time.Millisecond)
			}
		})
	}
	group.Wait()
	return fmt.Sprintf("%d connections with a body of 1 MiB, closed or refused %d times", d.callers, refused.Load())
}

// sendSlowly sends a body without its last byte and waits. It returns whether the daemon
// answered or closed the connection before ctx ended.
func sendSlowly(ctx context.Context, address string, header http.Header, body string) bool {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return ctx.Err() == nil
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	defer conn.Close()
	var head strings.Builder
	fmt.Fprintf(&head, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n", rig.HookPath, address, attackBody)
	_ = header.Write(&head) // a strings.Builder
	if _, err = io.WriteString(conn, head.String()+"\r\n"+body); err == nil {
		_, _ = conn.Read(make([]byte, 1)) // it ends with the answer or with the connection
	}
	return ctx.Err() == nil
}

// idle opens connections that send nothing.
func (d *Doors) idle(ctx context.Context, c *rig.Child) string {
	var open int
	var worst time.Duration
	for ; ctx.Err() == nil && open < 10*d.callers; open++ {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", c.Address)
		if err != nil {
			break
		}
		defer conn.Close()
	}
	for ctx.Err() == nil {
		begun := time.Now()
		if status, err := c.Get(ctx, "/healthz"); ctx.Err() == nil {
			worst = max(worst, time.Since(begun))
			if err != nil || status != http.StatusOK {
				return fmt.Sprintf("%d idle connections; /healthz answers %d, %v", open, status, err)
			}
		}
		wake.After(ctx, 10*time.Millisecond)
	}
	return fmt.Sprintf("%d idle connections; /healthz within %s", open, figure.Millis(worst))
}

// guess sends wrong credentials as fast as it gets answers.
func (d *Doors) guess(ctx context.Context, c *rig.Child, method, path string, header func() http.Header) string {
	begun := time.Now()
	statuses := map[int]int{}
	var mu sync.Mutex
	var group sync.WaitGroup
	for range d.guessers {
		group.Go(func() {
			for ctx.Err() == nil {
				response, err := c.Request(ctx, method, path, header(), "{}")
				if err != nil {
					continue
				}
				response.Body.Close()
				mu.Lock()
				statuses[response.StatusCode]++
				mu.Unlock()
			}
		})
	}
	group.Wait()
	guessed := 0
	for status, n := range statuses {
		if status != http.StatusTooManyRequests {
			guessed += n
		}
	}
	words := fmt.Sprintf("%.1f guesses a second were compared and answered, by status: %v", float64(guessed)/time.Since(begun).Seconds(), statuses)
	if guessed > freeGuesses {
		words += " (more than 20 of an address within a minute)"
	}
	return words
}
