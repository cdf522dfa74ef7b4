package deliver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/adapters"
	"parley/assembly/turn"
	"parley/ingest/card"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/workstreams"
	"parley/ingest/stream"
)

// planOf returns a PLAN of tasks, of which some are done and the next one runs.
func planOf(tasks, done int) stream.Message {
	var list []map[string]string
	for i := range tasks {
		status := "pending"
		switch {
		case i < done:
			status = "done"
		case i == done:
			status = "running"
		}
		list = append(list, map[string]string{"title": fmt.Sprint("Task ", i+1), "status": status})
	}
	details, _ := json.Marshal(map[string]any{"plan": list})
	return stream.Message{Type: stream.Plan, Text: "How to do it", Details: details}
}

// tells adds messages to a run, as another writer.
func (h *harness) tells(run *runs.Run, list ...stream.Message) {
	h.Helper()
	if err := h.journal.Runs.AddEvents(h.Context(), run.ID, runs.Added{Messages: list}); err != nil {
		h.Error(err)
	}
}

// shownPlan is the beginning of the state post of planOf.
func shownPlan(tasks, done int) string {
	return fmt.Sprintf("How to do it (%d of %d done)", done, tasks)
}

// withStates runs a test whose platform has no streams and long posts.
func withStates(t *testing.T, test func(h *harness)) {
	t.Helper()
	withHarness(t, func(h *harness) {
		h.board.limit, h.platform.Limits.Preview, h.platform.Limits.Sign = 12_000, adapters.PreviewOff, false
		test(h)
	})
}

// works returns an answer after which a plan of tasks is done, one task after the other.
func works(h *harness, tasks int, every time.Duration, then func(ctx context.Context, run *runs.Run) (string, error)) func(context.Context, *runs.Run, turn.LivePreview) (string, error) {
	return func(ctx context.Context, run *runs.Run, _ turn.LivePreview) (string, error) {
		for done := range tasks + 1 {
			h.tells(run, planOf(tasks, done))
			select {
			case <-ctx.Done():
				return "", ctx.Err()
			case <-time.After(every):
			}
		}
		return then(ctx, run)
	}
}

func answers(text string) func(context.Context, *runs.Run) (string, error) {
	return func(context.Context, *runs.Run) (string, error) { return text, nil }
}

// TestAPlanIsOnePost proves that each state of a plan changes the same post, and not before preview_every has passed.
func TestAPlanIsOnePost(t *testing.T) {
	withStates(t, func(h *harness) {
		var times []time.Time
		h.board.chance = func(does string) fault {
			if does == "edit" || does == "send" && len(times) == 0 {
				times = append(times, time.Now())
			}
			return none
		}
		h.answer = works(h, 30, 130*time.Millisecond, answers("It is done."))
		h.ask("t")
		advance(time.Minute)
		texts, _ := h.board.stands()
		if len(texts) != 2 || !strings.HasPrefix(texts[0], shownPlan(30, 30)) || texts[1] != "It is done." {
			t.Errorf("posts: %q", texts)
		}
		edits := h.board.did("edit")
		if len(edits) < 3 || len(edits) > 6 {
			t.Errorf("%d edits in four seconds", len(edits))
		}
		for i := range times[1:] {
			if gap := times[i+1].Sub(times[i]); gap < h.platform.Limits.PreviewEvery {
				t.Errorf("the state changes again after %s", gap)
			}
		}
	})
}

// TestAPlanHasATruthfulEnd proves what the tasks of a run show that ended while one ran.
func TestAPlanHasATruthfulEnd(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(h *harness) func(ctx context.Context, run *runs.Run) (string, error)
		want string
	}{
		"failed": {func(*harness) func(context.Context, *runs.Run) (string, error) {
			return func(context.Context, *runs.Run) (string, error) { return "", errHopeless }
		}, "✅ Task 1\n❌ Task 2 (failed)\n▫️ Task 3\nThe run failed."},
		"stopped": {func(h *harness) func(context.Context, *runs.Run) (string, error) {
			return func(ctx context.Context, run *runs.Run) (string, error) {
				if _, err := h.journal.Runs.StopRun(ctx, run.ID, outbox.Notice{}); err != nil {
					h.Error(err)
				}
				return "", errInterrupted
			}
		}, "✅ Task 1\n⏹️ Task 2 (stopped)\n▫️ Task 3\nThe run was stopped."},
		"answered": {func(*harness) func(context.Context, *runs.Run) (string, error) { return answers("Well.") },
			"✅ Task 1\n⏹️ Task 2 (unfinished)\n▫️ Task 3"},
	} {
		t.Run(name, func(t *testing.T) {
			withStates(t, func(h *harness) {
				h.answer = func(ctx context.Context, run *runs.Run, _ turn.LivePreview) (string, error) {
					h.tells(run, planOf(3, 1))
					return c.end(h)(ctx, run)
				}
				h.ask("t")
				advance(time.Minute)
				texts, _ := h.board.stands()
				want := shownPlan(3, 1) + "\n" + c.want
				if len(texts) == 0 || texts[0] != want {
					t.Errorf("posts: %q, want %q", texts, want)
				}
			})
		})
	}
}

