package schedules

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func ticks(t *testing.T, timing Timing, from, until string) (list []string) {
	t.Helper()
	at, err := time.Parse(time.RFC3339, from)
	if err != nil {
		t.Fatal(err)
	}
	end, err := time.Parse(time.RFC3339, until)
	if err != nil {
		t.Fatal(err)
	}
	for at = timing.Next(at.Add(-time.Second)); !at.IsZero() && at.Before(end); at = timing.Next(at) {
		list = append(list, at.UTC().Format("15:04"))
	}
	return list
}

func equal(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// In Vienna the clocks go from 02:00 to 03:00 at 01:00 UTC on 29 March 2026, and from 03:00 to 02:00 at 01:00 UTC on
// 25 October 2026. On Lord Howe Island they go by half an hour.
func TestTicksAcrossDaylightSaving(t *testing.T) {
	for name, c := range map[string]struct {
		cron, zone, from, until string
		want                    []string
	}{
		"a minute that is removed runs at the next one that exists": {"30 2 * * *", "Europe/Vienna", "2026-03-28T12:00:00Z", "2026-03-30T12:00:00Z", []string{"01:00", "00:30"}},
		"the first minute that is removed":                          {"0 2 * * *", "Europe/Vienna", "2026-03-28T12:00:00Z", "2026-03-29T12:00:00Z", []string{"01:00"}},
		"the last minute that is removed":                           {"59 2 * * *", "Europe/Vienna", "2026-03-28T12:00:00Z", "2026-03-29T12:00:00Z", []string{"01:00"}},
		"a minute after the change":                                 {"0 3 * * *", "Europe/Vienna", "2026-03-28T12:00:00Z", "2026-03-29T12:00:00Z", []string{"01:00"}},
		"removed minutes run once together":                         {"*/30 * * * *", "Europe/Vienna", "2026-03-29T00:00:00Z", "2026-03-29T02:00:00Z", []string{"00:00", "00:30", "01:00", "01:30"}},
		"a minute that comes twice runs once":                       {"30 2 * * *", "Europe/Vienna", "2026-10-24T12:00:00Z", "2026-10-26T12:00:00Z", []string{"00:30", "01:30"}},
		"the hour that comes twice":                                 {"*/30 * * * *", "Europe/Vienna", "2026-10-25T00:00:00Z", "2026-10-25T03:00:00Z", []string{"00:00", "00:30", "02:00", "02:30"}},
		"the day of a change that is not at midnight":               {"0 0 * * *", "Europe/Vienna", "2026-10-24T12:00:00Z", "2026-10-26T12:00:00Z", []string{"22:00", "23:00"}},
		"a change of half an hour, forward":                         {"15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z", "2026-10-04T00:00:00Z", []string{"15:30"}},
		"a change of half an hour, back":                            {"45 1 * * *", "Australia/Lord_Howe", "2026-04-04T00:00:00Z", "2026-04-05T00:00:00Z", []string{"14:45"}},
		"a minute that comes twice west of Greenwich":               {"1 1 1 11 *", "America/New_York", "2026-11-01T00:00:00Z", "2026-11-02T00:00:00Z", []string{"05:01"}},
		"midnight is removed":                                       {"0 0 * * *", "America/Santiago", "2026-09-05T12:00:00Z", "2026-09-07T12:00:00Z", []string{"04:00", "03:00"}},
		"a zone without changes":                                    {"0 9 * * *", "Asia/Tokyo", "2026-03-29T00:00:00Z", "2026-03-30T00:00:00Z", []string{"00:00"}},
		"UTC":                                                       {"30 2 * * *", "", "2026-03-29T00:00:00Z", "2026-03-30T00:00:00Z", []string{"02:30"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ticks(t, Timing{Cron: c.cron, TimeZone: c.zone}, c.from, c.until); !equal(got, c.want) {
				t.Errorf("ticks %v, want %v", got, c.want)
			}
		})
	}
}

// Every wall minute of an expression has exactly one tick, and ticks only go forward.
func TestEachWallMinuteTicksOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		zone := rapid.SampledFrom([]string{"Europe/Vienna", "America/New_York", "Australia/Lord_Howe", "America/Santiago", "Africa/Casablanca", "Asia/Kathmandu"}).Draw(t, "zone")
		at := time.Unix(rapid.Int64Range(1767225600, 1830297600).Draw(t, "from"), 0)
		location, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		every, daily := Timing{Cron: "* * * * *", TimeZone: zone}, Timing{Cron: "30 2 * * *", TimeZone: zone}
		next := every.Next(at)
		if !next.After(at) || next.Second() != 0 {
			t.Fatalf("after %v comes %v", at, next)
		}
		seen := map[string]bool{}
		for range 40 {
			at = daily.Next(at)
			day := at.In(location).Format("2006-01-02")
			if seen[day] {
				t.Fatalf("%s ticks twice", day)
			}
			seen[day] = true
		}
	})
}

func TestOnce(t *testing.T) {
	at := time.Date(2026, 5, 1, 9, 0, 0, 0, time.UTC)
	if got := (Timing{At: at}).Next(at.Add(-time.Hour)); !got.Equal(at) {
		t.Errorf("next %v", got)
	}
	if got := (Timing{At: at}).Next(at); !got.IsZero() {
		t.Errorf("after it %v", got)
	}
}

func TestFaults(t *testing.T) {
	for _, wrong := range []string{"", "* * * *", "* * * * * *", "@daily", "@every 5m", "TZ=UTC * * * * *", "CRON_TZ=UTC * * * * *", "61 * * * *", "0 0 30 2 *", "a b c d e"} {
		if CheckCron(wrong) == nil {
			t.Errorf("%q has no fault", wrong)
		}
	}
	for _, right := range []string{"0 9 * * 1-5", "*/15 8-18 * * MON-FRI", "0 0 29 2 *"} {
		if err := CheckCron(right); err != nil {
			t.Errorf("%q: %v", right, err)
		}
	}
	if CheckZone("Nowhere/Town") == nil || CheckZone("Local") == nil || CheckZone("") != nil || CheckZone("Europe/Vienna") != nil {
		t.Error("time zones")
	}
}
