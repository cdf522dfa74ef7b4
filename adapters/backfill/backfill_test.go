package backfill_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"parley/adapters"
	"parley/adapters/backfill"
	"parley/ingest/event"
)

// slowly makes the background read of each channel take an hour.
func slowly(w *world) { w.slow["a"], w.slow["b"] = time.Hour, time.Hour }

func TestAFirstStartReadsNothing(t *testing.T) {
	inWorld(t, func(w *world) { w.watermark = time.Time{} }, func(w *world) {
		same(w, "an old thread before it is up", w.turn("a:-9000"), "begins")
		w.up()
		same(w, "the watermark", w.moved(), 0)
		same(w, "an old thread", w.turn("a:-9000"), "begins")
		advance(time.Hour)
		same(w, "history", w.history(), nil)
		w.Down()
		w.up() // events may have been missed since the watermark
		same(w, "read", threadsLast(w.history()), []string{"read a 3480 to 90000 in the background", "read b 3480 to 90000 in the background"})
	})
}

// TestAfterARestart proves that a new thread waits for nothing, and an old one for its
// own missed messages only, however long the other reads take.
func TestAfterARestart(t *testing.T) {
	inWorld(t, func(w *world) {
		slowly(w)
		w.said["a:-9000"] = []int{-9000, -5000, -1800, -1700}
		w.slow["a:-9000"] = 2 * time.Second
	}, func(w *world) {
		same(w, "before it is up", w.turn("b:-9000"), "waits")
		advance(time.Second)
		w.up()
		advance(time.Second)
		w.history()
		same(w, "a thread that began after the restart", w.begins("a:2"), "begins after 0s")
		same(w, "an old thread", w.begins("a:-9000"), "begins after 2s")
		same(w, "its next turn", w.begins("a:-9000"), "begins after 0s")
		same(w, "read", w.history(), []string{"read a:-9000 -3600 to 86401 urgently", "accept a:-9000/-1800", "accept a:-9000/-1700"})
		same(w, "a conversation, which is always older", w.turn("b"), "waits")
		same(w, "gaps", w.open(), []string{"a -3600 to 1", "b -3600 to 1"})
	})
}

// TestMissedMessagesAreAcceptedTogether proves that a missed message does not wait for the commit
// of the one before, and that they keep their order.
func TestMissedMessagesAreAcceptedTogether(t *testing.T) {
	inWorld(t, func(w *world) {
		slowly(w)
		w.said["a:-9000"] = []int{-300, -200, -100}
		w.commit = time.Second
	}, func(w *world) {
		w.up()
		advance(time.Second)
		w.history()
		same(w, "an old thread", w.begins("a:-9000"), "begins after 1s")
		same(w, "read", w.history(), []string{"read a:-9000 -3600 to 86400 urgently", "accept a:-9000/-300", "accept a:-9000/-200", "accept a:-9000/-100"})
	})
}

// TestATurnWaitsTenSeconds proves that a turn waits at most so long, and only once.
func TestATurnWaitsTenSeconds(t *testing.T) {
	for name, c := range map[string]struct {
		set  func(w *world)
		want string
	}{
		"a slow platform":    {func(w *world) { w.slow["a:-9000"] = time.Hour }, "begins with a gap after 10s"},
		"a failing platform": {func(w *world) { w.broken["a:-9000"] = errors.New("no route") }, "begins with a gap after 10s"},
		"a refusal":          {func(w *world) { w.broken["a:-9000"] = &adapters.RefusedError{Err: errors.New("not_in_channel")} }, "begins with a gap after 0s"},
		"a refusing store":   {func(w *world) { w.busy = errDown; w.said["a:-9000"] = []int{-9} }, "begins with a gap after 10s"},
		"a slow reading":     {func(w *world) { w.slow["a:-9000"] = 9 * time.Second }, "begins after 9s"},
		"no reader":          {func(*world) {}, "begins with a gap after 10s"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				slowly(w)
				c.set(w)
			}, func(w *world) {
				if name == "no reader" {
					w.stop()
				}
				w.up()
				advance(time.Second)
				same(w, "the turn", w.begins("a:-9000"), c.want)
				again := "begins"
				if c.want[:8] != "begins a" {
					again = "begins with a gap"
				}
				same(w, "the next one", w.turn("a:-9000"), again)
			})
		})
	}
}

