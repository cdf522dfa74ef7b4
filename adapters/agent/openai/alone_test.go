package openai_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/adapters/agent/agenttest"
	"parley/adapters/agent/openai"
	"parley/assembly"
	"parley/assembly/runinput"
	"parley/ingest/stream"
)

// showing returns the input of a turn whose message has pictures.
func showing(paths ...string) (assembly.Input, shelf) {
	files, copies := []assembly.File{}, shelf{}
	for _, path := range paths {
		files = append(files, assembly.File{Name: path + ".png", MimeType: "image/png", Path: path})
		copies[path] = png + path
	}
	input := hello()
	input.Messages = []assembly.Message{withFile(assembly.RoleUser, "[Olivia]: look", files...)}
	input.Said = []assembly.Said{{ID: "m", Content: "look", Files: files}}
	return input, copies
}

// TestARefusedPictureIsLeftOutAlone checks that a picture that a server refuses costs only itself: the others of its
// message are seen, the person reads which one is not, a later turn does not ask again, and other threads keep their pictures.
func TestARefusedPictureIsLeftOutAlone(t *testing.T) {
	for _, c := range []struct {
		server string
		status int
		words  string
	}{
		{"Anthropic, in a gateway: docs.anthropic.com/en/docs/build-with-claude/vision", 400, `{"error":{"message":"messages.1.content.1.image.source.base64.data: At least one of the image dimensions exceed max allowed size: 8000 pixels","type":"invalid_request_error"}}`},
		{"Anthropic", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"Could not process image"}}`},
		{"OpenAI: platform.openai.com/docs/guides/images", 400, `{"error":{"message":"You uploaded an unsupported image. Please make sure your image is valid.","type":"invalid_request_error","code":"invalid_image"}}`},
		{"OpenAI", 400, `{"error":{"message":"The image data you provided does not represent a valid image. Please check your input and try again.","code":"invalid_image"}}`},
		{"Google: ai.google.dev/gemini-api/docs/troubleshooting", 400, `[{"error":{"code":400,"message":"Unable to process input image. Please retry or report in https://developers.generativeai.google/guide/troubleshooting","status":"INVALID_ARGUMENT"}}]`},
		{"vLLM", 400, `{"object":"error","message":"cannot identify image file <_io.BytesIO object at 0x7f>","type":"BadRequestError","code":400}`},
		{"llama.cpp", 400, `{"error":{"code":400,"message":"Failed to load image or audio file","type":"invalid_request_error"}}`},
		{"nginx", 413, `<html><head><title>413 Request Entity Too Large</title></head></html>`},
	} {
		requests, seen := 0, []int{}
		server := agenttest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
			requests++
			body, _ := io.ReadAll(r.Body)
			if strings.Contains(string(body), image("image/png", png+"bad")["image_url"].(object)["url"].(string)) {
				http.Error(w, c.words, c.status)
				return
			}
			seen = append(seen, strings.Count(string(body), "data:image/png"))
			speak(w).delta("Yes.").finish("stop").done()
		})
		mine, copies := showing("good", "bad", "fine")
		other, more := showing("other")
		copies["other"] = more["other"]
		agent := openai.New(config(server), copies, nil)
		var answers []string
		for _, input := range []assembly.Input{mine, mine, other} {
			answer, err := answerOf(t, agent, input)
			if err != nil {
				t.Errorf("%s: %v", c.words, err)
			}
			answers = append(answers, answer)
		}
		const told = "Yes.\n\n(I couldn't look at bad.png: the model's server did not accept it.)"
		if diff := cmp.Diff([]string{told, told, "Yes."}, answers); diff != "" || !slices.Equal(seen, []int{2, 2, 1}) || requests > 6 || len(agent.Learnt()) > 0 {
			t.Errorf("%s: %d requests, %v pictures, learnt %q\n%s", c.words, requests, seen, agent.Learnt(), diff)
		}
	}
}

// TestAModelWithoutPictures checks the words about the model itself: they count for every thread.
func TestAModelWithoutPictures(t *testing.T) {
	for _, words := range []string{ // OpenRouter, OpenAI, vLLM, llama.cpp, Ollama
		"No endpoints found that support image input",
		"Invalid content type. image_url is only supported by certain models.",
		"At most 0 image(s) may be provided in one prompt.",
		"image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
		"this model is missing data required for image input",
	} {
		requests := 0
		agent, copies := (*openai.Agent)(nil), shelf{}
		server := agenttest.Serve(t, strictServer(func(s sent) (int, string) {
			if s.images() {
				return 400, `{"error":{"message":"` + words + `"}}`
			}
			return 0, ""
		}, &requests))
		for i, name := range []string{"a", "b"} {
			input, more := showing(name)
			copies[name] = more[name]
			if i == 0 {
				agent = openai.New(config(server), copies, nil)
			}
			if answer, err := answerOf(t, agent, input); answer != "Yes." || err != nil {
				t.Errorf("%s: %q, %v", words, answer, err)
			}
		}
		if requests != 3 || len(agent.Learnt()) != 1 {
			t.Errorf("%s: %d requests, learnt %q", words, requests, agent.Learnt())
		}
	}
}

// TestAToolWithARefusedSchemaIsLeftOutAlone checks that a tool whose schema the model's server refuses costs only itself,
// with a WARNING in each run; that words that name none cost the tools of other servers; and that a mended one is offered again.
func TestAToolWithARefusedSchemaIsLeftOutAlone(t *testing.T) {
	for _, c := range []struct {
		server, words string
		status        int
		want          []string
	}{
		{"OpenAI: platform.openai.com/docs/guides/function-calling", `{"error":{"message":"Invalid schema for function 'forecast': In context=('properties', 'days'), array schema missing items.","type":"invalid_request_error","param":"tools[2].function.parameters","code":"invalid_function_parameters"}}`, 400, []string{"read_thread", "list"}},
		{"Anthropic, in a gateway", `{"error":{"message":"tools.2.custom.input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12","type":"invalid_request_error"}}`, 400, []string{"read_thread", "list"}},
		{"Google", `[{"error":{"code":400,"message":"* GenerateContentRequest.tools[0].function_declarations[2].parameters.properties[days].items: missing field.\n","status":"INVALID_ARGUMENT"}}]`, 400, []string{"read_thread", "list"}},
		{"llama.cpp", `{"error":{"code":500,"message":"JSON schema conversion failed:\nUnrecognized schema: {\"type\":\"any\"}","type":"server_error"}}`, 500, []string{"read_thread"}},
	} {
		var offered [][]string
		server := agenttest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
			var body struct {
				Tools []struct {
					Function struct {
						Name       string
						Parameters json.RawMessage
					}
				}
			}
			if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
				t.Error(err)
			}
			names, faulty := []string{}, false
			for _, tool := range body.Tools {
				names = append(names, tool.Function.Name)
				faulty = faulty || strings.Contains(string(tool.Function.Parameters), `"array"`)
			}
			if offered = append(offered, names); faulty {
				http.Error(w, c.words, c.status)
				return
			}
			speak(w).delta("Yes.").finish("stop").done()
		})
		agent := openai.New(config(server), nil, nil)
		ask := func(schema string) (warnings []string) {
			input := hello()
			input.Tools = []runinput.Tool{
				{Name: "read_thread", Parameters: json.RawMessage(`{"type":"object"}`)},
				{Name: "list", Parameters: json.RawMessage(`{"type":"object"}`), Server: "tools.example.com"},
				{Name: "forecast", Parameters: json.RawMessage(schema), Server: "tools.example.com"},
			}
			input.Called = nil
			emitted, err := agenttest.Run(t.Context(), agent, input)
			if err != nil {
				t.Errorf("%s: %v", c.server, err)
			}
			return texts(of(emitted, stream.Warning))
		}
		const faulty = `{"type":"object","properties":{"days":{"type":"array"}}}`
		all, first := []string{"read_thread", "list", "forecast"}, ask(faulty)
		if diff := cmp.Diff(first, ask(faulty)); diff != "" || len(first) != 3-len(c.want) || first[len(first)-1] != "The tool forecast of tools.example.com is left out: the model's server refuses its schema." {
			t.Errorf("%s: warnings %q %s", c.server, first, diff)
		}
		if len(agent.Learnt()) != 3-len(c.want) {
			t.Errorf("%s: learnt %q", c.server, agent.Learnt())
		}
		if ask(`{"type":"object"}`); len(c.want) == 2 { // it is mended
			c.want = all
		} else {
			c.want = []string{"read_thread", "forecast"}
		}
		if last := offered[len(offered)-1]; !slices.Equal(last, c.want) || len(offered) != 4 || !slices.Equal(offered[0], all) {
			t.Errorf("%s: offered %q", c.server, offered)
		}
	}
}

// TestABadCallIsNoRefusedTool: words about a call that the model has written, which name its schema too, leave out no tool.
func TestABadCallIsNoRefusedTool(t *testing.T) {
	var names [][]string
	server := agenttest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if names = append(names, nil); !strings.Contains(string(body), `"look"`) {
			t.Errorf("the request is %s", body)
		}
		http.Error(w, `{"error":{"message":"Tool call validation failed: parameters for tool look did not match schema: missing properties: 'at'","type":"invalid_request_error","code":"tool_use_failed"}}`, 400)
	})
	agent, input := openai.New(config(server), nil, nil), hello()
	input.Tools = []runinput.Tool{{Name: "look", Parameters: json.RawMessage(`{"type":"object"}`)}}
	if _, err := agenttest.Run(t.Context(), agent, input); err == nil || len(agent.Learnt()) > 0 {
		t.Errorf("%v, learnt %q", err, agent.Learnt())
	}
}

// TestStreamsOfAnotherType checks event streams that come under another type or none, as FastAPI, Ktor and LitServe
// send them, and that pages and the own protocol of Ollama stay errors, told once.
func TestStreamsOfAnotherType(t *testing.T) {
	const events = `data: {"choices":[{"delta":{"content":"hi"}}]}` + "\n\ndata: [DONE]\n\n"
	for _, c := range []struct{ kind, body, want, fault string }{
		{"text/plain; charset=utf-8", events, "hi", ""}, {"application/octet-stream", events, "hi", ""}, {"application/x-ndjson", events, "hi", ""},
		{"text/plain", ": ping\n\n" + events, "hi", ""}, {"text/plain", "event: message\n" + events, "hi", ""}, {"application/json", "\ufeff" + events, "hi", ""},
		{"text/html", "<html>data: x</html>", "", `the answer is "text/html", not an event stream`},
		{"text/plain", "data", "", `the answer is "text/plain", not an event stream`},
		{"application/x-ndjson", `{"model":"m","message":{"role":"assistant","content":"h"},"done":false}` + "\n" + `{"model":"m","message":{"role":"assistant","content":"i"},"done":true}` + "\n", "", "one JSON object for each line"},
	} {
		requests := 0
		agent := model(t, func(w http.ResponseWriter, _ *http.Request) {
			requests++
			w.Header().Set("Content-Type", c.kind)
			fmt.Fprint(w, c.body)
		})
		answer, err := answerOf(t, agent, hello())
		if answer != c.want || (err == nil) != (c.fault == "") || err != nil && (!strings.Contains(err.Error(), c.fault) || !fault(t, err).Permanent) || requests != 1 {
			t.Errorf("%s: %q, %v, %d requests", c.kind, answer, err, requests)
		}
	}
}

// TestTheAddressIsNamed checks the help about an address that a server does not know, or that it redirects.
func TestTheAddressIsNamed(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/agent/chat/completions":
			http.Redirect(w, r, "/agent/chat/completions/?key=canary", http.StatusTemporaryRedirect)
		case "/away/chat/completions":
			http.Redirect(w, r, "https://elsewhere.example/x", http.StatusPermanentRedirect)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	for path, want := range map[string]string{
		"":                "404 Not Found (the base_url of most servers ends in /v1: try it with /v1, or check the model)",
		"/v1":             "404 Not Found (check the agent's address and model)",
		"/v1beta/openai/": "404 Not Found (check the agent's address and model)",
		"/agent":          "(redirects are not followed: configure the final address, " + server.URL + "/agent/chat/completions/)",
		"/away":           "(redirects are not followed: configure the final address)",
	} {
		settings := config(server.URL)
		settings.BaseURL = server.URL + path
		_, err := answerOf(t, openai.New(settings, nil, nil), hello())
		if f := fault(t, err); !f.Permanent || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", path, err)
		}
	}
	settings := config(server.URL)
	settings.BaseURL += "/chat/completions"
	if err := settings.Validate().Err(); err == nil || !strings.Contains(err.Error(), "must end before /chat/completions") {
		t.Error(err)
	}
}
