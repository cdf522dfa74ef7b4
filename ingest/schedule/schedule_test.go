package schedule_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/adapters"
	"parley/ingest/event"
	"parley/ingest/journal"
	"parley/ingest/journal/postgres"
	"parley/ingest/journal/postgres/postgrestest"
	"parley/ingest/journal/schedules"
	"parley/ingest/journal/sqlite"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
	"parley/ingest/schedule"
)

// clock is the clock of a test.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = t
}

// world is the surroundings of the services of a test: intake, which takes each question once, and the places.
type world struct {
	mu    sync.Mutex
	asked map[string]event.Internal // by id
	puts  int
	lost  int                      // so many questions are stored, and their acknowledgement is lost
	away  map[string]chan struct{} // channels whose platform answers when they are closed
	ended []string
}

func newWorld() *world {
	return &world{asked: map[string]event.Internal{}, away: map[string]chan struct{}{}}
}

func (w *world) Put(_ context.Context, _ event.Platform, workspace string, m event.Internal) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.puts++
	id := workspace + "/" + m.ID
	if before, known := w.asked[id]; known && before.PlannedAt != m.PlannedAt {
		return errors.New("another question with the id " + id)
	}
	w.asked[id] = m
	if w.lost > 0 {
		w.lost--
		return errors.New("the connection is lost")
	}
	return nil
}

func (w *world) Spot(ctx context.Context, workspace string, to adapters.Target, post string) (adapters.Spot, error) {
	w.mu.Lock()
	away := w.away[to.Channel]
	w.mu.Unlock()
	if away != nil {
		select {
		case <-away:
		case <-ctx.Done():
		}
		return adapters.Spot{}, adapters.ErrBusy
	}
	s := adapters.Spot{Platform: event.Slack, Channel: to.Channel + to.User, Agent: "helper"}
	switch {
	case to.Channel == "CGONE":
		return s, event.FieldErrors{{Field: "to.channel", Message: "is gone"}}
	case to.User != "":
		s.Thread = event.ThreadKey("slack:" + workspace + ":" + to.User)
	case post != "":
		s.Thread = event.ThreadKey("slack:" + workspace + ":" + post)
	}
	return s, nil
}

func (w *world) People(_ context.Context, _ string, thread threads.Thread) (event.ThreadKey, error) {
	return thread.Key, nil
}

func (w *world) TickEnded(workspace string, result schedules.Result) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = append(w.ended, workspace+" "+string(result))
}

// texts returns the questions with their threads, in order.
func (w *world) texts() (list []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, m := range w.asked {
		thread := string(m.Thread)
		if event.IsTick(m.Thread) {
			thread = "own"
			if m.Thread != event.TickThread(m.ID) {
				thread = "another's: " + id
			}
		}
		list = append(list, fmt.Sprintf("%s %s %s %s %s", m.PlannedAt.UTC().Format("15:04"), m.Schedule, thread, m.Agent, m.Text))
	}
	slices.Sort(list)
	return list
}

// node returns a service on a store.
func (w *world) node(engine storage.Engine, name string, c *clock) (*schedule.Service, *journal.Journal) {
	j := journal.New(engine, journal.Options{Node: name, Now: c.Now})
	return schedule.New(schedule.Parts{
		Schedules: j.Schedules, Threads: j.Threads, Inbox: w, Places: w, Observer: w, Serves: func() []string { return []string{"acme", "beta"} },
		Zone: func(string) string { return "Europe/Vienna" }, Log: slog.New(slog.DiscardHandler), Now: c.Now,
	}), j
}

// stores runs a test on both engines.
func stores(t *testing.T, test func(t *testing.T, open func() storage.Engine)) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, func() storage.Engine {
			engine, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "s.db"), sqlite.Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = engine.Close() })
			return engine
		})
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		schema := postgrestest.Schema(t, postgrestest.URL(t))
		test(t, func() storage.Engine {
			engine, err := postgres.Open(t.Context(), postgres.Options{URL: schema, Connections: 4})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = engine.Close() })
			return engine
		})
	})
}

var morning = time.Date(2026, 3, 2, 7, 59, 30, 0, time.UTC) // in Vienna it is an hour later

func at(id, channel string, change func(*schedule.Config)) schedule.Config {
	c := schedule.Config{ID: id, Cron: "0 9 * * *", To: schedule.To{Channel: channel}, Prompt: "hi"}
	if change != nil {
		change(&c)
	}
	return c
}

