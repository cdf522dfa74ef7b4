package runapi

import (
	"reflect"
	"testing"

	"parley/ingest/stream"
)

// FuzzChunk checks that a chunk that is read without package json is the message that stream.Parse reads.
func FuzzChunk(f *testing.F) {
	for _, seed := range []string{
		ofParley, `{"m":"\ud83d","t":12,"w":"main"}`, `{"t":12,"m":null}`, `{"t":7,"m":"Hi"}`, `{"t":12,"type":"ping"}`, `{"t":12,"f":2}`, `{"t":12,"ts":1.5}`, `{"t":12,"T":7}`, `{"t":12,"d":{}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, ok := chunkOf(raw)
		if !ok {
			return
		}
		want, err := stream.Parse(raw)
		if err != nil || isControl(raw) || !reflect.DeepEqual(want, got) {
			t.Errorf("%s: %+v, want %+v, %v", raw, got, want, err)
		}
	})
}

const ofParley = `{"t":12,"m":"Hi","ts":1764547200000,"i":"run-1/answer","f":1}`

// TestChunk checks that the chunks of nearly every answer are read without package json.
func TestChunk(t *testing.T) {
	if _, ok := chunkOf([]byte(ofParley)); !ok {
		t.Error("not read")
	}
}
