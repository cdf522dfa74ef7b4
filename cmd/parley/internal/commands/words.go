package commands

import (
	"fmt"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
)

// count returns a number of things, such as "1 fault" or "12,000 faults".
func count[N int | int64](n N, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%s %s", humanize.Comma(int64(n)), thing)
}

// are returns the verb for a number of things.
func are[N int | int64](n N) string { return verb(n, "is", "are") }

// verb returns the form of a verb for a number of things.
func verb[N int | int64](n N, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// withName returns an id behind its name, if that is known.
func withName(name, id string) string {
	if name == "" || name == id {
		return id
	}
	return name + " (" + id + ")"
}

// place returns the name of a channel, or its id if it has none.
func place(name, id string) string {
	if name == "" {
		return oneLine(id)
	}
	return "#" + oneLine(strings.TrimPrefix(name, "#"))
}

// size returns a number of bytes in words, such as "412 MB".
func size(bytes int64) string { return humanize.Bytes(uint64(max(0, bytes))) }

// age returns a time as its distance from now, such as "12 min".
func age(now, at time.Time) string {
	if at.IsZero() {
		return "-"
	}
	switch d := now.Sub(at); {
	case d < time.Minute:
		return fmt.Sprintf("%d s", max(0, int(d.Seconds())))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	default:
		return fmt.Sprintf("%d d", int(d.Hours())/24)
	}
}

// clock returns a time in the place of now, with its distance from UTC, and with the date unless it is of the same day.
func clock(now, at time.Time) string { return moment(now, at, time.TimeOnly) }

// clockMS is clock with milliseconds.
func clockMS(now, at time.Time) string { return moment(now, at, "15:04:05.000") }

func moment(now, at time.Time, layout string) string {
	if at.IsZero() {
		return "-"
	}
	at = at.In(now.Location())
	if at.Format(time.DateOnly) != now.Format(time.DateOnly) {
		layout = time.DateOnly + " " + layout
	}
	return at.Format(layout + " -07:00")
}

// took returns how long something took, such as "5 ms", "1.7 s" or "2 min 4 s".
func took(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	default:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	}
}