// TestATurnReadsAgainAfterAFailure proves that a failed read, the turn's own or one that it
// joined, costs no missed message.
func TestATurnReadsAgainAfterAFailure(t *testing.T) {
	fail := func(w *world) {
		w.broken["a:-9000"], w.said["a:-9000"] = errors.New("the connection was reset"), []int{-9}
	}
	mend := func(w *world) { w.change(func() { clear(w.broken); delete(w.slow, "a:-9000") }) }
	inWorld(t, func(w *world) { slowly(w); fail(w) }, func(w *world) {
		w.up()
		w.turn("a:-9000")
		synctest.Wait()
		mend(w)
		same(w, "the turn", w.begins("a:-9000"), "begins after 1s")
		same(w, "accepted", w.known(), []string{"a:-9000/-9"})
	})
	inWorld(t, func(w *world) {
		fail(w)
		w.recent, w.slow["a:-9000"] = []event.ThreadKey{"a:-9000"}, 5*time.Second
	}, func(w *world) {
		w.up()
		advance(2 * time.Second)
		mend(w)
		same(w, "the turn that joined", w.begins("a:-9000"), "begins after 3s")
		same(w, "accepted", w.known(), []string{"a:-9000/-9"})
	})
	inWorld(t, func(w *world) {
		fail(w)
		w.recent, w.slow["a:-9000"] = []event.ThreadKey{"a:-9000"}, 11*time.Second
	}, func(w *world) {
		w.up()
		same(w, "the turn that joined for too long", w.begins("a:-9000"), "begins with a gap after 10s")
		advance(time.Second) // the joined read has failed
		same(w, "the next turn", w.turn("a:-9000"), "begins with a gap")
		synctest.Wait()
		same(w, "a turn after it", w.turn("a:-9000"), "begins with a gap")
		mend(w)
		advance(time.Minute)
		same(w, "accepted", w.known(), []string{"a:-9000/-9"})
	})
}

// TestCallersNeverWait proves that the calls of ingest and the turns are answered from
// memory.
func TestCallersNeverWait(t *testing.T) {
	inWorld(t, slowly, func(w *world) {
		w.change(func() { w.storing = time.Minute })
		w.Up(w.Context())
		for range 100 {
			asked := time.Now()
			w.Accepted("a", true)
			w.Refused("b", false)
			w.Missed("", time.Now())
			w.Behind("a:-9000")
			w.turn("b:-9000")
			w.Down()
			w.Up(w.Context())
			if waited := time.Since(asked); waited != 0 {
				w.Fatalf("waited %v", waited)
			}
			advance(700 * time.Millisecond)
		}
	})
}

// TestARefusalOpensAGapOfItsChannel proves that the gap closes when the channel was read.
func TestARefusalOpensAGapOfItsChannel(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.up()
		advance(300 * time.Second)
		w.history()
		w.change(func() { slowly(w); w.busy = errDown })
		w.Refused("a", false)
		same(w, "an old thread of the channel", w.turn("a:100"), "waits")
		same(w, "an old thread of another channel", w.turn("b:100"), "begins")
		advance(time.Second)
		same(w, "a new thread of the channel", w.turn("a:301"), "begins")
		advance(time.Minute)
		same(w, "the watermark does not move", w.moved() <= 180, true)
		w.change(func() { w.busy = nil })
		advance(time.Minute)
		same(w, "gaps", w.open(), []string{"a 180 to 300"})
		advance(2 * time.Hour)
		same(w, "gaps after the read", w.open(), nil)
		same(w, "an old thread", w.turn("a:100"), "begins")
		same(w, "the watermark moves", w.moved() > 3600, true)
	})
}

