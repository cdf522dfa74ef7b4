package openai_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/adapters/agent/agenttest"
	"parley/adapters/agent/openai"
	"parley/adapters/agent/remote"
	"parley/assembly"
	"parley/ingest/stream"
)

// sent is a request as a strict server reads it.
type sent struct {
	Options  any `json:"stream_options"`
	Stream   bool
	Messages []struct {
		Role    string
		Content json.RawMessage
	}
}

func (s sent) roles() (roles []string) {
	for _, m := range s.Messages {
		roles = append(roles, m.Role)
	}
	return roles
}

// strictServer refuses what one kind of model server refuses. refuse returns a status and the words.
func strictServer(refuse func(s sent) (int, string), asked *int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		*asked++
		var s sent
		if err := json.NewDecoder(r.Body).Decode(&s); err != nil {
			http.Error(w, err.Error(), 400)
			return
		}
		if status, words := refuse(s); status != 0 {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			fmt.Fprint(w, words)
			return
		}
		speak(w).delta("Yes.").finish("stop").done()
	}
}

func (s sent) images() bool {
	return slices.ContainsFunc(s.Messages, func(m struct {
		Role    string
		Content json.RawMessage
	}) bool {
		return strings.Contains(string(m.Content), "image_url")
	})
}

func alternates(roles []string) bool {
	roles = slices.DeleteFunc(slices.Clone(roles), func(role string) bool { return role == "system" })
	for i, role := range roles {
		if role != []string{"user", "assistant"}[i%2] {
			return false
		}
	}
	return true
}

func countText(s sent) (n int) {
	for _, m := range s.Messages {
		n += len(m.Content)
	}
	return n
}

// strictServers are the refusals of servers, in their words.
var strictServers = map[string]func(s sent) (int, string){
	"roles alternate": func(s sent) (int, string) {
		if !alternates(s.roles()) || len(s.roles()) > 0 && slices.Contains(s.roles()[1:], "system") {
			return 500, `{"error":{"code":500,"message":"After the optional system message, conversation roles must alternate user/assistant/user/assistant/...","type":"server_error"}}`
		}
		return 0, ""
	},
	"the system message comes first": func(s sent) (int, string) {
		if slices.Contains(s.roles()[1:], "system") {
			return 400, `{"object":"error","message":"System message must be at the beginning.","type":"BadRequestError","param":null,"code":400}`
		}
		return 0, ""
	},
	"no system role": func(s sent) (int, string) {
		if slices.Contains(s.roles(), "system") || !alternates(s.roles()) {
			return 400, `{"error":{"message":"System role not supported","type":"invalid_request_error"}}`
		}
		return 0, ""
	},
	"no images": func(s sent) (int, string) {
		if s.images() {
			return 404, `{"error":{"message":"No endpoints found that support image input","code":404}}`
		}
		return 0, ""
	},
	"a gateway that names no cause": func(s sent) (int, string) {
		if s.images() {
			return 400, ""
		}
		return 0, ""
	},
	"a server that fails on images": func(s sent) (int, string) {
		if s.images() {
			return 500, `{"error":{"message":"failed to process inputs: unexpected EOF","type":"api_error"}}`
		}
		return 0, ""
	},
	"a rule of a role's content": func(s sent) (int, string) {
		if s.images() {
			return 400, `{"error":{"message":"'messages.1' : for 'role:user' the following must be satisfied[('messages.1.content' : value must be a string)]","type":"invalid_request_error"}}`
		}
		return 0, ""
	},
	"messages that interleave": func(s sent) (int, string) {
		if !alternates(s.roles()) {
			return 400, `{"error":{"message":"this model does not support successive user or assistant messages (messages[1] and messages[2] in your input). You should interleave the user/assistant messages in the message sequence."}}`
		}
		return 0, ""
	},
	"a value of a role": func(s sent) (int, string) {
		if slices.Contains(s.roles(), "system") {
			return 400, `{"error":{"message":"Unsupported value: 'messages[0].role' does not support 'system' with this model.","code":"unsupported_value"}}`
		}
		return 0, ""
	},
	"no system role, in code": func(s sent) (int, string) {
		if slices.Contains(s.roles(), "system") {
			return 400, "{\"error\":{\"message\":\"`system` role is not supported with this model\"}}"
		}
		return 0, ""
	},
	"roles of a list": func(s sent) (int, string) {
		if slices.Contains(s.roles(), "system") {
			return 422, `{"detail":[{"type":"literal_error","loc":["body","messages",0,"role"],"msg":"Input should be 'user' or 'assistant'","input":"system"}]}`
		}
		return 0, ""
	},
	"no stream": func(s sent) (int, string) {
		if s.Stream {
			return 400, `{"error":{"message":"Unsupported value: 'stream' does not support true with this model.","param":"stream","code":"unsupported_value"}}`
		}
		return 0, ""
	},
	"a parameter that is not valid": func(s sent) (int, string) {
		if s.Options != nil {
			return 400, `{"error":{"message":"stream_options is not a valid parameter"}}`
		}
		return 0, ""
	},
	"a short context": func(s sent) (int, string) {
		if n := countText(s) / 3; n > 2048 {
			return 400, fmt.Sprintf(`{"error":{"code":400,"message":"request (%d tokens) exceeds the available context size (2048 tokens), try increasing it","type":"exceed_context_size_error"}}`, n)
		}
		return 0, ""
	},
	"an unknown parameter": func(s sent) (int, string) {
		if s.Options != nil {
			return 422, `{"detail":[{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"Extra inputs are not permitted"}]}`
		}
		return 0, ""
	},
}

