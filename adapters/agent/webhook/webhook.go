// Package webhook is an agent behind anyone's own address: it gets one signed POST for each
// run, and answers in the response or later.
package webhook

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"parley/adapters"
	"parley/adapters/agent"
	"parley/adapters/agent/remote"
	"parley/assembly"
	"parley/assembly/stream"
	"parley/assembly/turn"
	"parley/config/secret"
	"parley/ingest/event"
)

var (
	_ turn.Agent        = (*Agent)(nil)
	_ turn.AnswersLater = (*Agent)(nil)
	_ turn.Learner      = (*Agent)(nil)
	_ agent.Replier     = (*Config)(nil)
)

// Kind describes agents behind a webhook.
func Kind() agent.Kind {
	return remote.NewKind("webhook", defaults, func(c Config, files agent.Files, transport http.RoundTripper) *Agent {
		return New(c, files, transport, time.Now)
	})
}

func defaults() Config {
	return Config{Config: remote.DefaultConfig(), Reading: remote.DefaultReading(), Pictures: remote.DefaultPictures()}
}

// maxImages bounds the images of one request together, in bytes before encoding. Many servers
// of small programs take no larger body.
const maxImages = 4 << 20

// Config is the configuration of one webhook.
type Config struct {
	// URL is the address to which each run is posted.
	URL string `yaml:"url"`
	// Secret signs the requests, and authenticates a later reply.
	Secret          secret.Value `yaml:"secret"`
	remote.Config   `yaml:",inline"`
	remote.Reading  `yaml:",inline"`
	remote.Pictures `yaml:",inline"`
}

// Validate returns every fault by key. The faults contain no configured value.
func (c Config) Validate() event.FieldErrors {
	var faults event.FieldErrors
	_, isAddress := adapters.ParseAddress(c.URL)
	faults.Check(isAddress, "url", "must be the http or https address of the agent, without credentials")
	faults.Check(!c.Secret.IsWeak(secret.MinLength), "secret", fmt.Sprintf("must be a random word of at least %d characters", secret.MinLength))
	c.Config.Check(&faults)
	c.Reading.Check(&faults)
	c.Pictures.Check(&faults)
	return faults
}

// ReplySecret implements agent.Replier.
func (c *Config) ReplySecret() secret.Value { return c.Secret }

// Agent is one webhook. It does not bound the number and the time of its runs; its caller
// enforces Config.Bounds.
type Agent struct {
	config Config
	files  agent.Files
	client *remote.Client
	now    func() time.Time
}

// New returns an agent for the configured address. The transport carries the requests.
func New(config Config, files agent.Files, transport http.RoundTripper, now func() time.Time) *Agent {
	return &Agent{config, files, remote.New(config.Config, config.URL, transport, config.Secret), now}
}

// Learnt implements turn.Learner.
func (a *Agent) Learnt() []string { return a.client.Learnt() }

// Run posts the run. The response is JSON {"content"}, whose other keys become keys of the
// reply; or an event stream of data: {"content":"piece"} that ends with data: [DONE]; or 202,
// for which Run returns turn.ErrLater. A run that was taken is not posted again. An empty content is an answer without a post.
func (a *Agent) Run(ctx context.Context, input assembly.Input, emit func(stream.Message) error) error {
	if input.Taken {
		return turn.ErrLater
	}
	forms := remote.Forms{Images: a.config.Images, NewImages: func() *remote.Images { return remote.NewImages(a.files, maxImages, maxImages) }}
	return a.client.Adapt(input, forms, emit, func(form remote.Form, emit func(stream.Message) error) error {
		return a.ask(ctx, form, emit)
	})
}

// ask makes one request.
func (a *Agent) ask(ctx context.Context, form remote.Form, emit func(stream.Message) error) error {
	input := form.Input
	response, err := a.client.Ask(ctx, a.config.URL, input.RunID, a.request(ctx, input, form.Images), form.Images, a.sign)
	if err != nil {
		return err
	}
	defer response.Close()
	answer := a.answer(input, emit)
	switch {
	case response.StatusCode == http.StatusAccepted:
		return turn.ErrLater
	case response.IsStream():
		return a.follow(response, answer)
	}
	return a.whole(response, answer)
}

// sign signs a request with images, whose body is read once more.
func (a *Agent) sign(request *http.Request) error {
	body, err := request.GetBody()
	if err != nil {
		return err
	}
	defer body.Close()
	stamp := strconv.FormatInt(a.now().Unix(), 10)
	signature, err := Sign(a.config.Secret.Reveal(), stamp, body)
	if err != nil {
		return a.client.Invalid("an image is not readable", err)
	}
	request.Header.Set("X-Parley-Timestamp", stamp)
	request.Header.Set("X-Parley-Signature", signature)
	return nil
}

// Sign returns the value of X-Parley-Signature: the hex HMAC-SHA256, under the secret, of
// "v1:<timestamp>:<body>". An error is the body's.
func Sign(secret, timestamp string, body io.Reader) (string, error) {
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "v1:%s:", timestamp)
	_, err := io.Copy(mac, body)
	return "v1=" + hex.EncodeToString(mac.Sum(nil)), err
}

