package commands

import (
	"strings"
	"testing"
	"time"

	"parley/cmd/parley/internal/operator"
)

// TestTable lays out a table where nothing is cut, and on a terminal with colours that is too narrow.
func TestTable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		on   display
		want string
	}{
		{display{}, "ID  STATE   TITLE               ERROR\n7   failed  日本 and more text  it did not answer within 3 s\n12  up      -                   -\n"},
		{display{width: 40, colour: true}, "\x1b[2mID\x1b[0m  \x1b[2mSTATE\x1b[0m   \x1b[2mTITLE\x1b[0m          \x1b[2mERROR\x1b[0m\n" +
			"7   \x1b[31mfailed\x1b[0m  日本 and mor…  it did not a…\n12  \x1b[32mup\x1b[0m      -              -\n"},
	} {
		var out strings.Builder
		c.on.Writer = &out
		table := c.on.table("ID", "STATE", "TITLE", "ERROR")
		table.add(7, state("failed"), "日本 and more text", "it did not answer within 3 s")
		table.add(12, state("up"), "", "")
		if err := table.end(); err != nil || out.String() != c.want {
			t.Errorf("%v\n%q\n%q", err, out.String(), c.want)
		}
	}
}

// TestClock prints times as a person in Vienna reads them.
func TestClock(t *testing.T) {
	t.Parallel()
	vienna := time.FixedZone("", 2*60*60)
	now := time.Date(2026, 7, 2, 1, 0, 0, 0, vienna)
	for at, want := range map[time.Time]string{
		{}: "-", now.Add(-time.Minute).UTC(): "00:59:00 +02:00", now.Add(-2 * time.Hour): "2026-07-01 23:00:00 +02:00", now.Add(time.Hour): "02:00:00 +02:00",
	} {
		if got := clock(now, at); got != want {
			t.Errorf("%v: %s, want %s", at, got, want)
		}
	}
	if got := clockMS(now, now.Add(1500*time.Millisecond)); got != "01:00:01.500 +02:00" {
		t.Error(got)
	}
	next := now.Add(time.Hour)
	for zone, want := range map[string]string{"": "02:00:00 +02:00", "America/New_York": "20:00:00 -04:00 America/New_York"} {
		if got := inZone(now, &next, zone); got != want {
			t.Errorf("%s: %s, want %s", zone, got, want)
		}
	}
}

// TestTook rounds durations for people.
func TestTook(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{306 * time.Microsecond: "0 ms", 9413 * time.Microsecond: "9 ms", 1669 * time.Millisecond: "1.7 s", 124 * time.Second: "2 min 4 s"} {
		if got := took(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}

// TestStepLine prints a step of a message.
func TestStepLine(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 7, 2, 1, 0, 0, 7e6, time.UTC)
	got := stepLine(display{}, operator.Step{At: now, Workspace: "acme", Thread: "slack:acme:C1", What: operator.StepAttempt, Agent: "echo", Detail: "answered", MS: 1669}, now)
	if got != "01:00:00.007 +00:00  acme  attempt   slack:acme:C1  → echo  answered  1.7 s" {
		t.Error(got)
	}
}
