package openai_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"parley/adapters/agent/agenttest"
	"parley/ingest/stream"
)

// TestPicturesOfAnAnswer checks that pictures of an answer become its files, in each form in which servers send
// them, that their addresses are no part of the text, and that code, and addresses that are none, stay as they should.
func TestPicturesOfAnAnswer(t *testing.T) {
	address := "data:image/png;base64," + base64.StdEncoding.EncodeToString([]byte(png+strings.Repeat("pump", 3000)))
	second := "data:image/png;base64," + base64.StdEncoding.EncodeToString([]byte(png+"b"))
	text := func(words string) string { return `{"choices":[{"index":0,"delta":{"content":` + quote(words) + `}}]}` }
	// cut writes a text in pieces of n bytes.
	cut := func(words string, n int) (parts []string) {
		for ; len(words) > n; words = words[n:] {
			parts = append(parts, text(words[:n]))
		}
		return append(parts, text(words))
	}
	for _, c := range []struct {
		server string
		events []string
		want   string
		files  int
	}{
		{"a gateway: Markdown, cut at any byte", cut("Look:\n\n![gauge]("+address+")\n\nIt is high.", 7), "Look:\n\n\n\nIt is high.", 1},
		{"Markdown in one piece, with a title", cut("![a]("+address+" \"t\") x", 1<<20), " x", 1},
		{"two, and a link", cut("![a]("+address+")![b]("+second+")[c]("+address+").", 11), ".", 2},
		{"HTML", cut(`<img alt="a" src="`+address+`" width="5"> x`, 9), " x", 1},
		{"alone", cut(address+"\nx", 5000), "\nx", 1},
		{"made up, as models do", cut("![the gauge](data:image/png;base64,iVBORw0K%%) x", 6), "the gauge x", 0},
		{"cut off", cut("x ![a]("+address, 999), "x a", 0},
		{"in a fence", cut("```\n![a]("+second+")\n```\n", 5), "```\n![a](" + second + ")\n```\n", 0},
		{"in inline code", cut("`![a]("+second+")`", 5), "`![a](" + second + ")`", 0},
		{"other links and brackets", cut("a [1] ![p](https://e.example/p.png) [x](y) data: <i> [", 1), "a [1] ![p](https://e.example/p.png) [x](y) data: <i> [", 0},
		{"OpenRouter, beside words", []string{text("Here."), `{"choices":[{"index":0,"delta":{"role":"assistant","content":"","images":[{"type":"image_url","image_url":{"url":"` + address + `"}}]}}]}`}, "Here.", 1},
		{"OpenRouter, alone", []string{`{"choices":[{"index":0,"delta":{"content":"","images":[{"type":"image_url","image_url":{"url":"` + address + `"}}]}}]}`}, "", 1},
		{"OpenRouter, not streamed", []string{`{"choices":[{"index":0,"message":{"content":"Here.","images":[{"image_url":{"url":"` + address + `"}},{"image_url":{"url":"` + address + `"}}]}}]}`}, "Here.", 1},
		{"parts, in OpenAI's form", []string{`{"choices":[{"index":0,"delta":{"content":[{"type":"text","text":"Here."},{"type":"image_url","image_url":{"url":"` + address + `"}}]}}]}`}, "Here.", 1},
		{"parts, in Anthropic's form", []string{`{"choices":[{"index":0,"delta":{"content":[{"type":"text","text":"Here."},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + strings.TrimPrefix(second, "data:image/png;base64,") + `"}}]}}]}`}, "Here.", 1},
		{"a part elsewhere", []string{`{"choices":[{"index":0,"delta":{"content":[{"type":"image_url","image_url":{"url":"https://e.example/p.png"}}]}}]}`}, "\n\n[picture](https://e.example/p.png)\n\n", 0},
	} {
		agent := model(t, func(w http.ResponseWriter, _ *http.Request) {
			s := speak(w)
			for _, e := range c.events {
				s.raw("data: " + e + "\n\n")
			}
			s.finish("stop").done()
		})
		emitted, err := run(t.Context(), agent)
		if answers := of(emitted, stream.Answer); err != nil || len(answers) != 1 {
			t.Errorf("%s: %v", c.server, err)
			continue
		}
		answer := of(emitted, stream.Answer)[0]
		files, err := answer.Files()
		if err != nil || answer.Text != c.want || len(files) != c.files {
			t.Errorf("%s: %q, %d files, %v", c.server, answer.Text, len(files), err)
		}
		for i, file := range files {
			if want := []string{"picture.png", "picture-2.png"}[i]; file.Name != want || file.MimeType != "image/png" || !strings.HasPrefix(string(file.Data), png) {
				t.Errorf("%s: the file is %s %s", c.server, file.Name, file.MimeType)
			}
		}
		if chunks := strings.Join(texts(of(emitted, stream.StreamingChunk)), ""); chunks != c.want {
			t.Errorf("%s: the chunks are %q", c.server, chunks)
		}
	}
}

func quote(s string) string { return fmt.Sprintf("%q", s) }

// TestPicturesThatAreTooLarge: the answer is not lost with them.
func TestPicturesThatAreTooLarge(t *testing.T) {
	address := "data:image/png;base64," + base64.StdEncoding.EncodeToString([]byte(png+strings.Repeat("x", 4<<20)))
	agent := model(t, func(w http.ResponseWriter, _ *http.Request) {
		speak(w).delta("Here.").raw(`data: {"choices":[{"index":0,"delta":{"images":[{"image_url":{"url":"` + address + `"}}]}}]}` + "\n\n").finish("stop").done()
	})
	emitted, err := run(t.Context(), agent)
	if got := strings.Join(append(texts(of(emitted, stream.Warning)), texts(of(emitted, stream.Answer))...), "|"); err != nil || got != "The answer has 1 more files than max_bytes allows: they are left out.|Here." {
		t.Errorf("%q, %v", got, err)
	}
}

// TestSourcesOfAnAnswer checks the line of sources below an answer, in the bytes of each server.
func TestSourcesOfAnAnswer(t *testing.T) {
	const ends = `,"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
	for _, c := range []struct{ server, text, event, want string }{
		{"Perplexity: docs.perplexity.ai/api-reference/chat-completions-post", "At 50 Hz[1] it hums[3].", `{"citations":["https://a.example/x","https://b.example","https://c.example/(y)"],"search_results":[{"title":"Pump [A]","url":"https://a.example/x","date":null}]` + ends,
			"At 50 Hz[1] it hums[3].\n\nSources: [1: Pump (A)](https://a.example/x), [3: c.example](https://c.example/%28y%29)"},
		{"Perplexity, without marks", "It hums.", `{"citations":["https://a.example/x"]` + ends, "It hums.\n\nSources: [1: a.example](https://a.example/x)"},
		{"OpenAI: platform.openai.com/docs/guides/tools-web-search", "It hums.", `{"choices":[{"index":0,"delta":{"annotations":[{"type":"url_citation","url_citation":{"start_index":0,"end_index":8,"title":"Pumps","url":"https://a.example/x?utm_source=openai"}}]},"finish_reason":"stop"}]}`,
			"It hums.\n\nSources: [Pumps](https://a.example/x?utm_source=openai)"},
		{"a source that the text names", "It [hums](https://a.example/x).", `{"citations":["https://a.example/x"]` + ends, "It [hums](https://a.example/x)."},
		{"no addresses of the web", "It hums.", `{"citations":["javascript:alert(1)","file:///etc/passwd",7,null,{}]` + ends, "It hums."},
		{"citations of another form", "It hums.", `{"citations":"none","search_results":{}` + ends, "It hums."},
		{"a silent answer", "NO_REPLY", `{"citations":["https://a.example/x"]` + ends, "NO_REPLY"},
	} {
		agent := model(t, func(w http.ResponseWriter, _ *http.Request) {
			speak(w).delta(c.text).raw("data: " + c.event + "\n\n").done()
		})
		emitted, err := agenttest.Run(t.Context(), agent, hello())
		if got := texts(of(emitted, stream.Answer)); err != nil || len(got) != 1 || got[0] != c.want {
			t.Errorf("%s: %q, %v", c.server, got, err)
		}
	}
}
