package bluebubblestest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/adapters/bluebubbles/bluebubblestest"
)

const (
	nora   = "+15555550142"
	direct = "iMessage;-;" + nora
)

func start(t *testing.T, options bluebubblestest.Options) *bluebubblestest.Server {
	t.Helper()
	s, err := bluebubblestest.Start(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// answer is the envelope of an answer.
type answer struct {
	Status   int
	Message  string
	Data     json.RawMessage
	Error    struct{ Type, Message string }
	Metadata struct{ Total, Count int }
}

// ask makes a call with the password.
func ask(t *testing.T, s *bluebubblestest.Server, method, path, body string) (a answer, err error) {
	t.Helper()
	separator := "?"
	if strings.Contains(path, "?") {
		separator = "&"
	}
	request, err := http.NewRequestWithContext(t.Context(), method, s.URL()+"/api/v1/"+path+separator+"password="+bluebubblestest.Password, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return a, err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &a); err != nil {
		a.Data = raw
		return a, nil
	}
	if a.Status != response.StatusCode {
		t.Errorf("%s %s: status %d in the answer, %d in the header", method, path, a.Status, response.StatusCode)
	}
	return a, nil
}

// rows is the data of a query.
type row struct {
	GUID     string `json:"guid"`
	Text     string
	TempGUID string `json:"tempGuid"`
	ROWID    int64  `json:"originalROWID"`
	Chats    []struct{ GUID string }
}

func texts(t *testing.T, a answer) (all []string) {
	t.Helper()
	var list []row
	if err := json.Unmarshal(a.Data, &list); err != nil {
		t.Fatalf("%v: %s", err, a.Data)
	}
	for _, r := range list {
		all = append(all, r.Text)
	}
	return all
}

func TestPassword(t *testing.T) {
	s := start(t, bluebubblestest.Options{})
	for path, want := range map[string]int{"ping": 401, "ping?password=wrong": 401, "ping?guid=" + bluebubblestest.Password: 200, "nothing?token=" + bluebubblestest.Password: 404} {
		response, err := http.Get(s.URL() + "/api/v1/" + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("%s: status %d, want %d", path, response.StatusCode, want)
		}
	}
}

// TestQuery checks the order by date, the condition on ROWID, the pages, and the bounds.
func TestQuery(t *testing.T) {
	s := start(t, bluebubblestest.Options{})
	noon := time.UnixMilli(1_790_000_000_000)
	for i, text := range []string{"one", "two", "late", "three"} {
		at := noon.Add(time.Duration(i) * time.Minute)
		if text == "late" {
			at = noon.Add(-time.Hour)
		}
		s.Put(bluebubblestest.Message{Chat: direct, From: nora, Text: text, CreatedAt: at})
	}
	for body, want := range map[string][]string{
		`{"sort":"ASC"}`:                       {"late", "one", "two", "three"},
		`{"limit":2}`:                          {"three", "two"},
		`{"sort":"ASC","offset":3}`:            {"three"},
		`{"sort":"ASC","after":1790000000000}`: {"one", "two", "three"},
		`{"sort":"ASC","where":[{"statement":"message.ROWID > :r","args":{"r":2}}]}`: {"late", "three"},
	} {
		a, err := ask(t, s, "POST", "message/query", body)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, texts(t, a)); diff != "" {
			t.Errorf("%s: %s", body, diff)
		}
	}
	if a, _ := ask(t, s, "POST", "message/query", `{"limit":1001}`); a.Status != 400 || a.Error.Type != "Validation Error" {
		t.Errorf("a limit of 1001: %+v", a)
	}
	if a, _ := ask(t, s, "POST", "message/query", `{"chatGuid":"iMessage;-;x"}`); a.Status != 0 {
		t.Errorf("an unknown chat has an answer in JSON: %+v", a)
	}
}

// webhook is a receiver of webhooks.
func receive(t *testing.T, s *bluebubblestest.Server, events ...string) <-chan answerBody {
	t.Helper()
	got := make(chan answerBody, 100)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var b answerBody
		if err := json.NewDecoder(r.Body).Decode(&b); err != nil {
			t.Error(err)
		}
		got <- b
	}))
	t.Cleanup(server.Close)
	a, err := ask(t, s, "POST", "webhook", `{"url":"`+server.URL+`","events":["`+strings.Join(events, `","`)+`"]}`)
	if err != nil || a.Status != 200 {
		t.Fatal(err, a)
	}
	return got
}

type answerBody struct {
	Type string
	Data row
}

