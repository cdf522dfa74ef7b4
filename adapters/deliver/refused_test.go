package deliver_test

import (
	"testing"
	"time"

	"parley/ingest/journal/outbox"
)

// What people read of a refused answer.
const (
	answerRefused = "Sorry, the platform did not accept my answer."
	restRefused   = "Sorry, the platform did not accept the rest of my answer."
)

// TestARefusedNoticeEndsIt: a platform that refuses the answer and the notice is asked no further, also after a restart, and the next
// reply is sent. The operator sees the answer as failed; the notice needs nobody.
func TestARefusedNoticeEndsIt(t *testing.T) {
	withOutbox(t, func(o *fixture) {
		o.chat.faults["one"] = []fault{permanent, permanent}
		o.chat.faults[answerRefused] = []fault{permanent, permanent}
		o.reply("t", "one", "two")
		o.reply("t", "next")
		o.send()
		advance(time.Minute)
		same(t, "posts", o.chat.texts(), []string{"next"})
		same(t, "states", o.settled(), []outbox.State{failed, failed, sent})
		o.send()
		same(t, "calls", len(o.chat.times("one"))+len(o.chat.times(answerRefused)), 2)
	})
}