// request is the body of a request.
type request struct {
	RunID     string         `json:"run_id"`
	ThreadID  string         `json:"thread_id"`
	Workspace string         `json:"workspace"`
	Platform  event.Platform `json:"platform"`
	Messages  []said         `json:"messages"` // the assembled input
	// Notes are facts beside the messages; nil for none.
	Notes   *assembly.Notes `json:"notes,omitempty"`
	Message message         `json:"message"` // the turn's last one, as its author typed it
}

type said struct {
	Role    assembly.Role `json:"role"`
	Content string        `json:"content"`
}

type message struct {
	ID          string          `json:"id"`
	Content     string          `json:"content"`
	Metadata    json.RawMessage `json:"metadata"`
	Attachments []attachment    `json:"attachments,omitempty"` // of all messages of the turn
}

// attachment is a file. Data is the base64 of an image, and absent for any other file.
type attachment struct {
	Name     string `json:"name"`
	MimeType string `json:"mime_type"`
	Size     int64  `json:"size"`
	Data     string `json:"data,omitempty"`
}

func (a *Agent) request(ctx context.Context, input assembly.Input, images *remote.Images) request {
	r := request{RunID: input.RunID, ThreadID: input.ThreadID, Workspace: input.Workspace, Platform: input.Platform}
	if a.config.SystemPrompt != "" {
		r.Messages = append(r.Messages, said{assembly.RoleSystem, a.config.SystemPrompt})
	}
	for _, m := range input.Messages {
		r.Messages = append(r.Messages, said{m.Role, remote.Text(m)})
	}
	notes := a.config.Noted(input.Notes)
	if !notes.IsEmpty() {
		r.Notes = &notes
	}
	if n := len(input.Said); n > 0 {
		last := input.Said[n-1]
		r.Message = message{last.ID, last.Content, mentions(last.Metadata, notes.Names), attachments(ctx, input.Said, images)}
	}
	return r
}

// mentions returns a message's metadata with the names of those that the messages mention.
func mentions(metadata json.RawMessage, names []assembly.Name) json.RawMessage {
	members, err := event.ReadObject(metadata)
	if err != nil || len(names) == 0 || slices.ContainsFunc(members, func(m event.Extra) bool { return m.Key == "mentions" }) {
		return metadata
	}
	raw, _ := json.Marshal(names) // texts
	return event.WriteObject(append(members, event.Extra{Key: "mentions", Value: raw}))
}

func attachments(ctx context.Context, said []assembly.Said, images *remote.Images) (list []attachment) {
	for _, m := range said {
		for _, file := range m.Files {
			given := attachment{Name: file.Name, MimeType: file.MimeType, Size: file.Size}
			if kind, mark, ok := images.Add(ctx, file); ok {
				given.MimeType, given.Data = kind, mark
			}
			list = append(list, given)
		}
	}
	return list
}

// whole reads an answer in one piece.
func (a *Agent) whole(response *remote.Response, answer *remote.Answer) error {
	body, err := a.client.JSON(response)
	if err != nil {
		return err
	}
	m, err := stream.ParseAnswer(body)
	if err != nil {
		return a.client.Invalid(err.Error(), nil)
	}
	return say(answer, m)
}

// Later implements turn.AnswersLater.
func (a *Agent) Later(input assembly.Input, answer stream.Message, emit func(stream.Message) error) error {
	return say(a.answer(input, emit), answer)
}

func (a *Agent) answer(input assembly.Input, emit func(stream.Message) error) *remote.Answer {
	return remote.NewAnswer(input.RunID, a.config.MaxBytes, emit).Read(a.config.Reading, a.client, input.Speakers)
}

// say emits an answer in one piece.
func say(answer *remote.Answer, m stream.Message) error {
	if err := answer.Text(m.Text); err != nil {
		return err
	}
	return answer.Finish("", m.Details)
}

// pieces reads an answer piece by piece.
type pieces struct {
	client *remote.Client
	answer *remote.Answer
	text   remote.Halves
	done   bool // the end mark has come
}

func (a *Agent) follow(response *remote.Response, answer *remote.Answer) error {
	p := pieces{client: a.client, answer: answer}
	if err := a.client.Follow(response, answer, "data: [DONE]", p.take); err != nil {
		return err
	}
	return answer.Finish("", nil)
}

// take reads one event of the stream.
func (p *pieces) take(event remote.Event) error {
	if p.done = p.done || string(event.Data) == "[DONE]"; p.done {
		p.answer.Done()
		return nil
	}
	var piece struct {
		Content, Error json.RawMessage
	}
	err := json.Unmarshal(event.Data, &piece)
	if err == nil && remote.IsError(piece.Error) {
		text, status := remote.ErrorText(event.Data)
		return p.client.Failure("the stream reports: "+text, status)
	}
	text := ""
	if err == nil {
		text, err = p.text.Join(piece.Content)
	}
	if err != nil {
		return p.client.Invalid(`the stream contains an event without a text "content"`, err)
	}
	return p.answer.Text(text)
}
