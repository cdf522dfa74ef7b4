package adapters_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"parley/adapters"
	"parley/ingest/event"
)

// register is a platform with a user directory.
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

func (r *register) LookupMention(_ context.Context, in, token string) (string, error) {
	name := token + " in " + in
	r.asked[name]++
	return fmt.Sprint(name, ": ", r.asked[name]), nil
}

func user(t *testing.T, names *adapters.Names, id string) string {
	t.Helper()
	u, ok := names.User(t.Context(), id)
	if !ok {
		return "(unknown)"
	}
	return u.DisplayName
}

func TestNamesAreCachedForAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		names := adapters.NewNames(&register{asked: map[string]int{}})
		for _, step := range []struct {
			after time.Duration
			want  string
		}{{0, "U1 1"}, {59 * time.Minute, "U1 1"}, {time.Minute, "U1 2"}, {time.Minute, "U1 2"}} {
			advance(step.after)
			if got := user(t, names, "U1"); got != step.want {
				t.Errorf("%v later: %q, want %q", step.after, got, step.want)
			}
		}
	})
}

func TestAFailedLookupIsRepeated(t *testing.T) {
	r := &register{asked: map[string]int{}, fails: errors.New("the platform is down")}
	names := adapters.NewNames(r)
	if got := user(t, names, "U1"); got != "(unknown)" {
		t.Errorf("during the outage: %q", got)
	}
	r.fails = nil
	if got := user(t, names, "U1"); got != "U1 2" {
		t.Errorf("after the outage: %q", got)
	}
}

// TestAnUnknownUserIsAskedForAgain checks that the answer that a platform has no name is used for
// a minute.
func TestAnUnknownUserIsAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &register{asked: map[string]int{}, fails: fmt.Errorf("look up U1: %w", adapters.ErrNoName)}
		names := adapters.NewNames(r)
		for range 3 {
			if got := user(t, names, "U1"); got != "(unknown)" || r.asked["U1"] != 1 {
				t.Errorf("%q after %d lookups", got, r.asked["U1"])
			}
		}
		r.fails = nil
		advance(time.Minute)
		if got := user(t, names, "U1"); got != "U1 2" {
			t.Errorf("a minute later: %q", got)
		}
	})
}

func TestALookupTakesAtMostOneSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		names := adapters.NewNames(&register{asked: map[string]int{}, slow: true})
		begun := time.Now()
		if got := user(t, names, "U1"); got != "(unknown)" || time.Since(begun) != time.Second {
			t.Errorf("%q after %v", got, time.Since(begun))
		}
	})
}

// TestNamesAreBounded proves that the cache drops unused names and keeps used ones.
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
		t.Errorf("%d lookups of the used name, %d of the unused one", r.asked["used"], r.asked["once"])
	}
}

// TestNamesWithoutNamer proves that a platform without a directory knows no name.
func TestNamesWithoutNamer(t *testing.T) {
	names := adapters.NewNames(nil)
	if user(t, names, "U1") != "(unknown)" {
		t.Error("a name is known without a Namer")
	}
}

// advance moves the bubble's clock on by d.
func advance(d time.Duration) { <-time.After(d) }

// TestMentionsAreCachedByChannel: whether people may know a name depends on the channel.
func TestMentionsAreCachedByChannel(t *testing.T) {
	r := &register{asked: map[string]int{}}
	names := adapters.NewNames(r)
	for _, want := range []string{"<#C1> in C2: 1", "<#C1> in C2: 1", "<#C1> in C3: 1"} {
		if got, known := names.Mention(t.Context(), want[9:11], "<#C1>"); got != want || !known {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if _, known := adapters.NewNames(nil).Mention(t.Context(), "C2", "<#C1>"); known {
		t.Error("a name is known without a Namer")
	}
}

// TestLookupsRestWhileThePlatformHangs checks that messages do not wait for names, each for a second, and that one
// lookup at a time tells whether the platform answers again.
func TestLookupsRestWhileThePlatformHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		platform := &register{asked: map[string]int{}, slow: true}
		names := adapters.NewNames(platform)
		for i := range 5 {
			user(t, names, fmt.Sprint("U", i))
			cut, cancel := context.WithCancel(t.Context()) // a look whose caller cannot wait tells nothing
			cancel()
			if u, known := names.User(cut, fmt.Sprint("U", i)); known {
				t.Errorf("%+v is known", u)
			}
			if len(platform.asked) != i+1 {
				t.Errorf("%d were looked up, want %d", len(platform.asked), i+1)
			}
		}
		begun := time.Now()
		for i := range 100 {
			user(t, names, fmt.Sprint("V", i))
		}
		if waited := time.Since(begun); waited != 0 || len(platform.asked) != 5 {
			t.Errorf("100 names took %v after 5 lookups without an answer; %d were looked up", waited, len(platform.asked))
		}
		advance(5 * time.Second)
		begun = time.Now()
		for i := range 100 {
			user(t, names, fmt.Sprint("W", i))
		}
		if waited := time.Since(begun); waited != time.Second || len(platform.asked) != 6 {
			t.Errorf("100 names took %v after the rest; %d were looked up", waited, len(platform.asked))
		}
		platform.slow = false
		advance(5 * time.Second)
		for _, id := range []string{"X1", "X2"} {
			if got := user(t, names, id); got != id+" 1" {
				t.Errorf("%s is %q once the platform answers", id, got)
			}
		}
	})
}

// LookupPlace implements adapters.PlaceNamer.
func (r *register) LookupPlace(_ context.Context, channel string) (event.Place, error) {
	r.asked[channel]++
	return event.Place{Channel: fmt.Sprint(channel, " ", r.asked[channel])}, nil
}

// keeper is a platform that reports the changes of one channel.
type keeper struct {
	register
	changes int
}

// KnownPlace implements adapters.PlaceKeeper.
func (k *keeper) KnownPlace(channel string) (event.Place, bool) {
	k.changes++
	return event.Place{Channel: fmt.Sprint("change ", k.changes)}, channel == "C1"
}

// TestPlacesAreCachedForAMinute, unless the platform reports their changes.
func TestPlacesAreCachedForAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		names := adapters.NewNames(&register{asked: map[string]int{}})
		for _, step := range []struct {
			after time.Duration
			want  string
		}{{0, "C1 1"}, {59 * time.Second, "C1 1"}, {time.Second, "C1 2"}} {
			advance(step.after)
			if got, known := names.Place(t.Context(), "C1"); got.Channel != step.want || !known {
				t.Errorf("%v later: %+v, want %q", step.after, got, step.want)
			}
		}
	})
	names := adapters.NewNames(&keeper{register: register{asked: map[string]int{}}})
	for _, want := range []string{"change 1", "change 2"} {
		if got, known := names.Place(t.Context(), "C1"); got.Channel != want || !known {
			t.Errorf("%+v, want %q", got, want)
		}
	}
	if got, known := names.Place(t.Context(), "C2"); got.Channel != "C2 1" || !known {
		t.Errorf("a channel without reports is %+v", got)
	}
	if _, known := adapters.NewNames(nil).Place(t.Context(), "C1"); known {
		t.Error("a place is known without a Namer")
	}
}