// TestWebhooks checks the forms of new and changed messages, and both events of a send.
func TestWebhooks(t *testing.T) {
	s := start(t, bluebubblestest.Options{})
	got := receive(t, s, "new-message", "updated-message")
	m, _ := s.Say(bluebubblestest.Message{Chat: direct, From: nora, Text: "hi"})
	if b := <-got; b.Type != "new-message" || b.Data.Text != "hi" || len(b.Data.Chats) != 1 || b.Data.ROWID != 1 {
		t.Errorf("got %+v", b)
	}
	s.Edit(m.GUID, "hello")
	if b := <-got; b.Type != "updated-message" || b.Data.Text != "hello" || b.Data.Chats != nil {
		t.Errorf("got %+v", b)
	}
	a, err := ask(t, s, "POST", "message/text", `{"chatGuid":"`+direct+`","message":"yes","tempGuid":"t1","method":"apple-script"}`)
	if err != nil || a.Status != 200 {
		t.Fatal(err, a)
	}
	temporary := map[string]bool{(<-got).Data.TempGUID: true, (<-got).Data.TempGUID: true}
	if diff := cmp.Diff(map[string]bool{"t1": true, "": true}, temporary); diff != "" {
		t.Error(diff)
	}
	s.Push("typing-indicator", nil) // not wanted
	s.Replay()
	if b := <-got; b.Type != "new-message" {
		t.Errorf("got %+v", b)
	}
}

// TestWebhookFaults checks that an event can be lost, doubled and late.
func TestWebhookFaults(t *testing.T) {
	const late = 50 * time.Millisecond
	delays := [][]time.Duration{{}, {0, 0}, {late}, {0}}
	s := start(t, bluebubblestest.Options{Webhooks: func(string) []time.Duration {
		next := delays[0]
		delays = delays[1:]
		return next
	}})
	got, begun := receive(t, s, "*"), time.Now()
	for _, text := range []string{"lost", "doubled", "late", "last"} {
		s.Say(bluebubblestest.Message{Chat: direct, From: nora, Text: text})
	}
	count := map[string]int{}
	for range 4 {
		text := (<-got).Data.Text
		count[text]++
		if after := time.Since(begun); text == "late" && after < late {
			t.Errorf("the late one came after %v", after)
		}
	}
	if diff := cmp.Diff(map[string]int{"doubled": 2, "late": 1, "last": 1}, count); diff != "" {
		t.Error(diff)
	}
}

// TestRegistration checks that a known URL keeps its events until it is deleted.
func TestRegistration(t *testing.T) {
	s := start(t, bluebubblestest.Options{})
	for _, body := range []string{`{"url":"http://h/a","events":["new-message"]}`, `{"url":"http://h/a","events":["*"]}`} {
		if a, err := ask(t, s, "POST", "webhook", body); err != nil || a.Status != 200 {
			t.Fatal(err, a)
		}
	}
	want := []bluebubblestest.Webhook{{ID: 1, URL: "http://h/a", Events: []string{"new-message"}}}
	if diff := cmp.Diff(want, s.Registered()); diff != "" {
		t.Error(diff)
	}
	if a, err := ask(t, s, "DELETE", "webhook/1", ""); err != nil || a.Status != 200 || len(s.Registered()) != 0 {
		t.Errorf("%v, %+v, %v", err, a, s.Registered())
	}
}

// TestSendFaults checks the effect and the answer of failing sends.
func TestSendFaults(t *testing.T) {
	s := start(t, bluebubblestest.Options{BodyOnly: true})
	s.SetChat(bluebubblestest.Chat{GUID: direct})
	never := make(chan struct{})
	for name, c := range map[string]struct {
		fault bluebubblestest.Fault
		sent  int
		fails bool // without an answer
	}{
		"refused":           {bluebubblestest.Fault{Status: 500}, 0, false},
		"refused, but sent": {bluebubblestest.Fault{Status: 500, Effect: true}, 1, false},
		"cut":               {bluebubblestest.Fault{Cut: true}, 0, true},
		"no answer":         {bluebubblestest.Fault{Effect: true, Hold: never}, 1, true},
		"late":              {bluebubblestest.Fault{Status: 500, Late: time.Millisecond}, 1, false},
	} {
		before := len(s.Sent())
		s.Script("POST message/text", c.fault)
		ctx, cancel := context.WithCancel(t.Context())
		if c.fault.Hold != nil { // the client gives up after the effect
			go func() {
				_, _ = s.Await(ctx, before+c.sent)
				cancel()
			}()
		}
		request, err := http.NewRequestWithContext(ctx, "POST", s.URL()+"/api/v1/message/text?password="+bluebubblestest.Password,
			strings.NewReader(`{"chatGuid":"`+direct+`","message":"hi","tempGuid":"t"}`))
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err == nil {
			_ = response.Body.Close()
		}
		cancel()
		if (err != nil) != c.fails {
			t.Errorf("%s: error %v", name, err)
		}
		if sent, err := s.Await(t.Context(), before+c.sent); err != nil || len(sent) != before+c.sent {
			t.Errorf("%s: %d messages are sent, %v", name, len(sent)-before, err)
		}
	}
	a, _ := ask(t, s, "POST", "message/query", `{"with":["attributedBody"]}`)
	if got := texts(t, a); got[0] != "" || !bytes.Contains(a.Data, []byte(`"string":"hi"`)) {
		t.Errorf("the text is not in attributedBody only: %s", a.Data)
	}
	if a, _ := ask(t, s, "POST", "message/text", `{"chatGuid":"`+direct+`","message":"hi"}`); a.Status != 400 {
		t.Errorf("a send without a temporary guid: %+v", a)
	}
}

