package runapi_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

// TestAnUnreadableMessageIsLeftOut checks that a message that cannot be read costs itself alone, as in the
// published client (@vertesia/client, WorkflowsApi.streamMessages), and that a WARNING tells it once, however often the stream
// begins again.
func TestAnUnreadableMessageIsLeftOut(t *testing.T) {
	const answer, end = `{"t":7,"m":"hi","ts":2000}`, `{"t":4,"ts":3000}`
	for raw, warns := range map[string]bool{
		`{"type":"restarting","message":"r","timestamp":1795900000000}`: true, `{"t":"nothing"}`: true, `{}`: true, `null`: true, `no JSON`: true, `[]`: true,
		`{"t":7,"m":"x","f":2}`: true, `{"t":7,"f":true}`: true, `{"t":7,"m":5}`: true, `{"t":3,"i":7}`: true, `{"t":1.0}`: true, `{"t":null}`: true, `{"t":3,"ts":"yesterday"}`: true,
		`{"type":"pong"}`: false, `{"type":"ack"}`: false, `{"t":14}`: false, `{"t":3,"d":[1]}`: false,
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &server{scripts: []func(http.ResponseWriter){streams(raw, `{"t":1,"m":"Hm.","ts":1000}`), streams(raw, answer, end)}}
			got, _, err := run(t, s, nil)
			warnings := slices.DeleteFunc(slices.Clone(got), func(m string) bool { return !strings.HasPrefix(m, "WARNING A message of the agent is left out") })
			if err != nil || !slices.Contains(got, "ANSWER hi") || len(warnings) != map[bool]int{true: 1}[warns] || len(s.sinces) != 2 {
				t.Errorf("%s: %q, %v", raw, got, err)
			}
		})
	}
}

// TestAMessageThatTheConnectionCutIsNoFault: the server sends it again whole, and the run has no WARNING.
func TestAMessageThatTheConnectionCutIsNoFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{scripts: []func(http.ResponseWriter){streams(`{"t":1,"m":"Hm.","ts":1000}`, `{"t":7,"m":"h`), streams(`{"t":7,"m":"hi","ts":2000}`, `{"t":4,"ts":3000}`)}}
		got, _, err := run(t, s, nil)
		if want := []string{"THOUGHT Hm.", "ANSWER hi", "COMPLETE "}; err != nil || !slices.Equal(got, want) {
			t.Errorf("%q, %v", got, err)
		}
	})
}
