package remote

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/assembly"
	"parley/assembly/stream"
)

// read returns the THOUGHTs and the ANSWER of a text that comes in chunks, and the text that all chunks
// of the answer show together.
func read(t *testing.T, client *Client, chunks ...string) (messages []string, preview string) {
	t.Helper()
	shown := map[string]string{}
	answer := NewAnswer("run", 1<<20, func(m stream.Message) error {
		switch m.Type {
		case stream.StreamingChunk:
			shown[m.ActivityID] += m.Text
			return nil
		case stream.Answer:
			preview = shown[m.ActivityID]
		}
		delete(shown, m.ActivityID)
		messages = append(messages, m.ActivityID+" "+m.Type.String()+" "+m.Text)
		return nil
	}).Read(DefaultReading(), client, assembly.Speakers{})
	for _, chunk := range chunks {
		if err := answer.Text(chunk); err != nil {
			t.Fatal(err)
		}
	}
	if err := answer.Finish("", nil); err != nil {
		t.Fatal(err)
	}
	if len(shown) > 0 {
		t.Errorf("%q: no message replaces the chunks %q", chunks, shown)
	}
	return messages, preview
}

func TestThinkingIsNoAnswer(t *testing.T) {
	const first, second = "run/thought-1 THOUGHT ", "run/thought-2 THOUGHT "
	const turned, answer, later = "run/answer THOUGHT ", "run/answer ANSWER ", "run/answer-2 ANSWER "
	for text, want := range map[string][]string{
		"Hi":                                {answer + "Hi"},
		" \n Hi":                            {answer + " \n Hi"},
		"<think>Hm.</think>Hi":              {first + "Hm.", answer + "Hi"},
		"\n<THINK>\n Hm.\n</Think>\n\nHi":   {first + "Hm.", answer + "Hi"},
		"<think>\n\n</think>\n\nHi":         {answer + "Hi"},
		"<thinking>a</think>b</thinking>Hi": {first + "a</think>b", answer + "Hi"},
		"<reasoning>a</reasoning>\n<thought>b</thought>Hi": {first + "a", second + "b", answer + "Hi"},
		"<think>a</think>Hi <think>b</think>":              {first + "a", answer + "Hi <think>b</think>"},
		"<think>a":                                         {first + "a", answer},

		"Hm.\n</think>\n\nHi":                {turned + "Hm.", later + "Hi"},
		"</think>Hi":                         {answer + "Hi"},
		"a</thinking><think>b</think>Hi":     {turned + "a", first + "b", later + "Hi"},
		"a</think>Hi</think>":                {turned + "a", later + "Hi</think>"},
		"The tags <think> and </think>.":     {answer + "The tags <think> and </think>."},
		"The tag <thought>.\n</think>\n\nHi": {turned + "The tag <thought>.", later + "Hi"},

		"<|channel>thought\nHm.<channel|>Hi": {first + "Hm.", answer + "Hi"},
		"<|channel>thought<channel|>Hi":      {answer + "Hi"},
		"Hm.<channel|>Hi":                    {turned + "Hm.", later + "Hi"},
		"Say <|channel>thought":              {answer + "Say <|channel>thought"},

		"```\n<think>a</think>\n```":                                  {answer + "```\n<think>a</think>\n```"},
		"```html\n</think>\n```\nHi":                                  {answer + "```html\n</think>\n```\nHi"},
		"~~~\n```\n</think>\n~~~\n":                                   {answer + "~~~\n```\n</think>\n~~~\n"},
		"Close it with `</think>`.":                                   {answer + "Close it with `</think>`."},
		"Or ``a ` </think>`` so":                                      {answer + "Or ``a ` </think>`` so"},
		"It's a `\nmark.</think>Hi":                                   {turned + "It's a `\nmark.", later + "Hi"},
		"```\ncode\n```\nso</think>Hi":                                {turned + "```\ncode\n```\nso", later + "Hi"},
		"<think>`</think>` is one\n```\n</think>\n```\nSo.</think>Hi": {first + "`</think>` is one\n```\n</think>\n```\nSo.", answer + "Hi"},
		"<think>```\nopen</think>\nHi\n```\ncode\n":                   {first + "```\nopen", answer + "Hi\n```\ncode"},
		"1 < 2, <b>bold</b> and <thin":                                {answer + "1 < 2, <b>bold</b> and <thin"},
		"<<think>>":                                                   {answer + "<<think>>"},
	} {
		got, _ := read(t, new(Client), text)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}

// TestPreviewWaitsIfThinkingMayFollow checks that the client remembers a model that only closes its
// thinking: later answers show nothing of it before.
func TestPreviewWaitsIfThinkingMayFollow(t *testing.T) {
	client, shown := new(Client), []string{}
	for range 2 {
		answer := NewAnswer("run", 1<<20, func(m stream.Message) error {
			if m.Type == stream.StreamingChunk && m.Text != "" {
				shown = append(shown, m.ActivityID+" "+m.Text)
			}
			return nil
		}).Read(DefaultReading(), client, assembly.Speakers{})
		for _, chunk := range []string{"Hm.", "</think>", "Hi"} {
			if err := answer.Text(chunk); err != nil {
				t.Fatal(err)
			}
		}
		if err := answer.Finish("", nil); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"run/answer Hm.", "run/answer-2 Hi", "run/answer-2 Hi"}, shown); diff != "" {
		t.Error(diff)
	}
}

