package stream_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/ingest/stream"
)

var noon = time.UnixMilli(1_700_000_000_000).UTC()

// TestCompact checks the wire form of messages, and that reading it gives the message.
func TestCompact(t *testing.T) {
	for want, m := range map[string]stream.Message{
		`{"t":0}`:                       {Type: stream.System},
		`{"t":7,"m":"x","ts":5}`:        {Type: stream.Answer, Text: "x", Time: time.UnixMilli(5).UTC()},
		`{"t":14,"d":{"a":1}}`:          {Type: 14, Details: json.RawMessage(`{"a":1}`)},
		`{"t":3,"w":"w1","i":"act"}`:    {Type: stream.Update, Workstream: "w1", ActivityID: "act"},
		`{"t":12,"m":"c","ts":1}`:       {Type: stream.StreamingChunk, Text: "c", Time: time.UnixMilli(1).UTC()},
		`{"t":12,"m":"c","f":1,"ts":1}`: {Type: stream.StreamingChunk, Text: "c", Final: true, Time: time.UnixMilli(1).UTC()},
	} {
		raw, err := json.Marshal(m)
		if err != nil || string(raw) != want {
			t.Errorf("%+v is %s, %v; want %s", m, raw, err, want)
		}
		got, err := stream.Parse(raw)
		if diff := cmp.Diff(m, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", raw, err, diff)
		}
	}
	if raw, err := json.Marshal(stream.Message{Type: stream.Answer, Workstream: stream.Main}); err != nil || string(raw) != `{"t":7}` {
		t.Errorf("the main workstream is written: %s, %v", raw, err)
	}
}

// TestParse checks messages in both forms, and as texts.
func TestParse(t *testing.T) {
	for raw, want := range map[string]stream.Message{
		`"{\"t\":3}"`:                                {Type: stream.Update},
		`{"t":3,"type":7,"extra":1}`:                 {Type: stream.Update},
		`{"t":7,"f":0,"w":"main","d":null}`:          {Type: stream.Answer},
		`{"t":"answer","ts":"2023-11-14T22:13:20Z"}`: {Type: stream.Answer, Time: noon},
		`{"type":"answer","message":"x"}`:            {Type: stream.Answer, Text: "x"},
		`{"type":14,"message":"x","timestamp":5}`:    {Type: 14, Text: "x", Time: time.UnixMilli(5).UTC()},
		`{"type":10,"timestamp":0,"message":"","workflow_run_id":"r","workstream_id":"main"}`: {Type: stream.Idle},
		`{"type":3,"details":0}`:  {Type: stream.Update},
		`{"type":3,"details":{}}`: {Type: stream.Update, Details: json.RawMessage(`{}`)},
		`{"type":12,"message":"c","workstream_id":"w","timestamp":1,"details":{"streaming_id":"s","activity_id":"a","is_final":false}}`: {
			Type: stream.StreamingChunk, Text: "c", Workstream: "w", Time: time.UnixMilli(1).UTC(), ActivityID: "a", Details: json.RawMessage(`{"streaming_id":"s"}`)},
		`{"type":12,"message":"c","details":{"is_final":"yes"}}`: {Type: stream.StreamingChunk, Text: "c", Final: true},
	} {
		got, err := stream.Parse([]byte(raw))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", raw, err, diff)
		}
	}
	for _, raw := range []string{`[]`, `5`, `null`, `{}`, `{"foo":1}`, `not json`, `"not json"`, `{"t":null}`, `{"t":7,"f":2}`, `{"t":"nothing"}`,
		`{"type":12,"details":{"activity_id":7}}`} {
		if m, err := stream.Parse([]byte(raw)); err == nil {
			t.Errorf("%s was read as %+v", raw, m)
		}
	}
}

// TestReadable checks the readable form of compact messages, and that it reads back as the
// same message.
func TestReadable(t *testing.T) {
	const head = `{"timestamp":1700000000000,"workflow_run_id":"r",`
	for raw, want := range map[string]string{
		`{"t":7}`:                         head + `"type":7,"message":"","workstream_id":"main"}`,
		`{"t":7,"d":0}`:                   head + `"type":7,"message":"","details":0,"workstream_id":"main"}`,
		`{"t":7,"m":"x","ts":5,"w":"w1"}`: `{"timestamp":5,"workflow_run_id":"r","type":7,"message":"x","workstream_id":"w1"}`,
		`{"t":7,"m":"x","w":"","d":null,"i":"act"}`:                                head + `"type":7,"message":"x","workstream_id":"main","activity_id":"act"}`,
		`{"t":12,"m":"c"}`:                                                         head + `"type":12,"message":"c","details":{"is_final":false,"streaming_id":"main"},"workstream_id":"main"}`,
		`{"t":12,"m":"c","w":"w1","f":1,"i":"act"}`:                                head + `"type":12,"message":"c","details":{"activity_id":"act","is_final":true,"streaming_id":"w1"},"workstream_id":"w1"}`,
		`{"t":12,"d":{"streaming_id":"S","activity_id":"Z","x":1},"i":"I"}`:        head + `"type":12,"message":"","details":{"activity_id":"I","is_final":false,"streaming_id":"S","x":1},"workstream_id":"main"}`,
		`{"t":12,"i":"","d":{"activity_id":"Z"}}`:                                  head + `"type":12,"message":"","details":{"activity_id":"Z","is_final":false,"streaming_id":"main"},"workstream_id":"main"}`,
		`{"t":12,"f":0,"d":{"streaming_id":"","activity_id":"z","is_final":true}}`: head + `"type":12,"message":"","details":{"activity_id":"z","is_final":false,"streaming_id":""},"workstream_id":"main"}`,
		`{"t":12,"d":"text"}`:                                                      head + `"type":12,"message":"","details":{"is_final":false,"streaming_id":"main"},"workstream_id":"main"}`,
	} {
		m, err := stream.Parse([]byte(raw))
		if err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		readable := m.ReadableAt("r", noon)
		got, err := json.Marshal(readable)
		if diff := cmp.Diff(want, string(got)); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", raw, err, diff)
		}
		back, err := stream.Parse(got)
		if diff := cmp.Diff(readable, back.ReadableAt("r", noon)); err != nil || diff != "" && raw != `{"t":7,"d":0}` { // JavaScript drops a 0
			t.Errorf("%s is not the same after the way back: %v\n%s", raw, err, diff)
		}
	}
}
