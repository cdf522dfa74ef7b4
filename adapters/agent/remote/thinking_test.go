package remote

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/adapters/sse"
	"parley/assembly"
	"parley/ingest/stream"
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
			if err := errors.Join(answer.Text(chunk), answer.grown()); err != nil { // each comes alone
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
		"Hi\n<think>Hm.</think>\nSo <tool_call>{}</tool_call><|im_end|>", "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Hi<|return|>", "a\n[TOOL_CALLS][{", "Hi</s>\n<|im_start|>user\nSo", "analysisHm.assistantfinalHi", "<think>Hm.</think>\n\nHi", "Hm.</thinking>Hi", "<|channel>thought\nHm.<channel|>Hi", "```\n<think>\n```\n</think>", "<think>```\n</think>\n~~~", " <thi<think>`</think>`</think>", "ü</think>🙂",
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
		if last := whole[len(whole)-1]; !strings.HasSuffix(last, "ANSWER "+end) && !strings.HasSuffix(last, "ANSWER "+strings.TrimRight(end, " \t\r\n")) {
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
		event, err := sse.NewReader(strings.NewReader(text), 1<<20).Next()
		var got []string
		for _, e := range objects(event) {
			got = append(got, string(e.Data))
		}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%q: %v %s", text, err, diff)
		}
	}
}

