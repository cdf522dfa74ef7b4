package trial

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/adapters/slack"
	"parley/cmd/parley-bench/internal/ledger"
	"parley/cmd/parley-bench/internal/rig"
	"parley/cmd/parley-bench/internal/rigtest"
	"parley/config/secret"
)

// Slack's posts of a long answer are its paragraphs.
func TestLongAnswerIsThreePosts(t *testing.T) {
	adapter := slack.New(rig.Workspace, slack.Config{APIURL: "http://127.0.0.1/", BotToken: secret.New("x")})
	texts := longAnswer(123456, 3)
	if diff := cmp.Diff(texts, adapter.Format(strings.Join(texts, ""), nil)); diff != "" {
		t.Error(diff)
	}
}

func TestModelRepeatsTheLastMark(t *testing.T) {
	l, b := ledger.New(), rigtest.NewBench(t)
	m := StartModel(b, l, Behaviour{Duration: func(int) time.Duration { return 0 }, Answer: longAnswer})
	body := `{"messages":[{"role":"user","content":"` + ledger.Mark(1, 0, 1) + `"},{"role":"user","content":"` + ledger.Mark(2, 5, 1) + `"}]}`
	response, err := http.Post(m.url+"/parley-0/v1/chat/completions", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	answer := readStream(t, response)
	if err := b.Close(); err != nil { // it waits for the server
		t.Fatal(err)
	}
	if want := strings.Join(longAnswer(2, 5), ""); answer != want {
		t.Errorf("an answer of %d bytes: %.100q", len(answer), answer)
	}
	if len(l.Requests) != 1 || l.Requests[0].ID != 2 || l.Requests[0].Revision != 5 || l.Requests[0].Daemon != "parley-0" || !l.Requests[0].Ended.After(l.Requests[0].Arrived) {
		t.Errorf("requests %+v", l.Requests)
	}
	if diff := cmp.Diff([]int{1}, l.Requests[0].With); diff != "" {
		t.Error(diff)
	}
}

// readStream joins the deltas of a chat completion.
func readStream(t *testing.T, response *http.Response) string {
	t.Helper()
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for data := range strings.SplitSeq(string(body), "\n\n") {
		var chunk struct {
			Choices []struct{ Delta struct{ Content string } }
		}
		data = strings.TrimPrefix(data, "data: ")
		if data == "" || data == "[DONE]" {
			continue
		}
		if err := json.Unmarshal([]byte(data), &chunk); err != nil {
			t.Fatal(err)
		}
		text.WriteString(chunk.Choices[0].Delta.Content)
	}
	return text.String()
}