// TestARetriedPayloadOpensAGap proves that the gap begins at the last arrival before the
// payload's first attempt, and that a channel has at most one a minute.
func TestARetriedPayloadOpensAGap(t *testing.T) {
	inWorld(t, func(w *world) { w.hook = true }, func(w *world) {
		w.up()
		for range 30 { // the last payload arrives in second 290
			w.Accepted("b", false)
			advance(10 * time.Second)
		}
		advance(30 * time.Minute) // no payload arrives
		w.change(func() { slowly(w) })
		w.history()
		w.Accepted("b", false) // at second 2100
		advance(15 * time.Second)
		w.Accepted("a", true)
		advance(15 * time.Second)
		w.Accepted("a", true)
		same(w, "gaps", w.open(), []string{"a 170 to 2115"})
		same(w, "an old thread", w.turn("a:0"), "waits")
		advance(time.Minute)
		w.Accepted("a", true)
		same(w, "a minute later", w.open(), []string{"a 170 to 2190"})
	})
	inWorld(t, func(w *world) { slowly(w); w.hook, w.channels = true, nil }, func(w *world) {
		w.up()
		w.Accepted("a", true)
		same(w, "soon after a start", w.open(), []string{"a -3600 to 0"})
	})
	inWorld(t, func(w *world) { slowly(w); w.channels = nil }, func(w *world) {
		w.up()
		w.Accepted("a", true)
		same(w, "over a connection", w.open(), nil)
	})
}

// TestAGivenUpPayloadOpensAGapFromItsFirstAttempt refuses a payload of a known channel, and
// reports the loss of a payload without a channel.
func TestAGivenUpPayloadOpensAGapFromItsFirstAttempt(t *testing.T) {
	inWorld(t, func(w *world) { w.watermark = time.Time{} }, func(w *world) {
		w.up()
		for range 180 { // a payload every ten seconds; the last one arrives in second 1790
			w.Accepted("b", false)
			advance(10 * time.Second)
		}
		w.change(func() { slowly(w) })
		w.Refused("a", true)
		same(w, "gaps after the last attempt", w.open(), []string{"a 1250 to 1800"})
		w.up()
		same(w, "gaps after a loss", w.open(), []string{"a 1250 to 1800", "b 1250 to 1800"})
	})
}

// TestNothingBeforeTheFirstStartIsRead proves this for gaps that open soon after the
// first start.
func TestNothingBeforeTheFirstStartIsRead(t *testing.T) {
	inWorld(t, func(w *world) { slowly(w); w.watermark = time.Time{}; w.hook, w.channels = true, nil }, func(w *world) {
		advance(5 * time.Second)
		w.up()
		advance(30 * time.Second)
		w.Accepted("a", true)
		w.Refused("b", false)
		same(w, "gaps", w.open(), []string{"a 5 to 35", "b 5 to 35"})
		w.stop()
		w.start()
		w.up()
		w.Accepted("c", true)
		same(w, "after a restart", w.open(), []string{"a 5 to 35", "b 5 to 35", "c 5 to 35"})
	})
}

// TestBackgroundReadsAreOrdered proves that a channel is read before its threads, that these are
// read newest first, and that nothing is read twice.
func TestBackgroundReadsAreOrdered(t *testing.T) {
	inWorld(t, func(w *world) {
		w.said["a"] = []int{-3000}
		w.said["a:-2000"] = []int{-2000}
		w.said["a:-1500"] = []int{-1500, -1400}
		w.said["a:-1000"] = []int{-1000, -900}
		w.said["a:-9000"] = []int{-9000, -800}
		w.recent = []event.ThreadKey{"a:-9000", "a:-1000", "a:-2000", "b:-9000", "a"}
	}, func(w *world) {
		w.up()
		same(w, "history", threadsLast(w.history()), []string{
			"read a -3600 to 86400 in the background", "accept a/-3000", "read b -3600 to 86400 in the background", "accept a:-2000/-2000",
			"read a:-1000 -3600 to 86400 in the background", "accept a:-1000/-1000", "accept a:-1000/-900",
			"read a:-1500 -3600 to 86400 in the background", "accept a:-1500/-1500", "accept a:-1500/-1400",
			"read a:-9000 -3600 to 86400 in the background", "accept a:-9000/-800",
			"read b:-9000 -3600 to 86400 in the background",
		})
		same(w, "gaps", w.open(), nil)
		same(w, "the watermark", w.moved(), -120)
	})
}

