package adapters_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/adapters"
	"parley/ingest/event"
)

// past is a platform, a store and an inbox, and a workspace that catches up between them.
type past struct {
	*testing.T
	*adapters.CatchUp

	mu       sync.Mutex
	mark     time.Time
	gaps     map[string]event.Gap
	read     []string // what was read: "place from until", in seconds since the beginning
	aside    []string // places with something that is kept aside
	released []string
	said     map[string]int // how many messages were missed, by place
	handed   int
	slow     time.Duration // of reading one place
	marking  time.Duration // of reading the mark
	listing  error
	reading  error
	broken   string // a place that can't be read
	refuses  bool
	begun    time.Time
}

func (p *past) Mark(context.Context, string) (time.Time, error) {
	pass(p.marking)
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mark, nil
}

func (p *past) SetMark(_ context.Context, _ string, mark time.Time, gaps []event.Gap) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, gap := range gaps {
		if known, ok := p.gaps[gap.Place]; ok {
			gap.From = known.From
		}
		p.gaps[gap.Place] = gap
	}
	if mark.After(p.mark) {
		p.mark = mark
	}
	return nil
}

func (p *past) Gaps(context.Context, string) ([]event.Gap, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.SortedFunc(maps.Values(p.gaps), func(a, b event.Gap) int { return len(a.Place) - len(b.Place) }), nil
}

func (p *past) Shrink(_ context.Context, _, place string, to time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	gap := p.gaps[place]
	if gap.From = to; gap.From.Before(gap.Until) {
		p.gaps[place] = gap
	} else {
		delete(p.gaps, place)
	}
	return nil
}

func (p *past) Places(context.Context) ([]string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return []string{"a", "bb", "ccc"}, p.listing
}

func (p *past) Missed(ctx context.Context, gap event.Gap, bounds adapters.Bounds, hand adapters.Hand) (bool, error) {
	pass(p.slow)
	p.mu.Lock()
	n, err := p.said[gap.Place], p.reading
	p.read = append(p.read, fmt.Sprint(gap.Place, " ", p.second(gap.From), " ", p.second(gap.Until)))
	p.mu.Unlock()
	if gap.Place == p.broken {
		err = errors.New("the answer is too long")
	}
	if err != nil {
		return false, err
	}
	for i := range n {
		if _, err := hand(gap.From.Add(time.Duration(i)*time.Microsecond), event.Envelope{}); err != nil {
			return false, err
		}
	}
	return n > bounds.Messages, ctx.Err()
}

func (p *past) second(t time.Time) int { return int(t.Sub(p.begun).Seconds()) }

func (p *past) Accept(context.Context, event.Envelope) (adapters.Receipt, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refuses {
		return adapters.Receipt{}, adapters.ErrBusy
	}
	p.handed++
	return adapters.Receipt{}, nil
}

func (p *past) Hold(context.Context, string, time.Duration) (bool, error) { return true, nil }

func (p *past) Drop(context.Context, string) error { return nil }

// live is a message that comes in at a place; it says whether it was kept aside.
func (p *past) live(place string) bool {
	done, aside := p.Aside(place)
	if aside {
		p.mu.Lock()
		p.aside = append(p.aside, place)
		p.mu.Unlock()
		done()
	}
	return aside
}

func (p *past) letIn(_ context.Context, which func(string) bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.aside = slices.DeleteFunc(p.aside, func(place string) bool {
		if which(place) {
			p.released = append(p.released, fmt.Sprint(place, " ", p.second(time.Now())))
			return true
		}
		return false
	})
	return nil
}

