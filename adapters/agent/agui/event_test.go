package agui

import (
	"reflect"
	"testing"
)

// FuzzDelta checks that an event that is read without package json is the event that package json reads.
func FuzzDelta(f *testing.F) {
	for _, seed := range []string{
		`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"Hi"}`, `{"delta":"\ud83d","messageId":"m","timestamp":1,"rawEvent":{"a":[]},"type":"REASONING_MESSAGE_CONTENT"}`,
		`{"type":"TEXT_MESSAGE_CONTENT","messageId":null,"delta":"Hi"}`, `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"Hi","Type":"RAW"}`,
		`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":[]}`, `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"Hi","subagentRunId":"s"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, ok := deltaOf(data)
		if !ok {
			return
		}
		want, err := decodeAny(data)
		if err != nil || !reflect.DeepEqual(want, got) {
			t.Errorf("%s: %+v, want %+v, %v", data, got, want, err)
		}
	})
}

// TestDelta checks that the events of nearly every answer are read without package json.
func TestDelta(t *testing.T) {
	if _, ok := deltaOf([]byte(`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"Hi","timestamp":1764547200000}`)); !ok {
		t.Error("not read")
	}
}
