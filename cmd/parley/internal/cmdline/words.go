package cmdline

import (
	"fmt"
	"time"

	"github.com/dustin/go-humanize"
)

// Count returns a number of things, such as "1 fault" or "12,000 faults".
func Count[N int | int64](n N, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%s %s", humanize.Comma(int64(n)), thing)
}

// Are returns the verb for a number of things.
func Are[N int | int64](n N) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// Size returns a number of bytes in words, such as "412 MB".
func Size(bytes int64) string { return humanize.Bytes(uint64(max(0, bytes))) }

// Age returns a time as its distance from now, such as "12 min".
func Age(now, at time.Time) string {
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
