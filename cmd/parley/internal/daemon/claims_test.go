package daemon_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"parley/ingest/event"
)

// claimValues are values of the claimed keys that are well formed; any other key takes a text.
var claimValues = map[string]string{
	"sender_id": `"crm:7"`, "sender_type": `"human"`, "is_from_me": "true", "passive": "true", "include_in_memory": "true", "trigger_rag": "true", "recipient_id": `"bot:echo"`,
	event.KeyCard:     `{"version":"2.0","locale":"en","status":"info","theme":"default","root":{"type":"text","content":"a"}}`,
	event.KeyAction:   `{"id":"pay","value":1}`,
	event.KeyMentions: `[]`,
}

func claimValue(key string) string {
	if value, ok := claimValues[key]; ok {
		return value
	}
	return `"x"`
}

// metadataWay is a way in that takes metadata.
type metadataWay struct {
	pattern string // in openapi.yaml
	by      event.Claimant
	// post sends a message with the members in its metadata, and returns the outcome.
	post func(members string) answer
	// base are members that the way requires.
	base string
}

// TestClaims sends each key that Parley writes or trusts over each route that takes metadata. Only those may set it whom the list
// of claims names; for anybody else, the answer is a 400 with the key.
func TestClaims(t *testing.T) {
	t.Parallel()
	h := open(t, plan{files: map[string]string{"workspaces/ours.yaml": `
id: ours
platform: web
agent: echo
web:
  tokens:
    - {id: olivia, token: ` + ownToken + `, name: Olivia}
    - {id: robot, token: ` + anyToken + `, name: Robot, senders: any}
    - {id: scout, token: ` + scoutToken + `, name: Scout, actor: "` + scoutID + `"}
    - {id: crm, token: ` + crmToken + `, name: CRM, injects: [acme], deliver: {url: "http://127.0.0.1:1/", secret: ` + crmSecret + `}}
`, "workspaces/irc.yaml": bridgeFile("irc", ircToken, "http://127.0.0.1:1/", "")}})
	made := h.started(ownToken, runInput(thread, "run-001", `"hi"`))
	quiet := h.newThread("invocation_only")
	robots := "/" + decode[struct{ ID string }](t, h.chat(http.StatusCreated, "POST", "", anyToken, `{"mode":"invocation_only"}`)).ID
	send := func(path, token, before, after string) func(string) answer {
		return func(members string) answer {
			return h.request(http.MethodPost, path, token, "application/json", before+`"metadata":{`+members+`}`+after)
		}
	}
	const (
		toWorkspace = "POST /api/v1/workspaces/{workspace}/messages"
		contract    = `"source":"crm","sender_id":"crm:7","sender_display_name":"Nora","sender_type":"human"`
		said        = `{"signal":"UserInput","data":{"message":"look",`
	)
	ids := 0
	bridge := func(before string) func(string) answer {
		return func(members string) answer {
			ids++
			return h.bridge("irc", ircToken, `{"id":"c`+strconv.Itoa(ids)+`",`+before+`"metadata":{`+members+`}}`)
		}
	}
	list := []metadataWay{
		{"POST /hooks/bridge/{workspace}", event.Bridging, bridge(ircGarden + `,"content":"look",`), contract},
		{"POST /hooks/bridge/{workspace}", event.Bridging, bridge(`"type":"reaction","emoji":"+1",`), contract},
		{"POST /hooks/bridge/{workspace}", event.Bridging, bridge(`"type":"press","post":"1","button":"parley-1",` + ircGarden + `,`), contract},
		{toWorkspace, event.Client, send("/api/v1/workspaces/ours/messages", ownToken, `{"content":"look",`, `}`), ""},
		{toWorkspace, event.Client | event.Receiver, send("/api/v1/workspaces/ours/messages", crmToken, `{"content":"look",`, `}`), ""},
		{toWorkspace, event.Integration, send("/api/v1/workspaces/ours/messages", anyToken, `{"content":"look",`, `}`), contract},
		{toWorkspace, event.Program, send("/api/v1/workspaces/acme/messages", crmToken, `{"content":"look","to":{"channel":"`+room+`"},"passive":true,`, `}`), contract},
		{"POST /api/v1/chat/threads/{thread_id}/messages", event.Client, send(chatPath+quiet+"/messages", ownToken, `{"content":"look",`, `}`), ""},
		{"POST /api/v1/chat/threads/{thread_id}/messages", event.Client, send(chatPath+robots+"/messages", anyToken, `{"content":"look",`, `}`), ""},
		{"POST /api/v1/chat/threads/{thread_id}/agent-messages", event.Client, send(chatPath+quiet+"/agent-messages", scoutToken, `{"content":"look",`, `}`), ""},
		{"POST /runs/{runId}/signals", event.Client, send("/runs/"+made.RunID+"/signals", ownToken, said, `}}`), ""},
		{"POST /api/v1/runs/{runId}/signals", event.Client, send("/api/v1/runs/"+made.RunID+"/signals", ownToken, said, `}}`), ""},
	}
	for _, way := range list {
		given, err := event.ReadObject([]byte("{" + way.base + "}"))
		if err != nil {
			t.Fatal(err)
		}
		try := func(key, value string, taken bool) {
			t.Helper()
			members := []event.Extra{{Key: key, Value: json.RawMessage(value)}}
			for _, m := range given {
				if m.Key != key {
					members = append(members, m)
				}
			}
			raw := string(event.WriteObject(members))
			got := way.post(raw[1 : len(raw)-1])
			if key == event.KeyAction && taken { // no card of the threads here has a button
				if got.status != http.StatusForbidden || !strings.Contains(got.body, `"code":"action"`) {
					t.Errorf("%s, claimant %b, a button that stands nowhere: %d %s", way.pattern, way.by, got.status, got.body)
				}
				return
			}
			switch refused := got.status == http.StatusBadRequest && strings.Contains(got.body, `"field":"metadata.`+key+`"`); {
			case taken && got.status/100 != 2, !taken && !refused:
				t.Errorf("%s, claimant %b, %s: %s: %d %s", way.pattern, way.by, key, value, got.status, got.body)
			}
		}
		for _, claim := range event.Claims() {
			identity := slices.Contains([]string{"source", "sender_id", "sender_display_name", "sender_type"}, claim.Key)
			if identity && way.by&event.Client != 0 {
				value := `"x:y"`
				if claim.Key == "sender_type" {
					value = map[bool]string{true: `"human"`, false: `"bot"`}[strings.HasSuffix(way.pattern, "agent-messages")]
				}
				try(claim.Key, value, false) // not the caller's own
			} else {
				try(claim.Key, claimValue(claim.Key), claim.By&way.by != 0)
			}
			other := strings.ToUpper(claim.Key)
			try(other, claimValue(claim.Key), way.by == event.Integration && event.IsKnown(claim.Key)) // the contract's keys match exactly
		}
		try("mood", `"x"`, true) // a key that nobody claims
		try(event.KeyPlannedAt, "null", true)
	}
	known := func(pattern string) bool {
		return slices.ContainsFunc(list, func(w metadataWay) bool { return w.pattern == pattern })
	}
	for _, pattern := range readDescription(t).takingMetadata(t) {
		if !known(pattern) {
			t.Errorf("%s takes metadata: this test needs a line for it, and its handler a check of the claims", pattern)
		}
	}
	same(t, len(h.slack.Posts()), 0)
}