// TestQuestions: each schedule asks once in its place. One whose channel is away or gone stops no other.
func TestQuestions(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, open func() storage.Engine) {
		w, c := newWorld(), &clock{now: morning}
		w.away["CAWAY"] = make(chan struct{})
		s, j := w.node(open(), "a", c)
		list := []schedule.Config{
			at("room", "C1", nil), at("away", "CAWAY", nil), at("gone", "CGONE", nil), at("off", "C1", func(c *schedule.Config) { c.Paused = true }),
			at("person", "", func(c *schedule.Config) { c.To.User, c.Agent = "U1", "coder" }), at("tokyo", "C1", func(c *schedule.Config) { c.TimeZone = "Asia/Tokyo" }),
		}
		if err := s.Configure(t.Context(), "acme", "Europe/Vienna", list); err != nil {
			t.Fatal(err)
		}
		s.Tend(t.Context())
		c.set(morning.Add(30 * time.Second))
		s.Tend(t.Context()) // while the platform of one channel hangs
		for len(w.texts()) < 2 {
			select {
			case <-t.Context().Done():
				t.Fatal("the others wait")
			case <-time.After(time.Millisecond):
			}
		}
		close(w.away["CAWAY"])
		s.Wait()
		want := []string{"08:00 person slack:acme:U1 coder hi", "08:00 room own helper hi"}
		if diff := cmp.Diff(want, w.texts()); diff != "" {
			t.Errorf("questions (-want +got):\n%s", diff)
		}
		status, err := j.Schedules.ScheduleStatus(t.Context(), "acme", "gone")
		if err != nil || status.LastResult != schedules.Failed || status.LastError == "" {
			t.Errorf("%v %+v", err, status)
		}
		delete(w.away, "CAWAY")
		c.set(c.Now().Add(time.Minute))
		s.Tend(t.Context())
		s.Wait()
		if diff := cmp.Diff(append([]string{"08:00 away own helper hi"}, want...), w.texts()); diff != "" {
			t.Errorf("questions after the channel came back (-want +got):\n%s", diff)
		}
		w.away["CAWAY"] = make(chan struct{})
		close(w.away["CAWAY"])
		c.set(morning.Add(24*time.Hour + 30*time.Second))
		for n := range 64 { // however long ago its time is
			if status, err = j.Schedules.ScheduleStatus(t.Context(), "acme", "away"); err != nil || n > 0 && n < 62 && status.LastResult == schedules.Failed {
				t.Fatalf("after %d tries: %v %+v", n, err, status)
			}
			s.Tend(t.Context())
			s.Wait()
			c.set(c.Now().Add(2 * time.Minute))
		}
		if status, err = j.Schedules.ScheduleStatus(t.Context(), "acme", "away"); err != nil || status.LastResult != schedules.Failed {
			t.Errorf("a channel that stays away: %v %+v", err, status)
		}
		if !slices.Contains(w.ended, "acme failed") {
			t.Errorf("the metrics have %v", w.ended)
		}
	})
}

// TestPlacesThatHang: they delay no other workspace, nor what was not tried yet, and each time has its row.
func TestPlacesThatHang(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, open func() storage.Engine) {
		w, c := newWorld(), &clock{now: morning}
		s, j := w.node(open(), "a", c)
		list := []schedule.Config{at("later", "C1", func(c *schedule.Config) { c.Cron = "1 9 * * *" })}
		for n := range 100 {
			list = append(list, at(fmt.Sprintf("away-%03d", n), "CAWAY", nil))
		}
		for workspace, list := range map[string][]schedule.Config{"acme": list, "beta": {at("room", "C2", nil)}} {
			if err := s.Configure(t.Context(), workspace, "Europe/Vienna", list); err != nil {
				t.Fatal(err)
			}
		}
		for n, want := range []string{"08:00 room own helper hi", "08:01 later own helper hi"} {
			hangs := make(chan struct{})
			w.mu.Lock()
			w.away["CAWAY"] = hangs
			w.mu.Unlock()
			c.set(morning.Add(30*time.Second + time.Duration(n)*time.Minute))
			s.Tend(t.Context())
			for !slices.Contains(w.texts(), want) {
				select {
				case <-t.Context().Done():
					t.Fatalf("%q waits for the others", want)
				case <-time.After(time.Millisecond):
				}
			}
			for n := range 100 {
				status, err := j.Schedules.ScheduleStatus(t.Context(), "acme", fmt.Sprintf("away-%03d", n))
				if err != nil || !status.LastAt.Equal(morning.Add(30*time.Second)) {
					t.Fatalf("%v %+v", err, status)
				}
			}
			close(hangs)
			s.Wait()
			s.Tend(t.Context()) // the other first tries
			s.Wait()
		}
		status, err := j.Schedules.ScheduleStatus(t.Context(), "acme", "away-000")
		if err != nil || strings.Contains(status.LastError, "store") || status.LastError == "" {
			t.Errorf("%v %+v", err, status)
		}
	})
}

