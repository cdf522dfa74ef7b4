package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"parley/ingest/wake"
)

// freeze locks the daemon's store under load.
type freeze struct {
	connections int
	rate        float64
	hold, drain time.Duration
}

func (z *freeze) define(f *flagSet) {
	f.number(&z.connections, "connections", 64, 1, "Slack's connections to the hook")
	f.float(&z.rate, "rate", 300, 0.001, "messages per second")
	f.duration(&z.hold, "hold", 10*time.Second, time.Millisecond, "time for which the store is locked")
	f.duration(&z.drain, "drain", time.Minute, 0, "time limit for the remaining work")
}

const (
	// maxGrowth bounds the daemon's further memory during the lock, in bytes.
	maxGrowth = 50e6
	// recoverWithin bounds the time until the daemon accepts a message after the lock.
	recoverWithin = 3 * time.Second
	// around is the duration of the load before the lock, and after it.
	around = 3 * time.Second
)

func (z *freeze) run(ctx context.Context, b *bench) error {
	t, err := b.startTrial(ctx, "parley", setup{})
	if err != nil {
		return err
	}
	load := traffic{trial: t, conversations: newConversations(10 * z.connections), workers: z.connections, rate: z.rate, bare: true}
	var frozen, thawed time.Time
	var growth int64
	err = during(func(stop <-chan struct{}) { load.run(ctx, stop) }, func() (err error) {
		wake.After(ctx, around)
		frozen, thawed, growth, err = z.lock(ctx, t)
		wake.After(ctx, around)
		return errors.Join(err, ctx.Err())
	})
	if err != nil {
		return err
	}
	left := t.settle(ctx, 0, false, z.drain)
	statuses, during, recovery, faults := checkAnswers(t.transport.since(time.Time{}), frozen, thawed)
	b.printf("answers during the lock, by status: %v; %v\n", statuses, during)
	b.printf("%s more memory during the lock; first message accepted %v after the lock\n", megabytes(growth), recovery.Round(time.Millisecond))
	if growth > maxGrowth {
		faults = append(faults, megabytes(growth)+" more memory during the lock")
	}
	return t.finish(append(faults, left)...)
}

// lock holds the write lock of the daemon's store for a time, and returns the begin and
// the end of that time and the growth of the daemon's memory.
func (z *freeze) lock(ctx context.Context, t *trial) (frozen, thawed time.Time, growth int64, err error) {
	conn, err := t.nodes.store.Conn(ctx)
	if err != nil {
		return frozen, thawed, 0, fmt.Errorf("open the daemon's store: %w", err)
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return frozen, thawed, 0, fmt.Errorf("lock the daemon's store: %w", err)
	}
	frozen = time.Now()
	held, cancel := context.WithTimeout(ctx, z.hold)
	defer cancel()
	growth = t.nodes.growth(held)
	status, readyErr := t.nodes.all[0].get(ctx, "/readyz")
	t.printf("/readyz at the end of the lock: %d\n", status)
	_, err = conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
	return frozen, time.Now(), growth, errors.Join(readyErr, err)
}

// checkAnswers compares the answers around a lock with the promises. It returns the
// number of events that were sent and answered during the lock, by status, the times of
// these answers, the time from the end of the lock to the next accepted message, and a
// description of each broken promise.
func checkAnswers(attempts []attempt, frozen, thawed time.Time) (statuses map[int]int, during times, recovery time.Duration, faults []string) {
	statuses, recovery = map[int]int{}, 24*time.Hour // longer than any run
	var durations []time.Duration
	for _, try := range attempts {
		took := try.ended.Sub(try.sent)
		if try.sent.After(frozen) && try.ended.Before(thawed) {
			statuses[try.status]++
			durations = append(durations, took)
		}
		if try.status == http.StatusOK && try.ended.After(thawed) {
			recovery = min(recovery, try.ended.Sub(thawed))
		}
		if took >= slackTimeout {
			faults = append(faults, fmt.Sprintf("an answer took %v", took))
		}
	}
	if statuses[http.StatusServiceUnavailable] == 0 || len(statuses) != 1 {
		faults = append(faults, fmt.Sprintf("answers during the lock, by status, should all be 503: %v", statuses))
	}
	if recovery > recoverWithin {
		faults = append(faults, fmt.Sprintf("no message was accepted within %v of the end of the lock", recoverWithin))
	}
	return statuses, summarize(durations), recovery, faults
}
