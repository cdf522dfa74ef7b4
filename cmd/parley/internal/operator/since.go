package operator

import (
	"errors"
	"regexp"
	"strconv"
	"time"
)

// errSince is the error of a text that is no time.
var errSince = errors.New("must be a duration such as 90m, 7d or 2w, or a time such as 2026-11-27 or 2026-11-27T09:00:00Z")

// days matches a number of days or weeks.
var days = regexp.MustCompile(`^([0-9]{1,5})([dw])$`)

// after returns the time that lies a duration after another one, or before it if sign is -1. The duration has the units of Go, or days (d) or
// weeks (w) of the calendar. It returns false if the text is no duration.
func after(at time.Time, text string, sign int) (time.Time, bool) {
	if m := days.FindStringSubmatch(text); m != nil {
		n, _ := strconv.Atoi(m[1]) // it matches
		if m[2] == "w" {
			n *= 7
		}
		return at.AddDate(0, 0, sign*n), true
	}
	d, err := time.ParseDuration(text)
	return at.Add(time.Duration(sign) * d), err == nil && d > 0
}

// Since reads a time in the past: a duration before now, in the units of Go or in days (d) or weeks (w), or a date with
// or without a time of day, in the location of now unless it names its own.
func Since(text string, now time.Time) (time.Time, error) {
	if at, ok := after(now, text, -1); ok {
		return at, nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly, "2006-01-02T15:04", "2006-01-02T15:04:05", "2006-01-02 15:04", time.DateTime} {
		if at, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return at, nil
		}
	}
	return time.Time{}, errSince
}

// Until reads a time like Since. A date without a time of day is the end of that day.
func Until(text string, now time.Time) (time.Time, error) {
	at, err := Since(text, now)
	if _, date := time.Parse(time.DateOnly, text); date == nil {
		at = at.AddDate(0, 0, 1).Add(-time.Millisecond)
	}
	return at, err
}
