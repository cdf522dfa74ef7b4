package deliver_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/adapters"
	"parley/adapters/deliver"
)

// stuck is a chat whose calls hang while it is stuck.
type stuck struct {
	honest
	stuck atomic.Bool
	calls atomic.Int64 // in progress
	most  atomic.Int64 // at once since the last look
}

func (s *stuck) Send(ctx context.Context, post adapters.Post) (string, error) {
	if !s.stuck.Load() {
		return s.honest.Send(ctx, post)
	}
	return "", s.hang(ctx)
}

func (s *stuck) Find(ctx context.Context, post adapters.Post) (string, bool, error) {
	if !s.stuck.Load() {
		return s.honest.Find(ctx, post)
	}
	return "", false, s.hang(ctx)
}

func (s *stuck) hang(ctx context.Context) error {
	s.most.Store(max(s.most.Load(), s.calls.Add(1)))
	defer s.calls.Add(-1)
	<-ctx.Done()
	return &adapters.SendError{Failure: adapters.Unclear, Err: errors.New("no answer")}
}

// TestAPlatformThatHangsDelaysOnlyItsWorkspace covers more threads than workers.
func TestAPlatformThatHangsDelaysOnlyItsWorkspace(t *testing.T) {
	withOutbox(t, func(o *fixture) {
		hung := &stuck{honest: honest{&chat{faults: map[string][]fault{}}}}
		hung.stuck.Store(true)
		platform := o.platform
		platform.Sender = hung
		o.others = map[string]deliver.Platform{"hung": platform}
		o.send()
		const threads = 600
		o.workspace = "hung"
		for n := range threads {
			o.reply(fmt.Sprint("h", n), fmt.Sprint("h", n))
		}
		o.workspace = "acme"
		for n := range 10 {
			text := fmt.Sprint("a", n)
			said := time.Since(epoch)
			o.reply(text, text)
			advance(7 * time.Second)
			synctest.Wait()
			if at := o.chat.times(text); len(at) != 1 || at[0]-said > 200*time.Millisecond {
				t.Errorf("said after %v, sent after %v", said, at)
			}
		}
		hung.most.Store(0)
		advance(time.Minute)
		same(t, "calls at once during the rest", hung.most.Load(), int64(1))
		hung.stuck.Store(false)
		advance(10 * time.Minute)
		synctest.Wait()
		same(t, "posts after it", len(hung.texts()), threads)
	})
}

// TestSeveralPlatformsThatHangLeaveWorkers for the other workspaces.
func TestSeveralPlatformsThatHangLeaveWorkers(t *testing.T) {
	withOutbox(t, func(o *fixture) {
		hung := &stuck{honest: honest{&chat{faults: map[string][]fault{}}}}
		hung.stuck.Store(true)
		platform := o.platform
		platform.Sender = hung
		o.others = map[string]deliver.Platform{"one": platform, "two": platform, "three": platform}
		o.send()
		for workspace := range o.others {
			o.workspace = workspace
			for n := range 200 {
				o.reply(fmt.Sprint(workspace, n), "h")
			}
		}
		o.workspace = "acme"
		o.reply("a", "a")
		synctest.Wait()
		same(t, "posts", o.chat.texts(), []string{"a"})
	})
}