// TestAStatePostHasItsLines proves what else it shows, and that texts of agents are no markup.
func TestAStatePostHasItsLines(t *testing.T) {
	withStates(t, func(h *harness) {
		h.answer = func(ctx context.Context, run *runs.Run, _ turn.LivePreview) (string, error) {
			h.tells(run, stream.Message{Type: stream.Warning, Text: "early"})
			h.tells(run, stream.Message{Type: stream.Plan, Text: "Look *here*", Details: []byte(`["[a](https://x.y)","b"]`)},
				stream.Message{Type: stream.BatchProgress, Text: "mails", Details: []byte(`{"completed":3,"total":10}`)},
				stream.Message{Type: stream.Error, Text: "one failed"}, stream.Message{Type: stream.Thought, Text: "hm"})
			return "Well.", nil
		}
		h.ask("t")
		h.settles("Look \\*here\\* (0 of 2 done)\n▫️ \\[a](https://x.y)\n▫️ b\nmails: ▰▰▰▱▱▱▱▱▱▱ 30% (3 of 10)\n• ⚠️ early\n• ❌ one failed", "Well.")
	})
}

// TestOnlyAPlanBeginsAStatePost proves that no other message makes a post.
func TestOnlyAPlanBeginsAStatePost(t *testing.T) {
	withStates(t, func(h *harness) {
		h.answer = func(ctx context.Context, run *runs.Run, _ turn.LivePreview) (string, error) {
			h.tells(run, stream.Message{Type: stream.Warning, Text: "careful"}, stream.Message{Type: stream.BatchProgress, Details: []byte(`{"completed":3,"total":10}`)})
			return "Well.", nil
		}
		h.ask("t")
		h.settles("Well.")
	})
}