// TestPartsThinkApart checks that each part of a text may begin with thinking, and that the parts before a
// thought stay.
func TestPartsThinkApart(t *testing.T) {
	var got []string
	answer := NewAnswer("run", 1<<20, func(m stream.Message) error {
		if m.Type != stream.StreamingChunk {
			got = append(got, m.Type.String()+" "+m.Text)
		}
		return nil
	}).Read(DefaultReading(), new(Client), assembly.Speakers{})
	for _, part := range []string{"One", "<think>a</think>Two", "", "b</think>Three", "c</think>"} {
		if err := answer.Part(); err != nil {
			t.Fatal(err)
		}
		if err := answer.Text(part); err != nil {
			t.Fatal(err)
		}
	}
	if err := answer.Finish("", nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"THOUGHT a", "THOUGHT b", "THOUGHT c", "ANSWER One\n\nTwo\n\nThree"}, got); diff != "" {
		t.Error(diff)
	}
}

// cutInto returns a valid form of a text, and the chunks of it: each cut is the number of characters of one,
// and the last one is the rest.
func cutInto(text string, cuts []byte) (valid string, chunks []string) {
	valid = strings.ToValidUTF8(text, "")
	runes := []rune(valid)
	for _, cut := range cuts {
		n := min(int(cut), len(runes))
		chunks, runes = append(chunks, string(runes[:n])), runes[n:]
	}
	return valid, append(chunks, string(runes))
}

// FuzzThinking fuzzes texts with their cuts into chunks: the messages and the end of the preview are those
// of the text in one piece.
func FuzzThinking(f *testing.F) {
	for _, text := range []string{
		"<think>Hm.</think>\n\nHi", "Hm.</thinking>Hi", "<|channel>thought\nHm.<channel|>Hi", "```\n<think>\n```\n</think>", "<think>```\n</think>\n~~~", " <thi<think>`</think>`</think>", "ü</think>🙂",
	} {
		f.Add(text, []byte{1, 3, 2})
	}
	f.Fuzz(func(t *testing.T, text string, cuts []byte) {
		text, chunks := cutInto(text, cuts)
		whole, end := read(t, new(Client), text)
		cut, cutEnd := read(t, new(Client), chunks...)
		if diff := cmp.Diff(whole, cut); diff != "" || end != cutEnd {
			t.Errorf("%q: preview %q, in one piece %q\n%s", chunks, cutEnd, end, diff)
		}
		if last := whole[len(whole)-1]; !strings.HasSuffix(last, "ANSWER "+end) {
			t.Errorf("the preview ends with %q, the answer is %q", end, last)
		}
	})
}

