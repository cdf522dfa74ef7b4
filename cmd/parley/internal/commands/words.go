package commands

import (
	"fmt"
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
func are[N int | int64](n N) string {
	if n == 1 {
		return "is"
	}
	return "are"
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
