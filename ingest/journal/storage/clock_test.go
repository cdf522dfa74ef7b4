package storage

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestSteadyClock(t *testing.T) {
	begun := time.UnixMilli(1_700_000_000_000).UTC()
	wall, age := begun, time.Duration(0)
	now := steady(func() (time.Time, time.Duration) { return wall, age })
	for _, step := range []struct {
		what      string
		wall, age time.Duration // by which the two clocks move on
		want      time.Duration // since the start
	}{
		{"at the start", 0, 0, 0},
		{"after a minute", time.Minute, time.Minute, time.Minute},
		{"after the wall clock was set back", time.Second - time.Hour, time.Second, time.Minute + time.Second},
		{"a second later", time.Second, time.Second, time.Minute + 2*time.Second},
		{"after the wall clock was set right", time.Hour, 0, time.Minute + 2*time.Second},
		{"after a suspension", 8 * time.Hour, time.Second, 8*time.Hour + time.Minute + 2*time.Second},
		{"a minute later", time.Minute, time.Minute, 8*time.Hour + 2*time.Minute + 2*time.Second},
	} {
		wall, age = wall.Add(step.wall), age+step.age
		if got := now(); !got.Equal(begun.Add(step.want)) {
			t.Errorf("%s: %v after the start, want %v", step.what, got.Sub(begun), step.want)
		}
	}
}

func TestNewSteadyClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := NewSteadyClock()
		for range 2 {
			if want, got := time.Now(), now(); !got.Equal(want) {
				t.Errorf("%v, want %v", got, want)
			}
			<-time.After(time.Minute)
		}
	})
}
