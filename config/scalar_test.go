package config

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestDurations(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0":      0,
		"0s":     0,
		"2500ms": 2500 * time.Millisecond,
		"10s":    10 * time.Second,
		"1h30m":  90 * time.Minute,
		"8d":     192 * time.Hour,
		"1d12h":  36 * time.Hour,
	} {
		if got, err := duration(text); err != nil || got != want {
			t.Errorf("duration(%q) = %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "10", "-1s", "+1s", "1d-1h", "d", "1.5d", "999999d", "99999d2540400h", "10 s", "1w", "ten"} {
		if got, err := duration(text); err == nil {
			t.Errorf("duration(%q) = %v, want a fault", text, got)
		}
	}
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]int64{
		"0":       0,
		"4194304": 4 << 20,
		"5B":      5,
		"3kB":     3000,
		"512KiB":  512 << 10,
		"20MiB":   20 << 20,
		"20 MiB":  20 << 20,
		"1GB":     1e9,
	} {
		if got, err := size(text); err != nil || got != want {
			t.Errorf("size(%q) = %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "-1", "1.5MiB", "4 mib", "MiB", "1TB", "9223372036854775808", "9223372036854775807KiB"} {
		if got, err := size(text); err == nil {
			t.Errorf("size(%q) = %v, want a fault", text, got)
		}
	}
}

// TestDurationsPrintedByGoAreRead draws any duration that is not negative.
func TestDurationsPrintedByGoAreRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := time.Duration(rapid.Int64Min(0).Draw(t, "d"))
		if got, err := duration(want.String()); err != nil || got != want {
			t.Fatalf("duration(%q) = %v, %v", want, got, err)
		}
	})
}
