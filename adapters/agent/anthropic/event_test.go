package anthropic

import (
	"encoding/json"
	"reflect"
	"testing"
)

// FuzzText checks that an event that is read without package json has this text alone for package json, too.
func FuzzText(f *testing.F) {
	for _, seed := range []string{
		ofAnthropic, `{"delta":{"text":"\ud83d","type":"text_delta","signature":null},"type":"content_block_delta","usage":null}`,
		`{"type":"content_block_delta","delta":{"type":"text_delta","text":null}}`, `{"type":"content_block_delta","delta":{"type":"thinking_delta","text":"Hi"}}`,
		`{"type":"error","delta":{"type":"text_delta","text":"Hi"}}`, `{"type":"content_block_delta","Delta":{},"delta":{"type":"text_delta","text":"Hi"}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		text, ok := textOf(data)
		if !ok {
			return
		}
		var got, want streamEvent
		if err := json.Unmarshal(data, &got); err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		for _, raw := range []*json.RawMessage{&got.Error, &got.Message, &got.Content, &got.Delta.Thinking, &got.Delta.Citation} {
			if string(*raw) == "null" {
				*raw = nil
			}
		}
		want.Type, want.Delta.Type, want.Delta.Text = "content_block_delta", "text_delta", text
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", data, got, want)
		}
	})
}

const ofAnthropic = `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}`

// TestText checks that the events of nearly every answer are read without package json.
func TestText(t *testing.T) {
	if _, ok := textOf([]byte(ofAnthropic)); !ok {
		t.Error("not read")
	}
}