// TestNoChannelWaitsForThreads proves that a slow thread of one channel does not delay the other
// channels.
func TestNoChannelWaitsForThreads(t *testing.T) {
	inWorld(t, func(w *world) {
		w.recent = []event.ThreadKey{"a:-9000"}
		w.slow["a:-9000"] = time.Hour
		w.said["b"] = []int{-3000}
	}, func(w *world) {
		w.up()
		same(w, "accepted", w.known(), []string{"b/-3000"})
		same(w, "gaps", w.open(), []string{"a -3600 to 0"})
	})
}

// TestNoChannelWaitsForASlowOne proves that channels are read at the same time.
func TestNoChannelWaitsForASlowOne(t *testing.T) {
	inWorld(t, func(w *world) {
		w.slow["a"] = time.Hour
		w.said["b"] = []int{-3000}
	}, func(w *world) {
		w.up()
		same(w, "accepted", w.known(), []string{"b/-3000"})
		same(w, "gaps", w.open(), []string{"a -3600 to 0"})
	})
}

// threadsLast returns a history without its order between channels, and between them and the threads,
// which are read at the same time.
func threadsLast(history []string) []string {
	channel := func(line string) string { return strings.Fields(line)[1][:1] }
	slices.SortStableFunc(history, func(a, b string) int {
		return cmp.Or(strings.Count(a, ":")-strings.Count(b, ":"), cmp.Compare(channel(a), channel(b)))
	})
	return history
}

// TestATurnJoinsABackgroundRead proves that the read becomes urgent.
func TestATurnJoinsABackgroundRead(t *testing.T) {
	inWorld(t, func(w *world) {
		w.recent = []event.ThreadKey{"a:-9000"}
		w.slow["a:-9000"] = 5 * time.Second
	}, func(w *world) {
		w.up()
		advance(2 * time.Second)
		same(w, "the turn", w.begins("a:-9000"), "begins after 3s")
		same(w, "reads", len(w.history()), 3) // a, a:-9000, b
	})
}

// TestATurnWaitsForItsWholeThread proves this also for a thread that the channel's read
// finds.
func TestATurnWaitsForItsWholeThread(t *testing.T) {
	inWorld(t, func(w *world) {
		w.said["a"], w.said["a:-50"] = []int{-30, -20}, []int{-50}
		w.refused = "a/-20"
	}, func(w *world) {
		w.up()
		same(w, "accepted", threadsLast(w.history()), []string{"read a -3600 to 86400 in the background", "accept a/-30", "read b -3600 to 86400 in the background"})
		same(w, "the conversation", w.begins("a"), "begins after 2s")
		synctest.Wait()
		same(w, "another thread, read after it", w.begins("a:-50"), "begins after 0s")
		same(w, "accepted", w.history(), []string{"accept a:-50/-50"})
	})
}

