package ingest

import (
	"testing"

	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/record"
)

// TestTextMessages checks the handling of messages whose senders may claim any address.
func TestTextMessages(t *testing.T) {
	run := record.Result{Trigger: messages.TriggerRun, Result: event.Result{Disposition: event.Stored, Reason: event.ReasonMention}}
	shown := record.Result{Trigger: messages.TriggerPassive, Result: event.Result{Disposition: event.Stored, Reason: event.ReasonSMS}}
	for name, test := range map[string]struct {
		sms   string
		users []string
		want  record.Result
	}{
		"the default":                  {"", nil, run},
		"the default with a list":      {"", []string{"U1"}, shown},
		"as context":                   {SMSShown, nil, shown},
		"like others, in spite of one": {SMSRun, []string{"U1"}, run},
		"ignored":                      {SMSIgnored, nil, record.Result{Trigger: messages.TriggerNone, Result: *event.Ignore(event.ReasonSMS)}},
	} {
		inBubble(t, func(h *harness) {
			h.settings.Policy.SMS, h.settings.Policy.AllowUsers = test.sms, test.users
			h.work()
			got := h.send(payload{ID: "1", Text: "@bot hi", Mention: true, SMS: true})
			if got.Trigger != test.want.Trigger || got.Result != test.want.Result {
				t.Errorf("%s: %+v, %s", name, got.Result, got.Trigger)
			}
			if other := h.send(payload{ID: "2", Text: "@bot hi", Mention: true}); other.Trigger != messages.TriggerRun {
				t.Errorf("%s: another message: %+v", name, other.Result)
			}
		})
	}
}