// inPast runs a test in a bubble. The workspace was up an hour ago for the last time,
// unless set says otherwise.
func inPast(t *testing.T, set, test func(p *past)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := &past{T: t, gaps: map[string]event.Gap{}, said: map[string]int{}, begun: time.Now()}
		p.mark = p.begun.Add(-time.Hour)
		config := adapters.DefaultCatchUpConfig()
		p.CatchUp = &adapters.CatchUp{
			Workspace: "acme", Historian: p, Inbox: p, Marks: p, Hold: adapters.Hold{Holds: p}, Release: p.letIn,
			Recent: func(context.Context, string, time.Time, int) ([]event.ThreadKey, error) { return nil, nil },
			Config: func() adapters.CatchUpConfig { return config }, Now: time.Now, Log: slog.New(slog.DiscardHandler),
		}
		if set != nil {
			set(p)
		}
		p.Begin(t.Context())
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { p.CatchUp.Run(ctx) })
		test(p)
		cancel()
		running.Wait()
	})
}

func holds[T any](p *past, what string, got, want T) {
	p.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		p.Errorf("%s: %v, want %v", what, got, want)
	}
}

// seen is what has happened so far.
type seen struct {
	read, released []string
	handed, gaps   int
	mark           time.Time
}

func (p *past) seen() seen {
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return seen{slices.Clone(p.read), slices.Clone(p.released), p.handed, len(p.gaps), p.mark}
}

func TestTheFirstStartReadsNothing(t *testing.T) {
	inPast(t, func(p *past) { p.mark = time.Time{} }, func(p *past) {
		holds(p, "kept aside", p.live("a"), false)
		p.Up()
		synctest.Wait()
		holds(p, "kept aside", p.live("a"), false)
		holds(p, "read", p.seen().read, []string{})
		holds(p, "mark", p.seen().mark, p.begun)
		pass(time.Hour + time.Second)
		p.Up() // after a gap
		holds(p, "read", p.seen().read, []string{"a 3480 3721", "bb 3480 3721", "ccc 3480 3721"})
	})
}

// TestTheFirstGapIsNotMissed: what is said before the first mark is stored may be lost
// with the first connection.
func TestTheFirstGapIsNotMissed(t *testing.T) {
	inPast(t, func(p *past) { p.mark = time.Time{} }, func(p *past) {
		p.marking = 3 * time.Second
		p.Up()
		pass(5 * time.Second)
		holds(p, "mark", p.seen().mark, p.begun)
		p.Up()
		pass(5 * time.Second)
		holds(p, "read", p.seen().read[0], "a 0 128")
	})
}

// TestBesideOthersNothingWaits: what was missed is read, and what comes in goes on as it
// does there; but what has waited before goes first.
func TestBesideOthersNothingWaits(t *testing.T) {
	others := true
	set := func(p *past) {
		p.slow, p.said = time.Second, map[string]int{"a": 1}
		p.Others = func() bool { return others }
	}
	inPast(t, set, func(p *past) {
		holds(p, "kept aside", p.live("a"), false)
		p.Up()
		synctest.Wait()
		holds(p, "kept aside", p.live("a"), false)
		pass(10 * time.Second)
		holds(p, "read", p.seen().read, []string{"a -3600 120", "bb -3600 120", "ccc -3600 120"})
		others = false
		p.Up()
		holds(p, "kept aside alone", p.live("a"), true)
		others = true
		p.Up()
		holds(p, "kept aside behind that", p.live("a"), true)
	})
}

func TestEachPlaceIsReadFromTheMark(t *testing.T) {
	inPast(t, func(p *past) { p.said = map[string]int{"a": 7, "ccc": 2000} }, func(p *past) {
		p.Up()
		holds(p, "read", p.seen().read, []string{"a -3600 120", "bb -3600 120", "ccc -3600 120"})
		holds(p, "handed over", p.seen().handed, 2007)
		holds(p, "gaps", p.seen().gaps, 0)
		holds(p, "mark", p.seen().mark, p.begun)
	})
}

func TestNoFurtherBackThanItsAge(t *testing.T) {
	inPast(t, func(p *past) { p.mark = p.begun.Add(-1000 * time.Hour) }, func(p *past) {
		p.Up()
		holds(p, "read", p.seen().read[0], "a -86400 120")
	})
}