// takingMetadata returns the operations whose body may have metadata.
func (d *description) takingMetadata(t *testing.T) (patterns []string) {
	t.Helper()
	for path, item := range d.Paths {
		for method, raw := range item {
			if method == "parameters" {
				continue
			}
			op := decode[operation](t, string(raw))
			if op.RequestBody == nil {
				continue
			}
			for _, body := range op.RequestBody.Content {
				if d.hasMember(body.Schema, "metadata", 0) {
					patterns = append(patterns, strings.ToUpper(method)+" "+path)
				}
			}
		}
	}
	if len(patterns) < 5 {
		t.Fatalf("only %q take metadata", patterns)
	}
	return patterns
}

// hasMember reports whether a value of the schema may have a member at any depth.
func (d *description) hasMember(s *schema, name string, depth int) bool {
	if s == nil || depth > 10 {
		return false
	}
	if s.Ref != "" {
		short, _ := strings.CutPrefix(s.Ref, "#/components/schemas/")
		return d.hasMember(d.Components.Schemas[short], name, depth+1)
	}
	for key, property := range s.Properties {
		if key == name || d.hasMember(property, name, depth+1) {
			return true
		}
	}
	return d.hasMember(s.Items, name, depth+1) || slices.ContainsFunc(s.AnyOf, func(one schema) bool { return d.hasMember(&one, name, depth+1) })
}

// TestClaimsOfAnAgent: the answer of an agent keeps its own keys, without those that only Parley or a platform writes.
func TestClaimsOfAnAgent(t *testing.T) {
	t.Parallel()
	h := openLead(t, plan{})
	h.post(ownToken, `{"thread_id":"`+thread+`","content":"who is right?"}`)
	asked := <-h.inputs
	body := `{"content":"Both."`
	for _, claim := range event.Claims() {
		if claim.Key != event.KeyFiles {
			body += `,"` + claim.Key + `":` + claimValue(claim.Key)
		}
	}
	h.call(http.MethodPost, "/api/v1/runs/"+asked.RunID+"/reply", body+`,"Planned_At":"x","mood":"fine"}`, http.StatusAccepted)
	h.awaitReply("Both.")
	got := h.web(http.MethodGet, "ours/threads/"+thread+"/messages", ownToken, "").body
	list := decode[struct {
		Messages []struct{ Metadata map[string]any }
	}](t, got).Messages
	reply := list[len(list)-1]
	for _, claim := range event.Claims() {
		_, has := reply.Metadata[claim.Key]
		if value := reply.Metadata[claim.Key]; claim.By&event.Agent == 0 && (value == "x" || value == "crm:7" || value == true || claim.Key == event.KeyMentions && has) ||
			claim.By&event.Agent != 0 && !has {
			t.Errorf("%s is %v", claim.Key, value)
		}
	}
	if _, has := reply.Metadata["Planned_At"]; has || reply.Metadata["mood"] != "fine" {
		t.Errorf("the reply has %v", reply.Metadata)
	}
}