// TestAClockThatLed: after the clock was set back, also while the process runs, the schedules of files and of threads ask by the
// clock that is right, and a time that was asked is not asked again.
func TestAClockThatLed(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, open func() storage.Engine) {
		w, c := newWorld(), &clock{now: morning.Add(3 * time.Hour)}
		s, j := w.node(open(), "a", c)
		ctx := t.Context()
		thread := threads.Thread{Key: "slack:acme:C1:1.1", Workspace: "acme"}
		id, err := j.Threads.ThreadID(ctx, thread.Key)
		if err != nil {
			t.Fatal(err)
		}
		if thread.ID = id; j.Recorder.OpenUnder(ctx, thread, event.Slack, "C1", "C1/1.1", "") != nil {
			t.Fatal("the thread is not stored")
		}
		hourly := func(c *schedule.Config) { c.Cron, c.TimeZone = "0 * * * *", "UTC" }
		if err := s.Configure(ctx, "acme", "UTC", []schedule.Config{at("file", "C1", hourly), at("away", "CAWAY", hourly)}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Add(ctx, schedule.Entry{Workspace: "acme", Thread: id, Agent: "helper", Prompt: "look", Cron: "0 * * * *", TimeZone: "UTC"}); err != nil {
			t.Fatal(err)
		}
		w.away["CAWAY"] = make(chan struct{})
		close(w.away["CAWAY"])
		asks := func(now time.Time, want string) {
			t.Helper()
			c.set(now)
			s.Tend(ctx)
			s.Wait()
			var hours []string
			for _, text := range w.texts() {
				hours = append(hours, text[:2])
			}
			if got := strings.Join(hours, " "); got != want {
				t.Errorf("at %s there are questions of %q, want %q", now.Format("15:04"), got, want)
			}
		}
		led := morning.Add(3*time.Hour + time.Minute)
		asks(led, "11 11") // a channel is away
		asks(morning, "11 11")
		delete(w.away, "CAWAY")
		asks(morning.Add(time.Minute), "08 08 11 11 11")
		asks(morning.Add(time.Hour+time.Minute), "08 08 09 09 09 11 11 11")
		asks(led, "08 08 09 09 09 11 11 11")
	})
}

// TestEntries: an agent schedules questions in a thread, once and by cron.
func TestEntries(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, open func() storage.Engine) {
		w, c := newWorld(), &clock{now: morning}
		s, j := w.node(open(), "a", c)
		ctx := t.Context()
		thread := threads.Thread{Key: "slack:acme:C1:1.1", Workspace: "acme"}
		id, err := j.Threads.ThreadID(ctx, thread.Key)
		if err != nil {
			t.Fatal(err)
		}
		if thread.ID = id; j.Recorder.OpenUnder(ctx, thread, event.Slack, "C1", "C1/1.1", "") != nil {
			t.Fatal("the thread is not stored")
		}
		entry := schedule.Entry{Workspace: "acme", Thread: id, Agent: "helper", Prompt: "water", At: morning.Add(time.Hour), Key: "k"}
		once, err := s.Add(ctx, entry)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := s.Add(ctx, entry); err != nil || again.ID != once.ID {
			t.Errorf("again: %v %+v", err, again)
		}
		daily, err := s.Add(ctx, schedule.Entry{Workspace: "acme", Thread: id, Agent: "helper", Prompt: "look", Cron: "30 9 * * *"})
		if err != nil || daily.TimeZone != "Europe/Vienna" {
			t.Fatalf("%v %+v", err, daily)
		}
		for name, wrong := range map[string]schedule.Entry{
			"at": {Prompt: "x"}, "prompt": {At: morning.Add(time.Hour)}, "cron": {Prompt: "x", Cron: "@daily"}, "past": {Prompt: "x", At: morning}, "both": {Prompt: "x", At: morning.Add(time.Hour), Cron: "0 9 * * *"},
			"zone": {Prompt: "x", Cron: "0 9 * * *", TimeZone: "Vienna"},
		} {
			wrong.Workspace, wrong.Thread = "acme", id
			if _, err := s.Add(ctx, wrong); !isFault(err) {
				t.Errorf("%s: %v", name, err)
			}
		}
		entry.Workspace, entry.Key = "beta", ""
		if _, err := s.Add(ctx, entry); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("another workspace: %v", err)
		}
		list, err := s.List(ctx, "acme", id)
		if err != nil || len(list) != 2 || list[0].ID != daily.ID || list[1].ID != once.ID {
			t.Errorf("%v %+v", err, list)
		}
		c.set(morning.Add(65 * time.Minute))
		s.Tend(ctx)
		s.Wait()
		want := []string{"08:30 " + daily.ID + " slack:acme:C1:1.1 helper look", "08:59 " + once.ID + " slack:acme:C1:1.1 helper water"}
		if diff := cmp.Diff(want, w.texts()); diff != "" {
			t.Errorf("questions (-want +got):\n%s", diff)
		}
		if err := s.Cancel(ctx, "acme", id, daily.ID); err != nil {
			t.Error(err)
		}
		if list, err = s.List(ctx, "acme", id); err != nil || len(list) != 0 {
			t.Errorf("after the end: %v %+v", err, list)
		}
	})
}