// thread returns the input of a thread's nth turn. Its first turn has two messages and a context block, the
// second one an image.
func thread(n int) (assembly.Input, shelf) {
	block := text(assembly.RoleSystem, "[Thread context — prior messages in this thread, newest last]\n- Ash: hm"+strings.Repeat("\n- Ash: and so on and on", 100))
	block.ID = "context-m1"
	one, two := text(assembly.RoleUser, "[Olivia]: one"), text(assembly.RoleUser, "[Ash]: two")
	one.ID, two.ID = "m1", "m2"
	input := assembly.Input{RunID: fmt.Sprintf("run-%d", n), Messages: []assembly.Message{block, one, two}, Said: []assembly.Said{{ID: "m1"}, {ID: "m2"}}}
	for i := 2; i <= n; i++ {
		input.Messages = append(input.Messages, text(assembly.RoleAssistant, "Yes."))
		question := text(assembly.RoleUser, fmt.Sprintf("[Olivia]: turn %d %s", i, strings.Repeat("word ", 500)))
		if i == 2 {
			question = withFile(assembly.RoleUser, question.Parts[0].Text, assembly.File{Name: "a.png", MimeType: "image/png", Path: "p"})
		}
		if i == 3 {
			later := text(assembly.RoleSystem, "[Thread context — prior messages in this thread, newest last]\n- Ash: later")
			later.ID = "context-t3"
			input.Messages = append(input.Messages, later)
		}
		question.ID = fmt.Sprintf("t%d", i)
		input.Messages = append(input.Messages, question)
		input.Said = []assembly.Said{{ID: question.ID}}
	}
	return input, shelf{"p": png}
}

// unnamed are the servers whose words name no cause. They refuse the pictures of a thread, and the agent learns nothing about
// the model from that.
var unnamed = map[string]int{"a gateway that names no cause": 1, "a server that fails on images": 1}

// TestStrictServers checks that each turn of a thread is answered, with one request more than turns at most,
// and that the agent names the refused form. Each server has two agents: the second one has learnt nothing,
// like a process that starts after a kill.
func TestStrictServers(t *testing.T) {
	for name, refuse := range strictServers {
		asked := 0
		server := agenttest.Serve(t, strictServer(refuse, &asked))
		_, files := thread(1)
		agent := openai.New(config(server), files, nil)
		for turn := 1; turn <= 4; turn++ {
			input, _ := thread(turn)
			answered, err := answerOf(t, agent, input)
			if err != nil || answered != "Yes." {
				t.Errorf("%s: turn %d: %q, %v", name, turn, answered, err)
			}
		}
		if asked > 5 || len(agent.Learnt()) != 1-unnamed[name] {
			t.Errorf("%s: %d requests for 4 turns, learnt %q", name, asked, agent.Learnt())
		}
		asked = 0
		input, _ := thread(4)
		if answered, err := answerOf(t, openai.New(config(server), files, nil), input); err != nil || answered != "Yes." || asked > 2 {
			t.Errorf("%s: after a start: %d requests, %q, %v", name, asked, answered, err)
		}
	}
}

// TestAPassingFaultKeepsImages checks that a fault of the server itself is not taken for a refusal of images, but
// left to the next attempt.
func TestAPassingFaultKeepsImages(t *testing.T) {
	asked := 0
	server := agenttest.Serve(t, strictServer(func(sent) (int, string) {
		return 500, `{"error":{"message":"The server had an error while processing your request."}}`
	}, &asked))
	input, files := thread(2)
	agent := openai.New(config(server), files, nil)
	if _, err := answerOf(t, agent, input); fault(t, err).Permanent || asked != 1 || len(agent.Learnt()) > 0 {
		t.Errorf("%d requests, learnt %q, %v", asked, agent.Learnt(), err)
	}
}

