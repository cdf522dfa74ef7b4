package call

import (
	"testing"
	"time"
)

// TestAMethodRests proves that a method rests for the whole wait and no longer, and that no
// other method does.
func TestAMethodRests(t *testing.T) {
	var resting rests
	begun := time.Unix(1_700_000_000, 0)
	resting.rest("edit", begun.Add(time.Minute))
	for method, want := range map[string][]time.Duration{
		"edit":   {time.Minute, 15 * time.Second, 0, 0},
		"delete": {0, 0, 0, 0},
	} {
		for i, after := range []time.Duration{0, 45 * time.Second, time.Minute, time.Hour} {
			if got := resting.left(method, begun.Add(after)); got != want[i] {
				t.Errorf("%s rests for %v after %v, want %v", method, got, after, want[i])
			}
		}
	}
}