func isFault(err error) bool {
	_, ok := errors.AsType[event.FieldErrors](err)
	return ok
}

// TestTenThousandSchedules: 10,000 schedules in zones that change to daylight saving and back, on two nodes that are restarted,
// with lost acknowledgements. In a day of each change, each tick asks once.
func TestTenThousandSchedules(t *testing.T) {
	t.Parallel()
	for name, day := range map[string]string{"forward": "2026-03-28", "back": "2026-10-24"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begin, err := time.Parse(time.DateOnly, day)
			if err != nil {
				t.Fatal(err)
			}
			begin = begin.Add(12 * time.Hour)
			w, c := newWorld(), &clock{now: begin}
			schema := postgrestest.Schema(t, postgrestest.URL(t))
			node := func(n int) (s *schedule.Service, stop func()) {
				engine, err := postgres.Open(t.Context(), postgres.Options{URL: schema, Connections: 4})
				if err != nil {
					t.Fatal(err)
				}
				s, _ = w.node(engine, fmt.Sprint("node-", n), c)
				return s, func() { s.Wait(); _ = engine.Close() }
			}
			lists, want := map[string][]schedule.Config{}, map[string]int{}
			zones := []string{"Europe/Vienna", "Europe/London", "UTC", "Africa/Cairo"}
			end := begin.Add(24 * time.Hour)
			for n := range 10_000 {
				workspace := []string{"acme", "beta"}[n%2]
				one := at(fmt.Sprint("s", n), "C1", func(s *schedule.Config) {
					s.Cron, s.TimeZone = fmt.Sprintf("%d %d * * *", n%6*10, n/6%24), zones[n%len(zones)]
				})
				lists[workspace] = append(lists[workspace], one)
				timing := schedules.Timing{Cron: one.Cron, TimeZone: one.TimeZone}
				for next := timing.Next(begin); !next.After(end); next = timing.Next(next) {
					want[workspace+" "+one.ID+" "+next.UTC().Format(time.RFC3339)]++
				}
			}
			configure := func(s *schedule.Service) {
				for workspace, list := range lists {
					if err := s.Configure(t.Context(), workspace, "", list); err != nil {
						t.Fatal(err)
					}
				}
			}
			first, stopFirst := node(0)
			configure(first)
			second, stopSecond := node(1)
			for n := 1; !c.Now().After(end); n++ {
				var both sync.WaitGroup
				both.Go(func() { first.Tend(t.Context()) })
				both.Go(func() { second.Tend(t.Context()) })
				both.Wait()
				if n%40 == 0 { // a node ends and begins again, and reads its configuration
					stopFirst()
					first, stopFirst = second, stopSecond
					second, stopSecond = node(n)
					configure(second)
					w.mu.Lock()
					w.lost = 3
					w.mu.Unlock()
				}
				c.set(c.Now().Add(5 * time.Minute))
			}
			for range 3 { // the tries whose acknowledgement was lost
				first.Tend(t.Context())
				first.Wait()
				second.Wait()
				c.set(c.Now().Add(2 * time.Minute))
			}
			stopFirst()
			stopSecond()
			got := map[string]int{}
			for id, m := range w.asked {
				workspace, _, _ := strings.Cut(id, "/")
				got[workspace+" "+m.Schedule+" "+m.PlannedAt.UTC().Format(time.RFC3339)]++
			}
			missing := maps.Clone(want)
			for tick, n := range got {
				if n != want[tick] {
					t.Errorf("%s asked %d times, want %d", tick, n, want[tick])
				}
				delete(missing, tick)
			}
			if len(missing) > 0 || len(got) < 9_500 {
				t.Errorf("%d ticks asked, and %d did not, such as %v", len(got), len(missing), slices.Sorted(maps.Keys(missing))[:min(3, len(missing))])
			}
		})
	}
}