func TestSwitchedOffItReadsNothing(t *testing.T) {
	off := func(p *past) {
		p.Config = func() adapters.CatchUpConfig { return adapters.CatchUpConfig{Messages: 1} }
		p.aside = []string{"a"} // before it was
	}
	inPast(t, off, func(p *past) {
		p.Up()
		holds(p, "kept aside", p.live("a"), false)
		holds(p, "read", p.seen().read, []string{})
		holds(p, "let in", p.seen().released, []string{"a 0"})
	})
}

// TestWhatComesInWaitsForItsPlace, which is read first, and for no other.
func TestWhatComesInWaitsForItsPlace(t *testing.T) {
	inPast(t, func(p *past) { p.slow = 3 * time.Second }, func(p *past) {
		holds(p, "before it is known where", p.live("elsewhere"), true)
		p.Up()
		synctest.Wait()
		holds(p, "let in", p.seen().released, []string{"elsewhere 0"})
		holds(p, "in a place that is read", p.live("ccc"), true)
		holds(p, "elsewhere", p.live("elsewhere"), false)
		pass(7 * time.Second)
		holds(p, "read", p.seen().read, []string{"a -3600 120", "ccc -3600 120"})
		holds(p, "let in", p.seen().released, []string{"elsewhere 0", "ccc 6"})
		holds(p, "in a place that was read", p.live("ccc"), false)
		holds(p, "in one that was not", p.live("bb"), true)
	})
}

// TestWhoHasWaitedLongestIsNext, wherever that is.
func TestWhoHasWaitedLongestIsNext(t *testing.T) {
	inPast(t, func(p *past) { p.slow = 3 * time.Second }, func(p *past) {
		p.Up()
		synctest.Wait()
		p.live("ccc")
		pass(time.Second)
		p.live("bb")
		pass(6 * time.Second)
		holds(p, "read", p.seen().read, []string{"a -3600 120", "ccc -3600 120"})
		pass(3 * time.Second)
		holds(p, "let in", p.seen().released, []string{"ccc 6", "bb 9"})
	})
}

// TestNobodyWaitsForLong: for minutes while what was said before is being read, and
// for seconds where that fails, or can't begin.
func TestNobodyWaitsForLong(t *testing.T) {
	inPast(t, func(p *past) { p.slow = time.Hour }, func(p *past) {
		p.Up()
		pass(time.Second)
		p.live("bb")
		pass(4 * time.Minute)
		holds(p, "let in early", p.seen().released, []string{})
		pass(time.Minute + time.Second)
		holds(p, "let in", p.seen().released, []string{"bb 301"})
		holds(p, "what comes then", p.live("bb"), false)
		holds(p, "what comes elsewhere", p.live("ccc"), true)
	})
	inPast(t, func(p *past) { p.reading = errors.New("the platform is down") }, func(p *past) {
		p.Up()
		pass(time.Second)
		p.live("bb")
		pass(11 * time.Second)
		holds(p, "let in", p.seen().released, []string{"bb 11"})
	})
	inPast(t, nil, func(p *past) { // it never comes up
		p.live("bb")
		pass(11 * time.Second)
		holds(p, "let in", p.seen().released, []string{"bb 10"})
		holds(p, "what comes then", p.live("bb"), false)
	})
}

// TestTheMarkMovesWhileEverythingComesIn, and not while nothing may.
func TestTheMarkMovesWhileEverythingComesIn(t *testing.T) {
	inPast(t, nil, func(p *past) {
		p.Up()
		pass(155 * time.Second)
		holds(p, "mark", p.second(p.seen().mark), 30)
		p.Down()
		pass(time.Hour)
		holds(p, "mark, later", p.second(p.seen().mark), 30)
		p.Up()
		holds(p, "read", p.seen().read[3], "a 30 3875")
	})
}

