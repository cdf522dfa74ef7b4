// Package webhook is an agent behind anyone's own address: it gets one signed POST for each
// run, and answers in the response or later.
package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"parley/adapters"
	"parley/adapters/agent"
	"parley/adapters/agent/remote"
	"parley/adapters/httpcall"
	"parley/assembly"
	"parley/assembly/turn"
	"parley/config/secret"
	"parley/ingest/event"
	"parley/ingest/stream"
)

var (
	_ turn.Agent        = (*Agent)(nil)
	_ turn.AnswersLater = (*Agent)(nil)
	_ turn.TakesGiven   = (*Agent)(nil)
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

// TakesGiven implements turn.TakesGiven.
func (a *Agent) TakesGiven() assembly.Native {
	return assembly.Native{Tools: true, Facts: true, Messages: true}
}

// Run posts the run. The response is JSON {"content"}, whose other keys become keys of the
// reply; or an event stream of data: {"content":"piece"} that ends with data: [DONE]; or 202,
// for which Run returns turn.ErrLater. A run that was taken is not posted again.
func (a *Agent) Run(ctx context.Context, input assembly.Input, emit func(stream.Message) error) error {
	if input.Taken {
		return turn.ErrLater
	}
	ctx = remote.WithRunToken(ctx, input)
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
	if err := httpcall.SetSignature(request, a.config.Secret.Reveal(), a.now()); err != nil {
		return a.client.Invalid("an image is not readable", err)
	}
	return nil
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
	streamed := answer.ActivityID != "" // readers of the run have its text, and the answer takes that
	return say(a.answer(input, func(m stream.Message) error {
		if streamed && m.OfMain() && m.Type == stream.StreamingChunk {
			return nil
		}
		if streamed && m.OfMain() && m.Type == stream.Answer {
			m.ActivityID = answer.ActivityID
		}
		return emit(m)
	}), answer)
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
	if p.done = p.done || string(bytes.TrimSpace(event.Data)) == "[DONE]"; p.done {
		p.answer.Done()
		return nil
	}
	var piece struct {
		Content, Error json.RawMessage
	}
	var err error
	isPiece := remote.Members(event.Data, func(key, value []byte) bool {
		if string(key) == "content" {
			piece.Content = value
		}
		return remote.IsPlain(key) && string(key) != "error"
	})
	if !isPiece {
		piece.Content = nil
		err = json.Unmarshal(event.Data, &piece)
	}
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