// TestMarksReachNoChat checks the marks that the templates of models leave in their texts: thinking and calls are thoughts,
// and the rest is left out. In code, and in the middle of a sentence, the same marks are words.
func TestMarksReachNoChat(t *testing.T) {
	const hums = "The pump hums."
	think, answer, later := func(text string) string { return "THOUGHT " + text }, "ANSWER ", "ANSWER "
	only := []string{answer + hums}
	asked := []string{think("The user asks."), answer + hums}
	turned := []string{think("The user asks."), later + hums}
	same := func(text string) []string { return []string{answer + text} }
	for text, want := range map[string][]string{
		// Thinking: Magistral, MiniMax, Seed, Kimi, Command A, Claude's older prompts.
		"[THINK]The user asks.[/THINK]The pump hums.":                                                      asked,
		"The user asks.</mm:think>The pump hums.":                                                          turned,
		"<mm:think>The user asks.</mm:think>The pump hums.":                                                asked,
		"<seed:think>The user asks.</seed:think>The pump hums.":                                            asked,
		"◁think▷The user asks.◁/think▷The pump hums.":                                                      asked,
		"<|START_THINKING|>The user asks.<|END_THINKING|><|START_RESPONSE|>The pump hums.<|END_RESPONSE|>": asked,
		"<antThinking>The user asks.</antThinking>The pump hums.":                                          asked,
		"<think signature=\"abc\">The user asks.</think>The pump hums.":                                    {think("<think signature=\"abc\">The user asks."), later + hums},
		// A pair alone on its lines.
		"Let me look.\n<think>The user asks.</think>\nThe pump hums.":         {think("The user asks."), answer + "Let me look.\nThe pump hums."},
		"Let me look.\n\n<think>\nThe user asks.\n</think>\n\nThe pump hums.": {think("The user asks."), answer + "Let me look.\n\n\nThe pump hums."},
		"<think>Hm.</think>Let me look.\n<think>The user asks.</think>":       {think("Hm."), think("The user asks."), answer + "Let me look."},
		"Let me look. <think>a</think> The pump hums.":                        same("Let me look. <think>a</think> The pump hums."),
		"So:\n<think>a</think> is a pair.":                                    same("So:\n<think>a</think> is a pair."),
		"So:\n<think>a":                                                       same("So:\n<think>a"),
		"So:\n<think>\nThe user asks.":                                        {think("The user asks."), answer + "So:"},
		"<|im_start|>assistant\nThe user asks.\n</think>\n\nThe pump hums.":   turned,
		"So:\n```\n<think>a</think>\n```":                                     same("So:\n```\n<think>a</think>\n```"),
		"The tags\n`<think>a</think>`\nmark it.":                              same("The tags\n`<think>a</think>`\nmark it."),
		// The answer's own pair.
		"<think>The user asks.</think><final>The pump hums.</final>":         asked,
		"<think>The user asks.</think>\n<answer>\nThe pump hums.\n</answer>": asked,
		"<final>The pump hums.</final>":                                      only,
		"In XML: <answer>42</answer>.":                                       same("In XML: <answer>42</answer>."),
		// Harmony.
		"<|channel|>analysis<|message|>The user asks.<|end|><|start|>assistant<|channel|>final<|message|>The pump hums.":                          asked,
		"<|channel|>analysis<|message|>The user asks.<|start|>assistant<|channel|>final<|message|>The pump hums.<|return|>":                       asked,
		"<|channel|>final<|message|>The pump hums.<|return|>":                                                                                     only,
		"<|channel|>commentary<|message|>The user asks.<|end|><|start|>assistant<|channel|>final <|constrain|>text<|message|>The pump hums.":      asked,
		"<|start|>assistant<|channel|>analysis<|message|>The user asks.<|end|><|start|>assistant<|channel|>final<|message|>The pump hums.<|end|>": asked,
		"The pump hums.<|end|><|start|>user<|message|>And the valve?<|end|>":                                                                      {"WARNING", answer + hums},
		"<|channel|>commentary to=functions.search <|constrain|>json<|message|>{\"query\":\"pump\"}<|call|>":                                      {think("commentary to=functions.search <|constrain|>json {\"query\":\"pump\"}"), answer},
		"<|start|>assistant to=functions.search<|channel|>commentary<|message|>{}<|call|>":                                                        {think("assistant to=functions.search<|channel|>commentary {}"), answer},
		"analysisThe user asks.assistantfinalThe pump hums.":                                                                                      {think("analysisThe user asks."), later + hums},
		"An analysis of assistantfinal words.":                                                                                                    same("An analysis of assistantfinal words."),
		"The mark <|channel|> names a channel.":                                                                                                   same("The mark <|channel|> names a channel."),
		"The mark `<|channel|>final<|message|>` begins it.":                                                                                       same("The mark `<|channel|>final<|message|>` begins it."),
		// Tokens.
		"The pump hums.<|im_end|>": only,
		"The pump hums.</s>":       only,
		"The pump hums. </s>\n":    only,
		"The pump hums.<|eot_id|><|start_header_id|>assistant<|end_header_id|>": only,
		"The pump hums.<end_of_turn>\n":                                         only,
		"The pump hums.<｜end▁of▁sentence｜>":                                     only,
		"<|im_start|>assistant\nThe pump hums.":                                 only,
		"One.<|im_end|>\nTwo.":                                                  same("One.\nTwo."),
		"ChatML ends a turn with <|im_end|> and a line end.":                    same("ChatML ends a turn with <|im_end|> and a line end."),
		"```\n<|im_start|>user\nHi<|im_end|>\n```":                              same("```\n<|im_start|>user\nHi<|im_end|>\n```"),
		"Write `</s>`":       same("Write `</s>`"),
		"It was <s>shut</s>": same("It was <s>shut</s>"),
		// A turn of the user.
		"The pump hums.<|im_end|>\n<|im_start|>user\nAnd the valve?<|im_end|>\n<|im_start|>assistant\nShut.": {"WARNING", answer + hums},
		"The pump hums.<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nAnd?":                           {"WARNING", answer + hums},
		"The pump hums.</s>[INST] And? [/INST]":                                                              {"WARNING", answer + hums},
		"The pump hums.<end_of_turn>\n<start_of_turn>user\nAnd?":                                             {"WARNING", answer + hums},
		"The pump hums.<|user|>\nAnd?":                                                                       {"WARNING", answer + hums},
		"A turn of <|im_start|>user begins so.":                                                              same("A turn of <|im_start|>user begins so."),
		// Calls: Hermes and Qwen, GLM, Mistral, DeepSeek, Llama, Claude's older prompts, Qwen Coder, Kimi.
		"Let me look.\n<tool_call>\n{\"name\": \"search\"}\n</tool_call>": {think("<tool_call>\n{\"name\": \"search\"}\n</tool_call>"), answer + "Let me look."},
		"<tool_call>\n{\"name\": \"search\"}\n</tool_call>":               {think("<tool_call>\n{\"name\": \"search\"}\n</tool_call>"), answer},
		"<tool_call>{\"name\": \"sea":                                     {think("<tool_call>{\"name\": \"sea"), answer},
		"<tool_call>search\n<arg_key>q</arg_key>\n</tool_call>":           {think("<tool_call>search\n<arg_key>q</arg_key>\n</tool_call>"), answer},
		"[TOOL_CALLS][{\"name\": \"search\"}]":                            {think("[TOOL_CALLS][{\"name\": \"search\"}]"), answer},
		"Hm.\n[TOOL_CALLS]search[ARGS]{\"q\":1}</s>":                      {think("[TOOL_CALLS]search[ARGS]{\"q\":1}</s>"), answer + "Hm."},
		"I will search.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>search\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>": {think("<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>search\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>"), answer + "I will search."},
		"<|python_tag|>{\"name\": \"search\"}<|eom_id|>":                                                                                             {think("<|python_tag|>{\"name\": \"search\"}<|eom_id|>"), answer},
		"Let me check.\n<function_calls>\n<invoke name=\"search\">\n</invoke>\n</function_calls>":                                                    {think("<function_calls>\n<invoke name=\"search\">\n</invoke>\n</function_calls>"), answer + "Let me check."},
		"<function=search>\n<parameter=q>\npump\n</parameter>\n</function>\n</tool_call>":                                                            {think("<function=search>\n<parameter=q>\npump\n</parameter>\n</function>"), answer},
		"<|tool_calls_section_begin|><|tool_call_begin|>functions.search:0<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>": {think("<|tool_calls_section_begin|><|tool_call_begin|>functions.search:0<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>"), answer},
		"Qwen writes <tool_call>…</tool_call> around its calls.":                                                                                     same("Qwen writes <tool_call>…</tool_call> around its calls."),
		"The tags <tool_call> and </tool_call> enclose it.":                                                                                          same("The tags <tool_call> and </tool_call> enclose it."),
		"```\n<tool_call>\n{}\n</tool_call>\n```":                                                                                                    same("```\n<tool_call>\n{}\n</tool_call>\n```"),
		"Write `<tool_call>{}</tool_call>`.":                                                                                                         same("Write `<tool_call>{}</tool_call>`."),
		"The mark [TOOL_CALLS] begins a call.":                                                                                                       same("The mark [TOOL_CALLS] begins a call."),
	} {
		messages, _ := read(t, new(Client), text)
		var got []string
		for _, m := range messages {
			_, m, _ = strings.Cut(m, " ")
			if strings.HasPrefix(m, "WARNING") {
				m = "WARNING"
			}
			got = append(got, m)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}

// TestKeptThinkingHasNoMarks checks that the setting keep leaves the thinking in the text, and nothing else of a template.
func TestKeptThinkingHasNoMarks(t *testing.T) {
	var got []string
	answer := NewAnswer("run", 1<<20, func(m stream.Message) error {
		if m.Type != stream.StreamingChunk {
			got = append(got, m.Type.String()+" "+m.Text)
		}
		return nil
	}).Read(Reading{Thinking: KeepThinking}, new(Client), assembly.Speakers{})
	if err := answer.Text(" <think>Hm.</think>\nHi<|im_end|>"); err != nil {
		t.Fatal(err)
	}
	if err := answer.Finish("", nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"ANSWER  <think>Hm.</think>\nHi"}, got); diff != "" {
		t.Error(diff)
	}
}

// TestNoMarkBeginsAnother checks what match needs.
func TestNoMarkBeginsAnother(t *testing.T) {
	for i, m := range marks {
		for _, tag := range []string{m.begin, m.end} {
			if at, _, prefix := match([]byte(strings.ToUpper(tag))); tag != "" && (at != i || prefix) {
				t.Errorf("%s is the mark %d, not %d, or begins another one", tag, at, i)
			}
		}
	}
}