// TestPrivateAPI checks that typing and reading need the private API.
func TestPrivateAPI(t *testing.T) {
	for _, private := range []bool{false, true} {
		s := start(t, bluebubblestest.Options{PrivateAPI: private})
		s.SetChat(bluebubblestest.Chat{GUID: direct})
		for _, path := range []string{"typing", "read"} {
			if a, err := ask(t, s, "POST", "chat/"+url.QueryEscape(direct)+"/"+path, ""); err != nil || (a.Status == 200) != private {
				t.Errorf("%s: %v, %+v", path, err, a)
			}
		}
		if s.IsTyping(direct) != private || s.Reads(direct) > 0 != private {
			t.Errorf("typing %v, reads %d", s.IsTyping(direct), s.Reads(direct))
		}
	}
}

func TestContactsAndFiles(t *testing.T) {
	s := start(t, bluebubblestest.Options{})
	s.AddContact(bluebubblestest.Contact{Address: nora, Name: "Nora Lindqvist"})
	s.AddFile("at_1", []byte("content"))
	if a, err := ask(t, s, "POST", "contact/query", `{"addresses":["`+nora+`"]}`); err != nil || !bytes.Contains(a.Data, []byte(`"displayName":"Nora Lindqvist"`)) {
		t.Errorf("%v, %s", err, a.Data)
	}
	if a, err := ask(t, s, "GET", "attachment/at_1/download?original=true", ""); err != nil || string(a.Data) != "content" {
		t.Errorf("%v, %s", err, a.Data)
	}
	if a, err := ask(t, s, "GET", "attachment/at_2", ""); err != nil || a.Status != 404 {
		t.Errorf("%v, %+v", err, a)
	}
}

// TestAway checks that the server is unreachable while it is away.
func TestAway(t *testing.T) {
	s := start(t, bluebubblestest.Options{})
	s.SetAway(true)
	if a, err := ask(t, s, "GET", "ping", ""); err == nil {
		t.Errorf("the server answers %+v", a)
	}
	s.SetAway(false)
	if _, err := ask(t, s, "GET", "ping", ""); err != nil {
		t.Error(err)
	}
}

// TestALateFile checks that a message has the place of a file before the file, and a service and a kind.
func TestALateFile(t *testing.T) {
	s := start(t, bluebubblestest.Options{})
	m, _ := s.Say(bluebubblestest.Message{Chat: "SMS;-;" + nora, From: nora, Text: "what is this?", Pending: 1, Balloon: "kind"})
	row := func() string {
		a, err := ask(t, s, "GET", "message/"+m.GUID+"?with=attachments", "")
		if err != nil || a.Status != 200 {
			t.Fatalf("%v, %+v", err, a)
		}
		return string(a.Data)
	}
	for _, part := range []string{"\uFFFCwhat is this?", `"attachments":[]`, `"service":"SMS"`, `"balloonBundleId":"kind"`} {
		if !strings.Contains(row(), part) {
			t.Errorf("%s is not in %s", part, row())
		}
	}
	s.Arrive(m.GUID, bluebubblestest.Attachment{GUID: "at_1", Name: "a.heic"})
	if !strings.Contains(row(), "\uFFFCwhat is this?") || !strings.Contains(row(), `"guid":"at_1"`) {
		t.Errorf("afterwards: %s", row())
	}
}

// TestTheHelperIsGone checks that calls of the private API have no effect then, and that the server says so.
func TestTheHelperIsGone(t *testing.T) {
	s := start(t, bluebubblestest.Options{PrivateAPI: true})
	s.SetChat(bluebubblestest.Chat{GUID: direct})
	s.LoseHelper(true)
	body := func(method string) string {
		return `{"chatGuid":"` + direct + `","tempGuid":"t-` + method + `","message":"hi","method":"` + method + `"}`
	}
	for path, want := range map[string]int{"message/text " + body("private-api"): 500, "message/text " + body("apple-script"): 200, "chat/" + url.QueryEscape(direct) + "/typing ": 500} {
		path, body, _ := strings.Cut(path, " ")
		if a, err := ask(t, s, "POST", path, body); err != nil || a.Status != want {
			t.Errorf("%s %s: %v, %+v", path, body, err, a)
		}
	}
	if a, err := ask(t, s, "GET", "server/info", ""); err != nil || !strings.Contains(string(a.Data), `"helper_connected":false`) || len(s.Sent()) != 1 {
		t.Errorf("%v, %s, sent %d", err, a.Data, len(s.Sent()))
	}
}
