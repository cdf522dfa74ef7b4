package anthropic_test

import (
	"net/http"
	"testing"

	"parley/adapters/agent/agenttest"
	"parley/adapters/agent/remote"
	"parley/ingest/stream"
)

// TestSourcesOfAnAnswer checks the line of sources from citations, as Anthropic sends them
// (docs.anthropic.com/en/docs/agents-and-tools/tool-use/web-search-tool), streamed and whole. A place in a document is no source of the web.
func TestSourcesOfAnAnswer(t *testing.T) {
	const source, place = `{"type":"web_search_result_location","url":"https://a.example/x","title":"Pumps","encrypted_index":"E","cited_text":"c"}`, `{"type":"char_location","document_title":"D","cited_text":"c"}`
	for name, answer := range map[string]string{
		"streamed": events(start, block, `{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":`+source+`}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":`+place+`}}`, one, two, end, delta, stop),
		"whole": `{"type":"message","role":"assistant","content":[{"type":"text","text":"Grüße, Olivia","citations":[` + place + `,` + source + `]}],"stop_reason":"end_turn"}`,
	} {
		address := agenttest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { agenttest.Stream(w, answer) })
		emitted, err := agenttest.Run(t.Context(), newAgent(address, remote.DefaultConfig(), nil), agenttest.Hello())
		got := agenttest.Texts(emitted, stream.Answer)
		if want := "Grüße, Olivia\n\nSources: [Pumps](https://a.example/x)"; err != nil || len(got) != 1 || got[0] != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