// TestAFailureStopsNoOtherRead proves this for a failed channel, thread and message, and
// that failed reads are repeated.
func TestAFailureStopsNoOtherRead(t *testing.T) {
	inWorld(t, func(w *world) {
		w.said["b:-50"], w.said["b:-40"] = []int{-50, -45}, []int{-40, -35}
		w.broken["a"], w.broken["b:-40"] = errors.New("the answer is too long"), errors.New("no route")
		w.refused = "b:-50/-50"
	}, func(w *world) {
		w.up()
		advance(10 * time.Second)
		same(w, "accepted", w.known(), []string{"b:-50/-45"})
		same(w, "gaps", w.open(), []string{"a -3600 to 0", "b -3600 to 0"})
		w.change(func() { delete(w.broken, "a"); delete(w.broken, "b:-40"); w.refused = "" })
		advance(time.Minute)
		same(w, "gaps", w.open(), nil)
		same(w, "accepted", w.known(), []string{"b:-40/-35", "b:-40/-40", "b:-50/-45"})
	})
	refused := &adapters.RefusedError{Err: errors.New("not_in_channel"), Hint: "invite the bot"}
	inWorld(t, func(w *world) { w.broken["a"] = refused }, func(w *world) {
		w.up()
		same(w, "gaps if a channel is refused", w.open(), nil)
	})
	inWorld(t, func(w *world) { w.broken["channels"] = refused }, func(w *world) {
		w.up()
		same(w, "gaps if every channel is refused", w.open(), nil)
		same(w, "the watermark", w.moved(), -120)
		same(w, "an old thread", w.turn("a:-9000"), "begins")
	})
	inWorld(t, func(w *world) { w.broken["channels"] = errors.New("no route"); w.said["a:-9000"] = []int{-9} }, func(w *world) {
		w.up()
		same(w, "an old thread, with unknown channels", w.begins("a:-9000"), "begins after 0s")
		w.Refused("b", false)
		same(w, "gaps", w.open(), nil)
		advance(time.Minute)
		same(w, "reads after a refusal", w.history()[:2], []string{"read a:-9000 -3600 to 86400 urgently", "accept a:-9000/-9"})
	})
}

// TestAPanicFailsItsRead proves that a panic in the adapter stops neither the process nor the
// other reads, and that the read is repeated.
func TestAPanicFailsItsRead(t *testing.T) {
	for bug, open := range map[string][]string{"channels": nil, "a": {"a -3600 to 0"}, "a:-9000": {"a -3600 to 0"}} {
		t.Run(bug, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.bug, w.recent = bug, []event.ThreadKey{"a:-9000"}
				w.said["a:-9000"], w.said["b"] = []int{-30}, []int{-20}
			}, func(w *world) {
				w.up()
				w.begins("a:-9000")
				same(w, "gaps", w.open(), open)
				w.change(func() { w.bug = "" })
				advance(time.Minute)
				same(w, "gaps after the panic", w.open(), nil)
				same(w, "accepted", w.known(), []string{"a:-9000/-30", "b/-20"})
			})
		})
	}
}

// TestACrashLosesNoGap proves that a gap is open until all of it was read.
func TestACrashLosesNoGap(t *testing.T) {
	inWorld(t, func(w *world) {
		w.said["a:-9000"] = []int{-9000, -800}
		w.slow["b"] = time.Hour
	}, func(w *world) {
		w.up()
		advance(time.Second)
		same(w, "gaps", w.open(), []string{"b -3600 to 0"})
		w.history()
		w.stop()
		delete(w.slow, "b")
		w.start()
		synctest.Wait()
		same(w, "read", w.history(), []string{"read b -3600 to 86400 in the background"})
		same(w, "gaps", w.open(), nil)
	})
}

// TestGapsOfOtherNodesAreSeen proves that a node sees a new gap within five seconds, and
// a closed one within one.
func TestGapsOfOtherNodesAreSeen(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.up()
		advance(time.Minute)
		w.change(func() { slowly(w); w.gaps["a"] = event.Gap{Channel: "a", From: w.at(10), Until: w.at(50)} })
		advance(5100 * time.Millisecond)
		same(w, "an old thread", w.Behind("a:20"), true)
		same(w, "a new thread", w.Behind("a:51"), false)
		w.change(func() { clear(w.gaps) })
		advance(1100 * time.Millisecond)
		same(w, "after the gap is closed", w.Behind("a:20"), false)
	})
	inWorld(t, nil, func(w *world) {
		w.Standby()
		same(w, "a node on standby", w.turn("a:-9000"), "begins")
	})
}