// TestAnUnclearStatePostIsOne proves that the platform is asked for a post whose call had no clear outcome.
func TestAnUnclearStatePostIsOne(t *testing.T) {
	for name, faults := range map[string]map[string][]fault{
		"the post arrived":         {"send": {{failure: adapters.Unclear}}},
		"it arrived late":          {"send": {{failure: adapters.Unclear, effect: 3 * time.Second}}},
		"the post was not sent":    {"send": {{failure: adapters.NotSent}}},
		"an edit is unclear":       {"edit": {{failure: adapters.Unclear}, {failure: adapters.Unclear, effect: 2 * time.Second}}},
		"an edit was limited":      {"edit": {{failure: adapters.RateLimited, after: 4 * time.Second, scope: adapters.ScopeChannel}}},
		"the adapter has a defect": {"send": {{panics: true}}, "edit": {{panics: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			withStates(t, func(h *harness) {
				h.board.faults = faults
				h.answer = works(h, 5, time.Second, answers("Well."))
				h.ask("t")
				advance(3 * time.Minute)
				texts, _ := h.board.stands()
				if len(texts) != 2 || !slices.ContainsFunc(texts, func(text string) bool { return strings.HasPrefix(text, shownPlan(5, 5)) }) {
					t.Errorf("posts: %q\ncalls: %s", texts, strings.Join(h.board.did(""), "\n"))
				}
			})
		})
	}
}

// TestARefusedEditIsTriedAgain proves that the answer does not depend on a state post whose edit is refused, and that the post shows the
// end of its run once the platform takes edits again, also after a restart.
func TestARefusedEditIsTriedAgain(t *testing.T) {
	withStates(t, func(h *harness) {
		refused := fault{failure: adapters.Permanent}
		h.board.faults["edit"] = []fault{refused, refused, refused}
		h.answer = works(h, 3, 2*time.Second, answers("Well."))
		h.ask("t")
		advance(time.Minute)
		if texts, _ := h.board.stands(); len(texts) != 2 || texts[1] != "Well." || len(h.board.did("edit")) != 1 {
			t.Errorf("at the end of the run: %q, edits: %q", texts, h.board.did("edit"))
		}
		advance(10 * time.Minute)
		h.kill()
		h.start()
		advance(30 * time.Minute)
		if texts, _ := h.board.stands(); len(texts) != 2 || !strings.HasPrefix(texts[0], shownPlan(3, 3)) || len(h.board.did("edit")) != 4 {
			t.Errorf("after that: %q, edits: %q", texts, h.board.did("edit"))
		}
	})
}

// TestAStatePostIsGivenUp proves that the edits of a state post that the platform always refuses become hourly, and end.
func TestAStatePostIsGivenUp(t *testing.T) {
	withStates(t, func(h *harness) {
		h.board.chance = func(does string) fault {
			if does == "edit" {
				return fault{failure: adapters.Permanent}
			}
			return none
		}
		h.answer = works(h, 3, 2*time.Second, answers("Well."))
		h.ask("t")
		advance(4 * time.Hour)
		before := len(h.board.did("edit"))
		advance(2 * time.Hour)
		if hourly := len(h.board.did("edit")) - before; before > 9 || hourly != 2 {
			t.Errorf("%d edits in four hours, %d in two more", before, hourly)
		}
		h.kill()
		h.behind = -7 * 24 * time.Hour
		before = len(h.board.did("edit"))
		h.start()
		advance(4 * time.Hour)
		if last := len(h.board.did("edit")) - before; last != 1 {
			t.Errorf("%d edits after a week", last)
		}
	})
}

// TestAStatePostOutlivesItsProcess kills the process after each of its writes in turn, and proves that one post shows the
// final state, and that the answer is posted once.
func TestAStatePostOutlivesItsProcess(t *testing.T) {
	for n := range 24 {
		t.Run(fmt.Sprint("write ", n), func(t *testing.T) {
			withStates(t, func(h *harness) {
				dead := make(chan struct{})
				left := n
				h.answer = func(ctx context.Context, run *runs.Run, s turn.LivePreview) (string, error) {
					if h.attempts == 1 {
						h.mu.Lock()
						h.written = func() {
							h.mu.Lock()
							defer h.mu.Unlock()
							if left--; left == 0 {
								close(dead)
							}
						}
						h.mu.Unlock()
					}
					return works(h, 4, 700*time.Millisecond, answers("Well."))(ctx, run, s)
				}
				h.ask("t")
				select {
				case <-dead:
				case <-time.After(20 * time.Second):
				}
				h.kill()
				h.start()
				advance(3 * time.Minute)
				texts, _ := h.board.stands()
				if len(texts) != 2 || !strings.HasPrefix(texts[0], shownPlan(4, 4)) || texts[1] != "Well." {
					t.Errorf("posts: %q\ncalls: %s", texts, strings.Join(h.board.did(""), "\n"))
				}
			})
		})
	}
}

// TestChildrenAreLinesOfTheStatePost proves that a run's workstreams begin one, and change it after the run has ended.
func TestChildrenAreLinesOfTheStatePost(t *testing.T) {
	withStates(t, func(h *harness) {
		h.answer = func(ctx context.Context, run *runs.Run, _ turn.LivePreview) (string, error) {
			for _, name := range []string{"code", "research"} {
				if _, err := h.journal.Workstreams.Launch(ctx, workstreams.Workstream{ID: name, Run: run.ID, Name: name, Agent: "helper", DeadlineAt: time.Now().Add(time.Hour)}, workstreams.Bounds{Max: 2, Depth: 1}); err != nil {
					h.Error(err)
				}
			}
			return "Both look at it.", nil
		}
		h.ask("t")
		h.settles("Workstreams\n⏳ code: planning\n⏳ research: planning", "Both look at it.")
		if err := h.journal.Workstreams.Report(h.Context(), "research", workstreams.Progress{Phase: workstreams.ExecutingTool, Tool: "search", Message: "half"}); err != nil {
			t.Fatal(err)
		}
		h.settles("Workstreams\n⏳ code: planning\n⏳ research: executing search, half", "Both look at it.")
		for _, end := range []workstreams.State{workstreams.Completed, workstreams.Timeout} {
			list, err := h.journal.Workstreams.DueWorkstreams(h.Context(), []string{"acme"}, 1)
			if err != nil || len(list) != 1 {
				t.Fatalf("%d due, %v", len(list), err)
			}
			if _, err := h.journal.Workstreams.Settle(h.Context(), &list[0], workstreams.Step{State: end, Phase: workstreams.Done}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		h.settles("Workstreams\n✅ code\n❌ research: out of time", "Both look at it.")
		if sends := h.board.did("send Workstreams"); len(sends) != 1 {
			t.Errorf("posts of the state: %q", sends)
		}
	})
}

// TestAPlatformWithoutEditsGetsTheLastState proves that the state is one post there, at the end.
func TestAPlatformWithoutEditsGetsTheLastState(t *testing.T) {
	withStates(t, func(h *harness) {
		h.platform.Sender = struct {
			adapters.Sender
			adapters.Finder
		}{h.board, h.board}
		h.answer = works(h, 3, 2*time.Second, answers("Well."))
		h.ask("t")
		advance(time.Minute)
		texts, _ := h.board.stands()
		if diff := cmp.Diff([]string{"Well.", shownPlan(3, 3) + "\n✅ Task 1\n✅ Task 2\n✅ Task 3"}, texts); diff != "" {
			t.Error(diff)
		}
	})
}

// cards is a board whose cards stand below their title.
type cards struct {
	*board
	shown *[]string // the cards of the calls
}

func (c cards) FormatCard(v card.View) []adapters.CardPost {
	return []adapters.CardPost{{Text: v.Parts[0].Text, Card: v}}
}

func (c cards) Send(ctx context.Context, post adapters.Post) (string, error) {
	c.show(post)
	return c.board.Send(ctx, post)
}

func (c cards) Edit(ctx context.Context, id string, post adapters.Post) error {
	c.show(post)
	return c.board.Edit(ctx, id, post)
}

func (c cards) show(post adapters.Post) {
	if post.Card != nil {
		*c.shown = append(*c.shown, post.Card.Status+": "+post.Card.Plain())
	}
}

// TestAPlanIsACard proves that a platform with cards shows the state as one, that a change of a task alone changes it, that the same
// plan again does not, and that a call that is made again has the card of the first one.
func TestAPlanIsACard(t *testing.T) {
	withStates(t, func(h *harness) {
		var shown []string
		h.platform.Sender = cards{h.board, &shown}
		h.board.faults["send"] = []fault{{failure: adapters.NotSent}}
		h.answer = func(_ context.Context, run *runs.Run, _ turn.LivePreview) (string, error) {
			for _, status := range []string{"pending", "running", "running"} {
				h.tells(run, stream.Message{Type: stream.Plan, Text: "Book", Details: []byte(`[{"title":"a room","status":"` + status + `"}]`)})
				<-time.After(10 * time.Second)
			}
			<-time.After(time.Minute)
			h.tells(run, stream.Message{Type: stream.Plan, Text: "Book", Details: []byte(`[{"title":"a room","status":"done"}]`)})
			<-time.After(10 * time.Second) // the edit comes before the end of the run
			return "Well.", nil
		}
		h.ask("t")
		advance(2 * time.Minute)
		const waits, done = "info: Book (0 of 1 done)\n▫️ a room", ": Book (1 of 1 done)\n✅ a room"
		want := []string{waits, waits, "info: Book (0 of 1 done)\n⏳ a room (running)", "info" + done, "success" + done}
		if diff := cmp.Diff(want, shown); diff != "" {
			t.Error(diff)
		}
		if texts, _ := h.board.stands(); len(texts) != 2 {
			t.Errorf("posts: %q", texts)
		}
	})
}

// TestALongPlanFits proves that one post has as many tasks as it holds, and says how many more there are.
func TestALongPlanFits(t *testing.T) {
	withStates(t, func(h *harness) {
		h.board.limit = 200
		h.answer = works(h, 0, 0, func(ctx context.Context, run *runs.Run) (string, error) {
			h.tells(run, planOf(300, 2))
			return "Well.", nil
		})
		h.ask("t")
		advance(time.Minute)
		texts, _ := h.board.stands()
		if len(texts) != 2 || len(texts[0]) > 200 || !strings.HasSuffix(texts[0], "more tasks") {
			t.Errorf("posts: %q", texts)
		}
	})
}
