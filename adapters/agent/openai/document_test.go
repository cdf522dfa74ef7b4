package openai_test

import (
	"encoding/base64"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/adapters"
	"parley/adapters/agent/agenttest"
	"parley/adapters/agent/openai"
	"parley/assembly"
)

const pdf = "%PDF-1.7\n"

func document(name, content string) object {
	return object{"type": "file", "file": object{"filename": name, "file_data": "data:application/pdf;base64," + base64.StdEncoding.EncodeToString([]byte(content))}}
}

// TestDocuments checks that a PDF is sent only with documents, as the API's own part, whether images are sent or not, and within
// max_file_bytes.
func TestDocuments(t *testing.T) {
	files := shelf{"a": pdf + "a", "b": pdf + strings.Repeat("b", 100), "p": png}
	said := withFile(assembly.RoleUser, "[Ash]: read", assembly.File{Name: "a.pdf", Path: "a"}, assembly.File{Name: "b.pdf", Path: "b"}, assembly.File{Name: "p.png", Path: "p"})
	named := func(name string) object { return object{"type": "text", "text": "(file: " + name + ")"} }
	words := object{"type": "text", "text": "[Ash]: read"}
	for name, c := range map[string]struct {
		change func(c *openai.Config)
		want   []any
	}{
		"off":            {nil, []any{words, named("a.pdf"), named("b.pdf"), image("image/png", png)}},
		"on":             {func(c *openai.Config) { c.Types, c.MaxFileBytes = []string{"pdf"}, 50 }, []any{words, document("a.pdf", pdf+"a"), named("b.pdf"), image("image/png", png)}},
		"without images": {func(c *openai.Config) { c.Types, c.MaxFileBytes, c.Images = []string{"pdf"}, 50, adapters.Off }, []any{words, document("a.pdf", pdf+"a"), named("b.pdf"), named("p.png")}},
	} {
		_, got := asked(t, c.change, files, assembly.Input{Messages: []assembly.Message{said}})
		if diff := cmp.Diff([]any{object{"role": "user", "content": c.want}}, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestARefusedDocumentIsLeftOutAlone checks that a document that a server refuses costs neither another document nor a picture.
func TestARefusedDocumentIsLeftOutAlone(t *testing.T) {
	for _, words := range []string{
		`{"error":{"message":"Invalid file data: 'file_data'. Expected a valid PDF.","type":"invalid_request_error","param":"messages[1].content[1]"}}`,
		`{"type":"error","error":{"type":"invalid_request_error","message":"A maximum of 100 PDF pages may be provided."}}`,
		`{"object":"error","message":"Unknown part type: file","type":"BadRequestError","code":400}`,
		`{"error":{"code":400,"message":"unsupported content[].type"}}`,
	} {
		var seen []int
		server := agenttest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if strings.Contains(string(body), document("", pdf+"bad")["file"].(object)["file_data"].(string)) {
				http.Error(w, words, http.StatusBadRequest)
				return
			}
			seen = append(seen, strings.Count(string(body), ";base64,"))
			speak(w).delta("Yes.").finish("stop").done()
		})
		input, copies := showing("fine")
		copies["bad"], copies["good"] = pdf+"bad", pdf+"good"
		files := append([]assembly.File{{Name: "bad.pdf", Path: "bad"}, {Name: "good.pdf", Path: "good"}}, input.Said[0].Files...)
		input.Messages, input.Said[0].Files = []assembly.Message{withFile(assembly.RoleUser, "[Olivia]: look", files...)}, files
		settings := config(server)
		settings.Types, settings.MaxFileBytes = []string{"pdf"}, 50
		agent := openai.New(settings, copies, nil)
		for range 2 {
			if answer, err := answerOf(t, agent, input); err != nil || answer != "Yes.\n\n(I couldn't look at bad.pdf: the model's server did not accept it.)" {
				t.Errorf("%s: %q, %v", words, answer, err)
			}
		}
		if !slices.Equal(seen, []int{2, 2}) || len(agent.Learnt()) > 0 {
			t.Errorf("%s: %v files, learnt %q", words, seen, agent.Learnt())
		}
	}
}