// TestAGapIsReadAgain proves that a platform that shows messages late is asked again, several times
// within a few seconds, after each time without a connection; also for a channel that it names late.
func TestAGapIsReadAgain(t *testing.T) {
	inWorld(t, func(w *world) { w.late, w.channels = true, []string{"a"} }, func(w *world) {
		w.up()
		same(w, "the first read", w.history(), []string{"read a -3600 to 86400 in the background"})
		for _, look := range []struct {
			said   int // since the last read
			within time.Duration
			until  int
		}{{-1, 1300 * time.Millisecond, 86401}, {-2, 1300 * time.Millisecond, 86402}, {-3, 2500 * time.Millisecond, 86405}} {
			w.change(func() {
				w.channels, w.said["a"], w.said["b"] = []string{"a", "b"}, append(w.said["a"], look.said), append(w.said["b"], look.said)
			})
			advance(look.within)
			history := w.history()
			slices.Sort(history)
			same(w, "the read of what is shown later", history, []string{
				fmt.Sprint("accept a/", look.said), fmt.Sprint("accept b/", look.said),
				fmt.Sprintf("read a -3600 to %d in the background", look.until), fmt.Sprintf("read b -3600 to %d in the background", look.until),
			})
		}
		advance(time.Hour)
		same(w, "later", w.history(), nil)
		same(w, "gaps", w.open(), nil)
	})
}

// TestANewGapEndsThePause proves that a gap that opens while failed reads are to be repeated
// does not wait for them.
func TestANewGapEndsThePause(t *testing.T) {
	inWorld(t, func(w *world) { w.broken["a"] = errDown }, func(w *world) {
		w.up()
		advance(8 * time.Second) // the next repetition is in seven seconds
		w.history()
		w.Missed("b", w.at(-10))
		advance(2 * time.Second)
		same(w, "b is read", slices.Contains(w.history(), "read b -10 to 86408 in the background"), true)
	})
}

// TestAPauseOpensAGap proves that messages may be missing since the watermark after the
// process or its store stood still for minutes, although the connection seems to be up.
func TestAPauseOpensAGap(t *testing.T) {
	for name, pause := range map[string]func(w *world){
		"of the process": func(w *world) { w.change(func() { w.suspended = 10 * time.Minute }) },
		"of the store": func(w *world) {
			w.change(func() { w.storing = 10 * time.Minute })
			advance(10 * time.Second)
			w.change(func() { w.storing = 0 })
			advance(590 * time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) { w.watermark = w.at(0) }, func(w *world) {
				w.up()
				advance(5 * time.Minute)
				w.change(func() { slowly(w) })
				pause(w)
				advance(time.Minute)
				w.mu.Lock()
				defer w.mu.Unlock()
				for _, channel := range w.channels { // the workspace looks at its clock every five seconds
					gap := w.gaps[channel]
					if from, until := w.second(gap.From), w.second(gap.Until); from != 0 || until < 900 || until > 910 {
						t.Errorf("the gap of %s is from %d to %d", channel, from, until)
					}
				}
			})
		})
	}
}

// TestTheWatermarkOfAHookStaysAtTheLastArrival proves that a restart reads all messages of
// the time in which the hook was unreachable.
func TestTheWatermarkOfAHookStaysAtTheLastArrival(t *testing.T) {
	inWorld(t, func(w *world) { w.hook, w.watermark = true, time.Time{} }, func(w *world) {
		w.up()
		advance(10 * time.Minute)
		w.Accepted("a", false)
		advance(30 * time.Second)
		same(w, "the watermark after an arrival", w.moved(), 480)
		advance(time.Hour)
		same(w, "the watermark an hour later", w.moved(), 480)
		w.stop()
		w.start()
		w.up()
		same(w, "read", threadsLast(w.history()), []string{"read a 480 to 90630 in the background", "read b 480 to 90630 in the background"})
		advance(time.Minute)
		same(w, "the watermark after the gap is stored", w.moved(), 4110)
	})
}

