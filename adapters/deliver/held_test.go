package deliver_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"parley/adapters/deliver"
	"parley/ingest/journal/outbox"
)

// hold makes the policy hold, and sends one text, whose outcome stays unknown. It returns its delivery.
func (o *fixture) hold(f fault) int64 {
	o.Helper()
	o.platform.Unknown = func(*outbox.Delivery) string { return "hold" }
	o.chat.faults["one"] = []fault{f}
	for range 100 {
		o.chat.findings = append(o.chat.findings, errors.New("the platform is down"))
	}
	o.reply("t", "one", "two")
	o.send()
	advance(30 * time.Minute)
	o.chat.findings = nil
	rows, err := o.journal.Listing.Deliveries(o.Context(), []string{"unknown", "failed"}, 0, 10)
	o.must(err)
	if len(rows) == 0 {
		o.Fatal("no delivery is held")
	}
	return rows[len(rows)-1].ID
}

// resend asks for a held delivery to be sent again, and lets that happen.
func (o *fixture) resend(id int64, force bool) error {
	o.Helper()
	err := o.box(o.journal, o.scheduler).ResendHeld(o.Context(), id, force)
	advance(time.Minute)
	synctest.Wait()
	return err
}

// TestResendHeldLooksFirst proves that an operator's request doubles no post.
func TestResendHeldLooksFirst(t *testing.T) {
	t.Run("the post is there", func(t *testing.T) {
		withOutbox(t, func(o *fixture) {
			id := o.hold(arrived)
			for range 2 { // the second time, the delivery is known as sent
				if err := o.resend(id, false); !errors.Is(err, outbox.SentError{PostID: "C1/1"}) {
					o.Errorf("%v", err)
				}
			}
			same(t, "posts", o.chat.texts(), []string{"one", "two"})
		})
	})
	t.Run("the post is not there", func(t *testing.T) {
		withOutbox(t, func(o *fixture) {
			id := o.hold(lost)
			o.must(o.resend(id, false))
			if err := o.resend(id, false); !errors.Is(err, outbox.SentError{PostID: "C1/2"}) {
				o.Errorf("again: %v", err)
			}
			same(t, "posts", o.chat.texts(), []string{"two", "one"})
		})
	})
	t.Run("the platform cannot be asked", func(t *testing.T) {
		withOutbox(t, func(o *fixture) {
			id := o.hold(lost)
			o.chat.findings = []error{errors.New("the platform is down")}
			if err := o.resend(id, false); err == nil {
				o.Error("it is sent without a look")
			}
			o.platform.Sender = o.chat // which finds nothing
			if err := o.resend(id, false); !errors.Is(err, deliver.ErrCantLook) {
				o.Errorf("%v", err)
			}
			same(t, "posts", o.chat.texts(), []string{"two"})
			o.must(o.resend(id, true))
			same(t, "posts with force", o.chat.texts(), []string{"two", "one"})
		})
	})
	t.Run("the platform refused it", func(t *testing.T) {
		withOutbox(t, func(o *fixture) {
			id := o.hold(permanent)
			same(t, "posts", o.chat.texts(), []string{answerRefused})
			o.chat.faults["one"] = []fault{permanent}
			o.must(o.resend(id, false))
			same(t, "told once", o.chat.texts(), []string{answerRefused})
			o.must(o.resend(id, false))
			same(t, "posts", o.chat.texts(), []string{answerRefused, "one", "two"})
		})
	})
}
