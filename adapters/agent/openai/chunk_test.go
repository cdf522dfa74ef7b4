package openai

import (
	"encoding/json"
	"reflect"
	"testing"
)

// FuzzContent checks that a chunk that is read without package json has this text alone for package json, too.
func FuzzContent(f *testing.F) {
	for _, seed := range []string{
		ofOpenAI, `{"choices":[{"delta":{"content":"Hi"}}]}`, `{"choices":[{"delta":{"content":"a","content":"\ud83d"}}],"error":null}`,
		`{"choices":[{"index":1,"delta":{"content":"Hi"}}]}`, `{"choices":[{"delta":{"content":"Hi"}},{"delta":{"content":"Ho"}}]}`, `{"Error":"x","choices":[{"delta":{"content":"Hi"}}]}`,
		`{"choices":[{"delta":{"content":"Hi","tool_calls":[{}]}}]}`, `{"choices":[{"delta":{"content":null}}]}`, `{"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}`,
		`{"choices":[{"delta":{"content":"Hi"}}],"choices":[]}`, `{"usage":{"n":1},"choices":[{"delta":{"content":"Hi"}}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		content, ok := contentOf(data)
		if !ok {
			return
		}
		var got chunk
		if err := json.Unmarshal(data, &got); err != nil || len(got.Choices) != 1 {
			t.Fatalf("%s: %+v, %v", data, got, err)
		}
		rest := got.Choices[0]
		for _, raw := range []*json.RawMessage{
			&got.Error, &got.Usage, &got.State, &got.Citations, &got.SearchResults, &rest.Error,
			&rest.Delta.Refusal, &rest.Delta.Reasoning, &rest.Delta.ReasoningContent, &rest.Delta.ReasoningDetails, &rest.Delta.Images, &rest.Delta.Annotations,
		} {
			if string(*raw) == "null" {
				*raw = nil
			}
		}
		got.Choices = nil
		want := choice{Delta: delta{Content: content}}
		if !reflect.DeepEqual(got, chunk{}) || !reflect.DeepEqual(rest, want) {
			t.Errorf("%s: %+v in %+v, want %+v", data, rest, got, want)
		}
	})
}

const ofOpenAI = `{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1764547200,"model":"gpt","service_tier":"default","system_fingerprint":"fp","choices":[{"index":0,"delta":{"content":"Hi"},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"x"}`

// TestContent checks that the chunks of nearly every answer are read without package json, in one pass.
func TestContent(t *testing.T) {
	if _, ok := contentOf([]byte(ofOpenAI)); !ok {
		t.Error("not read")
	}
	if n := testing.AllocsPerRun(10, func() { contentOf([]byte(ofOpenAI)) }); n > 1 { // the bytes themselves
		t.Errorf("%v allocations", n)
	}
}