func TestWhatWasRefusedIsRead(t *testing.T) {
	inPast(t, nil, func(p *past) {
		p.Up()
		pass(6*time.Minute + time.Second)
		p.Refused()
		pass(5 * time.Second)
		p.Refused()
		pass(9 * time.Second)
		holds(p, "too early", len(p.seen().read), 3)
		holds(p, "mark", p.second(p.seen().mark), 240)
		pass(20 * time.Second)
		holds(p, "read", p.seen().read[3:], []string{"a 240 500", "bb 240 500", "ccc 240 500"})
		pass(time.Minute)
		holds(p, "mark", p.second(p.seen().mark) > 260, true)
	})
}

// TestACrashGoesOnWhereItWas: a gap begins behind what was handed over.
func TestACrashGoesOnWhereItWas(t *testing.T) {
	inPast(t, func(p *past) { p.said["a"], p.refuses = 250, true }, func(p *past) {
		p.Up()
		pass(30 * time.Second)
		holds(p, "handed over without custody", p.seen().handed, 0)
		p.mu.Lock()
		p.refuses = false
		p.mu.Unlock()
		pass(2 * time.Second)
		holds(p, "handed over", p.seen().handed, 250)
	})
	inPast(t, func(p *past) { p.said["a"] = 250 }, func(p *past) {
		p.reading = errors.New("the platform is down")
		p.Up()
		pass(time.Second / 2)
		holds(p, "tried", len(p.seen().read), 3)
		holds(p, "gaps", p.seen().gaps, 3)
		p.mu.Lock()
		p.reading = nil
		p.mu.Unlock()
		pass(time.Second)
		holds(p, "gaps", p.seen().gaps, 0)
		holds(p, "handed over", p.seen().handed, 250)
	})
}

// TestWhatCantBeReadHoldsUpNobody: a place, or all of them.
func TestWhatCantBeReadHoldsUpNobody(t *testing.T) {
	refused := &adapters.RefusedError{Err: errors.New("not_in_channel"), Hint: "invite the bot"}
	inPast(t, func(p *past) { p.reading = refused }, func(p *past) {
		p.Up()
		holds(p, "read", len(p.seen().read), 3)
		holds(p, "gaps", p.seen().gaps, 0)
		holds(p, "kept aside", p.live("a"), false)
	})
	inPast(t, func(p *past) { p.listing = refused }, func(p *past) {
		p.live("a")
		p.Up()
		holds(p, "read", len(p.seen().read), 0)
		holds(p, "let in", p.seen().released, []string{"a 0"})
		holds(p, "mark", p.seen().mark, p.begun)
	})
	inPast(t, func(p *past) { p.listing = errors.New("no route") }, func(p *past) {
		p.Up()
		pass(20 * time.Second)
		holds(p, "mark", p.second(p.seen().mark), -3600)
		p.mu.Lock()
		p.listing = nil
		p.mu.Unlock()
		pass(20 * time.Second)
		holds(p, "read", len(p.seen().read), 3)
	})
}

// TestAPlaceThatFailsHoldsUpNoOther, and is tried again.
func TestAPlaceThatFailsHoldsUpNoOther(t *testing.T) {
	inPast(t, func(p *past) { p.broken, p.said["ccc"] = "a", 5 }, func(p *past) {
		p.Up()
		holds(p, "handed over", p.seen().handed, 5)
		holds(p, "gaps", p.seen().gaps, 1)
		pass(time.Minute)
		tries := len(p.seen().read)
		if tries < 5 || tries > 12 {
			p.Errorf("read %v", p.seen().read)
		}
		holds(p, "gaps", p.seen().gaps, 1)
	})
}

func TestCatchUpConfigIsChecked(t *testing.T) {
	for _, c := range []adapters.CatchUpConfig{{MaxAge: -1, Messages: 1}, {MaxAge: 8 * 24 * time.Hour, Messages: 1}, {Messages: 0}, {Messages: 10_001}} {
		if len(c.Validate()) != 1 {
			t.Errorf("%+v: %v", c, c.Validate())
		}
	}
	if faults := adapters.DefaultCatchUpConfig().Validate(); faults != nil {
		t.Error(faults)
	}
}