func TestContentLists(t *testing.T) {
	for raw, want := range map[string][]Part{
		`null`:  {{}},
		`"a"`:   {{Text: "a"}},
		`["a"]`: {{Text: "a"}},
		`[{"type":"text","text":"a"},{"type":"text","text":"b"}]`:                                 {{Text: "a"}, {Text: "b"}},
		`[{"type":"thinking","thinking":[{"type":"text","text":"h"},{"text":"m"}]},{"text":"a"}]`: {{Text: "hm", Thought: true}, {Text: "a"}},
		`[{"type":"thinking","thinking":"hm"},{"type":"image_url","image_url":{}}]`:               {{Text: "hm", Thought: true}},
		`[{"type":"reasoning","text":"hm"},{"type":"refusal","refusal":"No."}]`:                   {{Text: "hm", Thought: true}, {Text: "No."}},
	} {
		got, err := new(Halves).Parts(json.RawMessage(raw))
		filled := got[:0]
		for _, part := range got {
			if part.Text != "" || raw == "null" {
				filled = append(filled, part)
			}
		}
		if diff := cmp.Diff(want, filled); err != nil || diff != "" {
			t.Errorf("%s: %v %s", raw, err, diff)
		}
	}
	for _, raw := range []string{`5`, `{}`, `[5]`, `[{"text":{}}]`} {
		if got, err := new(Halves).Parts(json.RawMessage(raw)); err == nil {
			t.Errorf("%s: %v", raw, got)
		}
	}
}

// TestErrorShapes checks the shapes of errors that vLLM, llama.cpp, Ollama, OpenRouter, FastAPI and Google
// write.
func TestErrorShapes(t *testing.T) {
	for body, want := range map[string]struct {
		words  string
		status int
	}{
		`{"error":"model 'x' not found"}`:                                                                                                             {"model 'x' not found", 0},
		`{"error":{"message":"busy","type":"api_error","param":null,"code":null}}`:                                                                    {"busy", 0},
		`{"error":{"message":"busy","type":"server_error","code":"503"}}`:                                                                             {"busy", 503},
		`{"error":{"code":400,"message":"too long","type":"exceed_context_size_error","n_ctx":2048}}`:                                                 {"too long", 400},
		`{"error":{"message":"too long","code":"context_length_exceeded"}}`:                                                                           {"too long (context_length_exceeded)", 0},
		`{"object":"error","message":"too long","type":"BadRequestError","code":400}`:                                                                 {"too long", 400},
		`{"error":{"message":"Provider returned error","code":429,"metadata":{"raw":"{\"error\":{\"message\":\"slow down\"}}","provider_name":"P"}}}`: {"Provider returned error: slow down", 429},
		`{"detail":"no such model"}`: {"no such model", 0},
		`{"detail":[{"loc":["body","messages"],"msg":"field required","type":"missing"}]}`: {"body.messages: field required", 0},
		`[{"error":{"code":404,"message":"gone","status":"NOT_FOUND"}}]`:                   {"gone", 404},
		`{"error":true,"message":"busy"}`:                                                  {"busy", 0},
		`{"error":["busy"]}`:                                                               {"busy", 0},
		`{"error":{"error":{"message":"busy"}}}`:                                           {"busy", 0},
		`{"error":{"type":"overloaded_error"}}`:                                            {"overloaded_error", 0},
		`{"errors":[{"message":"busy"}]}`:                                                  {"busy", 0},
		`{"status":503,"title":"Unavailable"}`:                                             {"Unavailable", 503},
		`<html>`:                                                                           {"<html>", 0},
		`{"n":1}`:                                                                          {`{"n":1}`, 0},
	} {
		if words, status := ErrorText([]byte(body)); words != want.words || status != want.status {
			t.Errorf("%s: %q, %d", body, words, status)
		}
	}
}

// TestSeveralObjectsInOneEvent checks the data lines of an event that are several values.
func TestSeveralObjectsInOneEvent(t *testing.T) {
	for text, want := range map[string][]string{
		"data: {\"a\":1}\ndata: {\"b\":2}\ndata: [DONE]\n\n": {`{"a":1}`, `{"b":2}`, `[DONE]`},
		"data: {\"a\":\ndata: 1}\n\n":                        {"{\"a\":\n1}"},
		"data: {\"a\":1}\ndata: noise\n\n":                   {`{"a":1}`, `noise`},
		"error: {\"code\":500,\"message\":\"m\"}\n\n":        {`{"error":{"code":500,"message":"m"}}`},
	} {
		event, err := newEvents(strings.NewReader(text), 1<<20, false).next()
		var got []string
		for _, e := range event.objects() {
			got = append(got, string(e.Data))
		}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%q: %v %s", text, err, diff)
		}
	}
}
