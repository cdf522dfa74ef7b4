package adapters_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"parley/adapters"
)

// register is a platform that can be asked for names.
type register struct {
	asked map[string]int
	fails error
	slow  bool
}

func (r *register) LookupUser(ctx context.Context, id string) (adapters.User, error) {
	r.asked[id]++
	if r.slow {
		<-ctx.Done()
		return adapters.User{}, ctx.Err()
	}
	return adapters.User{DisplayName: fmt.Sprint(id, " ", r.asked[id])}, r.fails
}

func user(t *testing.T, names *adapters.Names, id string) string {
	t.Helper()
	u, ok := names.User(t.Context(), id)
	if !ok {
		return "(unknown)"
	}
	return u.DisplayName
}

func TestNamesAreBelievedForAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		names := adapters.NewNames(&register{asked: map[string]int{}})
		for _, step := range []struct {
			after time.Duration
			want  string
		}{{0, "U1 1"}, {59 * time.Minute, "U1 1"}, {time.Minute, "U1 2"}, {time.Minute, "U1 2"}} {
			pass(step.after)
			if got := user(t, names, "U1"); got != step.want {
				t.Errorf("after %v more: %q, want %q", step.after, got, step.want)
			}
		}
	})
}

// TestANameThatCouldNotBeHadIsAskedForAgain.
func TestANameThatCouldNotBeHadIsAskedForAgain(t *testing.T) {
	r := &register{asked: map[string]int{}, fails: errors.New("the platform is down")}
	names := adapters.NewNames(r)
	if got := user(t, names, "U1"); got != "(unknown)" {
		t.Errorf("while it is down: %q", got)
	}
	r.fails = nil
	if got := user(t, names, "U1"); got != "U1 2" {
		t.Errorf("when it is back: %q", got)
	}
}

// TestANameIsWaitedForOneSecond.
func TestANameIsWaitedForOneSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		names := adapters.NewNames(&register{asked: map[string]int{}, slow: true})
		begun := time.Now()
		if got := user(t, names, "U1"); got != "(unknown)" || time.Since(begun) != time.Second {
			t.Errorf("%q after %v", got, time.Since(begun))
		}
	})
}

// TestNamesAreBounded: what nobody asks for is forgotten, what is used is kept.
func TestNamesAreBounded(t *testing.T) {
	r := &register{asked: map[string]int{}}
	names := adapters.NewNames(r)
	user(t, names, "once")
	for i := range 25_000 {
		user(t, names, "used")
		user(t, names, fmt.Sprint(i))
	}
	user(t, names, "once")
	if r.asked["used"] != 1 || r.asked["once"] != 2 {
		t.Errorf("asked for the one in use %d times, for the other %d times", r.asked["used"], r.asked["once"])
	}
}

// TestNobodyToAsk: a platform without a directory knows no name.
func TestNobodyToAsk(t *testing.T) {
	names := adapters.NewNames(nil)
	if user(t, names, "U1") != "(unknown)" {
		t.Error("a name came from nowhere")
	}
}

// pass lets the bubble's clock go on by d: nothing waits in real time.
func pass(d time.Duration) { <-time.After(d) }
