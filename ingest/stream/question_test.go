package stream_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/ingest/stream"
)

func TestAsk(t *testing.T) {
	options := []stream.Option{{ID: "a", Label: "Yes please"}, {ID: "b", Label: "No"}}
	for details, want := range map[string]stream.Ask{
		``:            {},
		`null`:        {},
		`[1]`:         {},
		`{"ux":"x"}`:  {},
		`{"ux":null}`: {},
		`{"other":1}`: {},
		`{"ux":{"options":[{"id":"a","label":"Yes\n please","description":"d"},{"id":"b","label":"No"}]}}`: {Options: options},
		`{"ux":{"options":[{"id":"a","label":" "}]}}`:                                                      {},
		`{"ux":{"options":[{"label":"Yes"}]}}`:                                                             {},
		`{"approval":true,"expires_at":"2026-03-04T05:06:07Z"}`:                                            {Approval: true, ExpiresAt: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)},
	} {
		if diff := cmp.Diff(want, (stream.Message{Details: []byte(details)}).Ask()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", details, diff)
		}
	}
	many := `{"id":"a","label":"A"}` + strings.Repeat(`,{"id":"b","label":"B"}`, 39) // more than any platform's buttons
	if got := (stream.Message{Details: []byte(`{"ux":{"options":[` + many + `]}}`)}).Ask(); len(got.Options) != 40 {
		t.Errorf("%d options", len(got.Options))
	}
	if got := (stream.Ask{Options: options}).Numbered("Shall I?"); got != "Shall I?\n\n1. Yes please\n2. No" {
		t.Errorf("%q", got)
	}
	if got := (stream.Ask{}).Numbered("Shall I?"); got != "Shall I?" {
		t.Errorf("%q", got)
	}
}