// TestAStoredGapIsReadOnce proves that a thread that was read before its gap was stored is not
// read again. Stored times have microseconds.
func TestAStoredGapIsReadOnce(t *testing.T) {
	inWorld(t, func(w *world) { w.recent = []event.ThreadKey{"a:100"} }, func(w *world) {
		w.up()
		advance(300*time.Second + 999*time.Nanosecond)
		w.history()
		w.change(func() { w.busy = errDown })
		w.Refused("a", false)
		w.begins("a:100")
		w.change(func() { w.busy = nil })
		advance(time.Minute)
		same(w, "read", w.history(), []string{"read a:100 180 to 86700 urgently", "read a 180 to 86700 in the background"})
	})
}

func TestMaxAgeZeroReadsNothing(t *testing.T) {
	inWorld(t, func(w *world) {
		w.config.MaxAge = 0
		w.gaps["a"] = event.Gap{Channel: "a", From: w.at(-100), Until: w.at(-50)} // gaps from before
	}, func(w *world) {
		w.up()
		w.Refused("a", false)
		same(w, "an old thread", w.turn("a:-9000"), "begins")
		advance(time.Minute)
		same(w, "history", w.history(), nil)
		same(w, "gaps", w.open(), nil)
	})
}

func TestBoundsOfAgeAndNumber(t *testing.T) {
	inWorld(t, func(w *world) {
		w.watermark = w.at(-1_000_000)
		w.config.Messages = 2
		for i := range 5 {
			w.said[event.ThreadKey(fmt.Sprint("a:", -10*i-10))] = []int{-10*i - 10, -10*i - 9}
		}
	}, func(w *world) {
		w.up()
		same(w, "history", threadsLast(w.history()), []string{
			"read a -86400 to 86400 in the background", "read b -86400 to 86400 in the background",
			"read a:-10 -86400 to 86400 in the background", "accept a:-10/-10", "accept a:-10/-9",
		})
	})
}

// TestARunningConnectionMissesMessages proves that a gap needs no disconnection, and that
// it is like one after a disconnection.
func TestARunningConnectionMissesMessages(t *testing.T) {
	for channel, want := range map[string]struct{ read, gaps []string }{
		"a": {[]string{"read a 20 to 86460 in the background", "accept a/30"}, []string{"a 20 to 60"}},
		"": {
			[]string{"read a 20 to 86460 in the background", "accept a/30", "read b 20 to 86460 in the background", "accept b/40"},
			[]string{"a 20 to 60", "b 20 to 60"},
		},
	} {
		t.Run("channel "+channel, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.watermark = time.Time{}
				w.said["a"], w.said["b"], w.said["a:10"] = []int{30}, []int{40}, []int{10, 50}
				w.slow["a"], w.slow["b"] = time.Second, time.Second
			}, func(w *world) {
				w.up()
				advance(time.Minute)
				w.Missed(channel, w.at(20))
				same(w, "gaps", w.open(), want.gaps)
				same(w, "a turn of a thread from before the gap's end", w.turn("a:10"), "waits")
				same(w, "a turn of a later thread", w.turn("a:61"), "begins")
				same(w, "a turn in the other channel waits", w.turn("b") == "waits", channel == "")
				advance(time.Minute)
				same(w, "gaps after the read", w.open(), nil)
				same(w, "accepted", slices.Contains(w.known(), "a:10/50"), true)
				history := slices.DeleteFunc(w.history(), func(line string) bool {
					return strings.Contains(line, "urgently") || strings.Contains(line, "a:10")
				})
				slices.Sort(history)
				slices.Sort(want.read)
				same(w, "history", history, want.read)
			})
		})
	}
}

// TestMissedMessagesOfEveryMinute proves that a poller may report missed messages again and
// again: each message is read, and no range is read twice beyond the bound of the clocks.
func TestMissedMessagesOfEveryMinute(t *testing.T) {
	inWorld(t, func(w *world) { w.watermark = time.Time{}; w.said["a"] = []int{30, 90, 150} }, func(w *world) {
		w.up()
		var want []string
		for minute := range 3 {
			advance(time.Minute)
			w.Missed("a", w.at(60*minute))
			want = append(want, fmt.Sprintf("read a %d to %d in the background", 60*minute, 60*minute+180+86280))
		}
		advance(time.Minute)
		reads := slices.DeleteFunc(w.history(), func(line string) bool { return !strings.HasPrefix(line, "read") })
		same(w, "reads", reads, want)
		same(w, "accepted", w.known(), []string{"a/150", "a/30", "a/90"})
	})
}