func answerOf(t *testing.T, agent *openai.Agent, input assembly.Input) (answer string, err error) {
	t.Helper()
	err = agent.Run(t.Context(), input, func(m stream.Message) error {
		if m.Type == stream.Answer {
			answer = m.Text
		}
		return nil
	})
	return answer, err
}

// TestStrictForm checks the messages in strict form, with and without a system role.
func TestStrictForm(t *testing.T) {
	input := assembly.Input{Messages: []assembly.Message{
		text(assembly.RoleSystem, "[Thread context]\n- Ash: hm"), text(assembly.RoleUser, "[Olivia]: one"), text(assembly.RoleUser, "[Ash]: two\nlines"),
		text(assembly.RoleAssistant, "Yes."), text(assembly.RoleAssistant, "And no."), text(assembly.RoleSystem, "- later"), text(assembly.RoleUser, "[Olivia]: three"),
	}}
	strict := func(config *openai.Config) { config.Messages, config.SystemPrompt = remote.Strict, "Be brief." }
	_, got := asked(t, strict, nil, input)
	want := contents("system", "Be brief.", "user", "[Thread context]\n- Ash: hm\n\n[Olivia]: one\n\n[Ash]: two\n  lines",
		"assistant", "Yes.\n\nAnd no.", "user", "- later\n\n[Olivia]: three")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestRefusalsThatStay checks refusals that no other form avoids: they fail at once, and a turn that is too
// long tells the person so.
func TestRefusalsThatStay(t *testing.T) {
	for _, c := range []struct {
		words    string
		turn     int
		requests int
		sentence string
	}{
		{`{"error":{"message":"prompt is too long: 208310 tokens > 200000 maximum"}}`, 1, 4, "Sorry, this is too long for the model that I ask. Please send it in smaller parts. /new starts afresh, without the messages before it."},
		{`{"error":"input length exceeds the context length"}`, 0, 1, "Sorry, this is too long for the model that I ask. Please send it in smaller parts."},
		{`{"error":{"message":"Conversation roles must alternate"}}`, 0, 2, ""},
		{`{"error":{"message":"Conversation roles must alternate"}}`, 1, 3, ""},
		{`{"error":{"message":"image input is not supported"}}`, 0, 1, ""},
		{`{"error":{"message":"The response was filtered","code":"content_filter"}}`, 0, 1, remote.Declined},
	} {
		requests := 0
		agent := model(t, strictServer(func(sent) (int, string) { return 500, c.words }, &requests))
		input := hello()
		if c.turn > 0 {
			input, _ = thread(c.turn)
		}
		_, err := answerOf(t, agent, input)
		permanent := !strings.Contains(c.words, "image")
		if f := fault(t, err); f.Permanent != permanent || f.Sentence() != c.sentence || requests != c.requests {
			t.Errorf("%s: %d requests, permanent %v, %q", c.words, requests, f.Permanent, f.Sentence())
		}
		if len(agent.Learnt()) > 0 && !strings.Contains(c.words, "roles") {
			t.Errorf("%s: learnt %q", c.words, agent.Learnt())
		}
	}
}

// TestDeclinedAnswers checks answers that the provider's filter cuts off before their first word, and inputs that
// it refuses.
func TestDeclinedAnswers(t *testing.T) {
	for _, said := range []string{
		"content_filter", "refusal", "content_filter: PROHIBITED_CONTENT", "SAFETY", "sensitive",
		`{"type":"error","error":{"type":"invalid_request_error","message":"Output blocked by content filtering policy"}}`,
		`{"error":{"message":"The request was rejected because it was considered high risk","type":"content_filter"}}`,
		`{"error":{"message":"The request was rejected","type":"content_filter"}}`,
		`{"error":{"message":"<400> InternalError.Algo.DataInspectionFailed: Input text data may contain inappropriate content."}}`,
		`{"error":{"code":403,"message":"The model requires moderation. Your input was flagged for \"violence\"."}}`,
	} {
		agent := model(t, func(w http.ResponseWriter, _ *http.Request) {
			if said[0] == '{' {
				http.Error(w, said, 400)
				return
			}
			speak(w).finish(said).done()
		})
		_, err := run(t.Context(), agent)
		if f := fault(t, err); !f.Permanent || f.Sentence() != "The model's provider declined to answer this." {
			t.Errorf("%s: %v, %q", said, err, f.Sentence())
		}
	}
}
