package slack

import "testing"

// TestAFrameOfAClosingSocketIsRejected drops the last retry of a frame because its socket is
// closing. The event is lost, so that the next accepted frame reports a gap.
func TestAFrameOfAClosingSocketIsRejected(t *testing.T) {
	a := New("acme", DefaultConfig())
	for retry, lost := range map[int]bool{lastRetry - 1: false, lastRetry: true} {
		s := &sockets{adapter: a, times: a.times, frameSlots: slots(1)}
		c := &socket{set: s, closing: true}
		c.accept(wireFrame{RetryAttempt: retry}, nil)
		if s.eventLost != lost || len(s.frameSlots) != 1 {
			t.Errorf("retry %d: the event is lost: %v; %d slots are free", retry, s.eventLost, len(s.frameSlots))
		}
	}
}