// TestEveryMissedMessageIsRead draws connections, refusals, crashes, slow and failing
// reads in any order. No turn waits for more than ten seconds, and a turn that begins
// without a gap has its thread's missed messages.
func TestEveryMissedMessageIsRead(t *testing.T) {
	threads := []event.ThreadKey{"a:-9000", "a:-50", "b", "b:-9000"}
	rapid.Check(t, func(rt *rapid.T) {
		type step struct {
			What   string
			Thread event.ThreadKey
			Pause  int // seconds
		}
		steps := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
			return step{rapid.SampledFrom([]string{"misses", "misses", "refuses", "turn", "turn", "breaks", "mends", "slow", "quick", "crashes", "disk full"}).Draw(t, "what"),
				rapid.SampledFrom(threads).Draw(t, "thread"), rapid.IntRange(0, 90).Draw(t, "pause")}
		}), 3, 25).Draw(rt, "steps")
		var faults []string
		inWorld(t, func(w *world) { w.recent = threads }, func(w *world) {
			w.up()
			missing := func(thread event.ThreadKey) bool {
				w.mu.Lock()
				defer w.mu.Unlock()
				return slices.ContainsFunc(w.said[thread], func(second int) bool { return !w.accepted[fmt.Sprint(thread, "/", second)] })
			}
			for _, s := range steps {
				channel, _, _ := w.Began(s.Thread)
				switch s.What {
				case "misses": // the connection is away
					w.Down()
					advance(time.Second)
					w.change(func() { w.said[s.Thread] = append(w.said[s.Thread], w.second(time.Now())) })
					advance(time.Second)
					w.up()
				case "refuses":
					advance(time.Millisecond) // real time passes after the connection and its read
					w.change(func() { w.said[s.Thread] = append(w.said[s.Thread], w.second(time.Now())) })
					w.Refused(channel, false)
				case "turn":
					asked := time.Now()
					how := w.begins(s.Thread)
					if time.Since(asked) > 10*time.Second || how[:8] == "begins a" && missing(s.Thread) {
						faults = append(faults, fmt.Sprint(s.Thread, " ", how))
					}
				case "crashes":
					w.stop()
					w.start()
					w.up()
				}
				w.change(func() {
					switch s.What {
					case "breaks":
						w.broken[string(s.Thread)], w.broken[channel] = errDown, errDown
					case "slow":
						w.slow[string(s.Thread)], w.slow[channel] = time.Minute, time.Minute
					case "mends":
						clear(w.broken)
						w.busy = nil
					case "quick":
						clear(w.slow)
					case "disk full":
						w.busy = errDown
					}
				})
				advance(time.Duration(s.Pause) * time.Second)
			}
			w.change(func() {
				w.busy = nil
				clear(w.broken)
				clear(w.slow)
			})
			advance(10 * time.Minute)
			for _, thread := range threads {
				if missing(thread) {
					faults = append(faults, "missing in "+string(thread))
				}
			}
			if open := w.open(); len(open) > 0 {
				faults = append(faults, open...)
			}
		})
		if len(faults) > 0 {
			rt.Fatalf("%q", faults)
		}
	})
}

func TestConfigIsChecked(t *testing.T) {
	for _, c := range []backfill.Config{{MaxAge: -1, Messages: 1}, {MaxAge: 8 * 24 * time.Hour, Messages: 1}, {Messages: 0}, {Messages: 10_001}} {
		if len(c.Validate()) != 1 {
			t.Errorf("%+v: %v", c, c.Validate())
		}
	}
	if faults := backfill.DefaultConfig().Validate(); faults != nil {
		t.Error(faults)
	}
}
