package toolserver_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/adapters/agent"
	"parley/adapters/agent/toolserver"
	"parley/assembly/runinput"
)

// raw is a server of the protocol that answers with bytes: tools are the members of its list, results those of a call of the
// tool that they name. It sends events if events is set.
func raw(t *testing.T, events bool, tools []string, answers map[string]string) *toolserver.Client {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request struct {
			ID     json.RawMessage
			Method string
			Params struct{ Name string }
		}
		body, _ := io.ReadAll(r.Body)
		if r.Method != http.MethodPost || json.Unmarshal(body, &request) != nil {
			http.Error(w, "no", http.StatusMethodNotAllowed)
			return
		}
		answer := `"error":{"code":-32601,"message":"Method not found"}`
		switch request.Method {
		case "initialize":
			answer = `"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"raw","version":"1"}}`
		case "tools/list":
			answer = `"result":{"tools":[` + strings.Join(tools, ",") + `]}`
		case "tools/call":
			answer = answers[request.Params.Name]
		}
		if request.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		answer = `{"jsonrpc":"2.0","id":` + string(request.ID) + `,` + answer + `}`
		if events {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, ": ping\n\nevent: message\ndata:%s\n\n", answer)
			return
		}
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		fmt.Fprintf(w, "\n%s\n", strings.ReplaceAll(answer, ",", ",\n"))
	}))
	t.Cleanup(server.Close)
	c := toolserver.New(agent.ToolServer{URL: server.URL + "/mcp"}, "1", time.Now)
	t.Cleanup(c.Close)
	return c
}

// TestOneBadThingOfAServerCostsItselfAlone checks lists and results with a part that the protocol's library cannot
// read, and that numbers keep their digits, in JSON and in events.
func TestOneBadThingOfAServerCostsItselfAlone(t *testing.T) {
	tools := []string{`{"name":"look","inputSchema":{"type":"object"}}`, `{"name":"odd","inputSchema":{"type":"object"},"annotations":"none"}`,
		`{"name":"wide","description":"` + strings.Repeat("x", 40<<10) + `","inputSchema":{"type":"object"}}`, `7`}
	answers := map[string]string{
		"digits":  `"result":{"content":[],"structuredContent":{"id":12345678901234567890,"of":1.50}}`,
		"copy":    `"result":{"content":[{"type":"text","text":"{\"id\": 12345678901234567890}"}],"structuredContent":{"id":12345678901234567890}}`,
		"summary": `"result":{"content":[{"type":"text","text":"Found 2 rows"}],"structuredContent":{"rows":[1,2]}}`,
		"broken":  `"result":{"content":[{"type":"text","text":"See:"},{"type":"image","mimeType":"image/png","data":"no base64!"}]}`,
		"link":    `"result":{"content":[{"type":"resource_link","uri":"file:///a","name":"a.txt","description":"The manual"}]}`,
		"silent":  `"result":{"content":[],"isError":true}`,
		"refused": `"error":{"code":-32602,"message":"missing argument: city"}`,
	}
	for _, events := range []bool{false, true} {
		c := raw(t, events, tools, answers)
		list, left, err := c.Tools(t.Context())
		if err != nil || len(list) != 1 || list[0].Name != "look" {
			t.Fatalf("%+v, %v", list, err)
		}
		at := c.Host()
		want := []string{"The tool odd of " + at + " is left out: the server describes it in a wrong form.", "The tool wide of " + at + " is left out: its description and its schema have more than 32 KiB.",
			"The tool  of " + at + " is left out: the server describes it in a wrong form."}
		if diff := cmp.Diff(want, left); diff != "" {
			t.Error(diff)
		}
		for name, want := range map[string]string{
			"digits": `{"id":12345678901234567890,"of":1.50}`, "copy": `{"id": 12345678901234567890}`, "summary": `{"structuredContent":{"rows":[1,2]},"text":"Found 2 rows"}`,
			"broken": `{"text":"See:\n[unreadable image image/png]"}`, "link": `{"text":"[resource file:///a, a.txt, The manual]"}`, "silent": `{"error":"the tool failed without a word"}`,
			"refused": `{"error":"the server ` + at + ` refused the call: missing argument: city"}`,
		} {
			got := c.Call(t.Context(), "k", runinput.Call{ID: "1", Name: name, Arguments: `{}`})
			if got = strings.ReplaceAll(got, ",\n", ","); got != want {
				t.Errorf("%s: %s, want %s", name, got, want)
			}
		}
	}
	var many []string
	for i := range 150 {
		many = append(many, fmt.Sprintf(`{"name":"t%d","inputSchema":{"type":"object"}}`, i))
	}
	c := raw(t, false, many, nil)
	if list, left, err := c.Tools(t.Context()); err != nil || len(list) != 100 || len(left) != 1 || left[0] != "The server "+c.Host()+" has more than 100 tools: the others are left out." {
		t.Errorf("%d tools, %q, %v", len(list), left, err)
	}
}
