package schedules

import (
	"errors"
	"math"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// Timing is when a schedule ticks: at the minutes of a cron expression, or once.
type Timing struct {
	Cron     string    `json:"cron,omitempty"`      // five fields; empty for once
	TimeZone string    `json:"time_zone,omitempty"` // of Cron; empty for UTC
	At       time.Time `json:"at,omitzero"`         // without Cron
}

// The faults of a Timing. They contain no part of it.
var (
	errZone  = errors.New("must be the name of a time zone, such as Europe/Vienna")
	errCron  = errors.New("must be five fields, minute, hour, day, month and weekday (0 to 6), such as 0 9 * * 1-5")
	errNever = errors.New("has no such day in any year")
)

// fields reads the five fields of a cron expression, and no other form of the library.
var fields = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)

// CheckCron returns the fault of a cron expression; nil for none.
func CheckCron(expression string) error {
	_, err := parse(expression)
	return err
}

// Distance returns the least time between two of the next wall times of a valid expression.
func Distance(expression string, now time.Time) time.Duration {
	walls, err := parse(expression)
	if err != nil {
		return 0
	}
	const looked = 300 // times; each pattern of minutes and hours repeats within a day
	least, at := time.Duration(math.MaxInt64), walls.Next(now.UTC())
	for range looked {
		next := walls.Next(at)
		if next.IsZero() {
			break
		}
		least, at = min(least, next.Sub(at)), next
	}
	return least
}

// CheckZone returns the fault of the name of a time zone; nil for none. The empty name is UTC.
func CheckZone(name string) error {
	if _, err := time.LoadLocation(name); err != nil || name == "Local" {
		return errZone
	}
	return nil
}

// parse returns the schedule of the wall times of an expression.
func parse(expression string) (cron.Schedule, error) {
	if strings.Contains(expression, "=") { // the library would take a time zone of its own
		return nil, errCron
	}
	walls, err := fields.Parse(expression)
	switch {
	case err != nil:
		return nil, errCron
	case walls.Next(time.Unix(0, 0).UTC()).IsZero():
		return nil, errNever
	}
	return walls, nil
}

// clock is a Timing that is ready to be asked.
type clock struct {
	at    time.Time // of a Timing without cron
	walls cron.Schedule
	zone  *time.Location
}

// clock returns the clock of a timing.
func (t Timing) clock() (c clock, err error) {
	if t.Cron == "" {
		return clock{at: t.At}, nil
	}
	if c.walls, err = parse(t.Cron); err != nil {
		return c, err
	}
	if c.zone, err = time.LoadLocation(t.TimeZone); err != nil {
		return c, errZone
	}
	return c, nil
}

// Next returns the first tick after a time; zero for none.
func (t Timing) Next(after time.Time) time.Time {
	c, err := t.clock()
	if err != nil {
		return time.Time{}
	}
	return c.next(after)
}

// next returns the first tick after a time; zero for none.
//
// The library runs on wall times, as if they were UTC, because its own treatment of daylight saving leaves out
// minutes, and repeats others: a minute that does not exist here is the next one that exists, and one that comes
// twice is the first of both.
func (c clock) next(after time.Time) time.Time {
	if c.walls == nil {
		if c.at.After(after) {
			return c.at
		}
		return time.Time{}
	}
	wall := naive(after.In(c.zone))
	for {
		if wall = c.walls.Next(wall); wall.IsZero() {
			return wall
		}
		if at := first(wall, c.zone); at.After(after) {
			return at
		}
	}
}

// naive returns the wall time of an instant as a time of UTC.
func naive(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
}

// first returns the first instant at which the clocks of a zone show a wall time. If they skip it, it is the instant
// at which they do.
func first(wall time.Time, zone *time.Location) time.Time {
	one := time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), 0, 0, zone)
	begin, end := one.ZoneBounds()
	var earliest time.Time
	for _, other := range []time.Time{begin.Add(-time.Second), one, end} { // the offsets before, at and after it
		if other.IsZero() || other.Year() < 1 {
			continue
		}
		_, offset := other.In(zone).Zone()
		at := wall.Add(-time.Duration(offset) * time.Second).In(zone)
		if naive(at).Equal(wall) && (earliest.IsZero() || at.Before(earliest)) {
			earliest = at
		}
	}
	if !earliest.IsZero() {
		return earliest.UTC()
	}
	if !begin.IsZero() && naive(begin).After(wall) { // the gap is at the begin of the period
		return begin.UTC()
	}
	return end.UTC()
}
