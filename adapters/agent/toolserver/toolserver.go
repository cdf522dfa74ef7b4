// Package toolserver calls the tools of other servers of the Model Context Protocol for models.
package toolserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"parley/adapters/agent"
	"parley/assembly/runinput"
	"parley/ingest/event"
	"parley/ingest/trace"
)

const (
	// defaultTimeout bounds one call.
	defaultTimeout = 30 * time.Second
	// listTimeout bounds the wait of a run for the list of tools, and awayFor is the time for which a server that did not answer
	// is not asked again. freshFor is the time for which the list is used.
	listTimeout = 5 * time.Second
	awayFor     = 30 * time.Second
	freshFor    = time.Minute
	// maxBody bounds a response of the server, and MaxResult a result that a model gets, in bytes.
	maxBody   = 4 << 20
	MaxResult = 32 << 10
	// maxTools bounds the tools of a server, and maxTool the description and the schema of one, in bytes.
	maxTools = 100
	maxTool  = 32 << 10
	// maxLeft bounds the sentences about tools that are left out.
	maxLeft = 10
)

// Client calls one server. It is safe for concurrent use.
type Client struct {
	server  agent.ToolServer
	host    string
	version string // of the program
	now     func() time.Time

	mu      sync.Mutex
	session *mcp.ClientSession // nil for none
	tools   []runinput.Tool
	left    []string  // why tools of the list are left out
	until   time.Time // the list is fresh, or the server is taken to be away
	err     error     // of the last list
}

// New returns a client that connects at its first use.
func New(server agent.ToolServer, version string, now func() time.Time) *Client {
	c := &Client{server: server, version: version, now: now}
	if u, err := url.Parse(server.URL); err == nil {
		c.host = u.Host
	}
	if c.server.Timeout <= 0 {
		c.server.Timeout = defaultTimeout
	}
	return c
}

// Host returns the host of the server, for people.
func (c *Client) Host() string { return c.host }

// Close ends the session.
func (c *Client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(c.session)
}

// drop forgets a session, with the lock held. It ends when the calls of other runs have ended.
func (c *Client) drop(s *mcp.ClientSession) {
	if s != nil && c.session == s {
		c.session = nil
		time.AfterFunc(c.server.Timeout, func() { _ = s.Close() })
	}
}

// ErrAnswered is the error of a server that has answered, and refuses.
var ErrAnswered = errors.New("the server refuses")

// Tools returns the tools of the server, and for people, a sentence for each that is left out. The error has no secret; it
// is ErrAnswered if the server has answered.
func (c *Client) Tools(ctx context.Context) (tools []runinput.Tool, left []string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now().Before(c.until) {
		return c.tools, c.left, c.err
	}
	ctx, cancel := context.WithTimeout(ctx, min(listTimeout, c.server.Timeout))
	defer cancel()
	tools, left, err = c.list(ctx)
	if err != nil && c.session != nil { // the session may have ended meanwhile
		c.drop(c.session)
		tools, left, err = c.list(ctx)
	}
	if err != nil {
		c.drop(c.session)
		if c.err = c.clean(err); isAnswer(err) {
			c.err = fmt.Errorf("%w: %w", ErrAnswered, c.err)
		}
		c.tools, c.left, c.until = nil, nil, c.now().Add(awayFor)
		return nil, nil, c.err
	}
	c.tools, c.left, c.err, c.until = tools, left, nil, c.now().Add(freshFor)
	return tools, left, nil
}

// isAnswer reports whether an error is the server's own answer to a request.
func isAnswer(err error) bool {
	_, ok := errors.AsType[*jsonrpc.Error](err)
	return ok
}

// list asks for the tools, with the lock held. A tool that cannot be offered costs itself alone.
func (c *Client) list(ctx context.Context) (list []runinput.Tool, left []string, err error) {
	session, err := c.connected(ctx)
	if err != nil {
		return nil, nil, err
	}
	leaves := func(name, why string) {
		if len(left) < maxLeft {
			left = append(left, fmt.Sprintf("The tool %s of %s is left out: %s.", event.Beginning(event.Text(name), 120), c.host, why))
		}
	}
	for tool, err := range session.Tools(ctx, nil) {
		if err != nil {
			return nil, nil, err
		}
		schema, err := json.Marshal(tool.InputSchema)
		fault, _ := tool.Meta[faultKey].(string)
		switch {
		case fault != "":
			leaves(tool.Name, fault)
		case err != nil || tool.Name == "":
			leaves(tool.Name, "it has no name or no schema")
		case len(schema)+len(tool.Description) > maxTool:
			leaves(tool.Name, fmt.Sprintf("its description and its schema have more than %d KiB", maxTool>>10))
		case len(list) == maxTools:
			return list, append(left, fmt.Sprintf("The server %s has more than %d tools: the others are left out.", c.host, maxTools)), nil
		default:
			list = append(list, runinput.Tool{Name: tool.Name, Description: event.Text(tool.Description), Parameters: schema})
		}
	}
	return list, left, nil
}

// connected returns the session, with the lock held.
func (c *Client) connected(ctx context.Context) (*mcp.ClientSession, error) {
	if c.session != nil {
		return c.session, nil
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "parley", Version: c.version}, &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{}})
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{
		Endpoint: c.server.URL, DisableStandaloneSSE: true, MaxRetries: -1, MaxEventSize: maxBody,
		HTTPClient: &http.Client{Transport: transport{c.server}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}, nil)
	if err == nil {
		c.session = session
	}
	return session, err
}

// transport adds the token to each request, and bounds each response.
type transport struct{ server agent.ToolServer }

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("User-Agent", "parley")
	trace.SetHeader(r.Context(), r.Header)
	if !t.server.Token.IsZero() {
		r.Header.Set("Authorization", "Bearer "+t.server.Token.Reveal())
	}
	response, err := http.DefaultTransport.RoundTrip(r)
	if err == nil {
		kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
		response.ContentLength = -1
		response.Header.Del("Content-Length")
		response.Body = struct {
			io.Reader
			io.Closer
		}{readable(kind, io.LimitReader(response.Body, maxBody)), response.Body}
	}
	return response, err
}

// Call calls a tool, and returns its result as JSON: that of the tool, its text in the member text, or {"error"}. A text beside
// another structuredContent is {"text","structuredContent"}. key names the
// call, for servers that know a repetition. A server that does not answer is such an error.
func (c *Client) Call(ctx context.Context, key string, call runinput.Call) string {
	ctx, cancel := context.WithTimeout(ctx, c.server.Timeout)
	defer cancel()
	params := &mcp.CallToolParams{Meta: mcp.Meta{"parley/call": key}, Name: call.Name, Arguments: json.RawMessage(call.Object())}
	result, err := c.call(ctx, params)
	if errors.Is(err, mcp.ErrSessionMissing) { // the server has forgotten the session, and has made no call
		result, err = c.call(ctx, params)
	}
	switch answer, _ := errors.AsType[*jsonrpc.Error](err); {
	case answer != nil:
		return failure("the server " + c.host + " refused the call: " + c.clean(errors.New(answer.Message)).Error())
	case err != nil:
		return failure("the server " + c.host + " did not answer the call: " + c.clean(err).Error())
	}
	return resultOf(result)
}

func (c *Client) call(ctx context.Context, params *mcp.CallToolParams) (*mcp.CallToolResult, error) {
	c.mu.Lock()
	session, err := c.connected(ctx)
	c.mu.Unlock()
	if err != nil {
		return nil, err
	}
	result, err := session.CallTool(ctx, params)
	if err != nil && ctx.Err() == nil {
		c.mu.Lock()
		c.drop(session)
		c.mu.Unlock()
	}
	return result, err
}

// failure is the result of a call that failed.
func failure(words string) string {
	raw, _ := json.Marshal(map[string]string{"error": words}) // a text always encodes
	return string(raw)
}

// resultOf returns a result as JSON.
func resultOf(r *mcp.CallToolResult) string {
	var texts []string
	for _, content := range r.Content {
		switch part := content.(type) {
		case *mcp.TextContent:
			texts = append(texts, part.Text)
		case *mcp.ImageContent:
			texts = append(texts, "[image "+part.MIMEType+"]")
		case *mcp.AudioContent:
			texts = append(texts, "[audio "+part.MIMEType+"]")
		case *mcp.ResourceLink:
			words := slices.DeleteFunc([]string{part.URI, cmp.Or(part.Title, part.Name), part.Description}, func(s string) bool { return s == "" })
			texts = append(texts, "[resource "+strings.Join(words, ", ")+"]")
		case *mcp.EmbeddedResource:
			if part.Resource != nil {
				texts = append(texts, "[resource "+part.Resource.URI+"]", part.Resource.Text)
			}
		}
	}
	text := event.Text(strings.TrimSpace(strings.Join(texts, "\n")))
	structured, _ := r.StructuredContent.(string) // see readable
	structured = event.Text(structured)
	switch {
	case structured == "" || isSame(text, structured):
		structured = ""
	case text == "":
		text, structured = structured, ""
	case len(text)+len(structured) > MaxResult || r.IsError:
		text, structured = text+"\n"+structured, ""
	}
	if len(text) > MaxResult {
		text = strings.ToValidUTF8(text[:MaxResult], "") + "… [cut: the result is longer]"
	}
	switch {
	case r.IsError:
		return failure(cmp.Or(text, "the tool failed without a word"))
	case structured == "" && json.Valid([]byte(text)):
		return text
	}
	result := map[string]any{"text": text}
	if structured != "" {
		result["structuredContent"] = json.RawMessage(structured)
	}
	raw, _ := event.JSON(result) // a text and valid JSON always encode
	return string(raw)
}

// isSame reports whether a text is the same JSON as another, but for its white space and the order of its members.
func isSame(text, other string) bool {
	var a, b any
	for _, one := range []struct {
		text string
		into *any
	}{{text, &a}, {other, &b}} {
		decoder := json.NewDecoder(strings.NewReader(one.text))
		decoder.UseNumber()
		if decoder.Decode(one.into) != nil || decoder.More() {
			return false
		}
	}
	return reflect.DeepEqual(a, b)
}

// clean returns an error without the address and the token of the server.
func (c *Client) clean(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no answer within %v", c.server.Timeout)
	}
	text := strings.ReplaceAll(err.Error(), c.server.URL, c.host)
	if u, bad := url.Parse(c.server.URL); bad == nil && len(u.Path) > 1 {
		text = strings.ReplaceAll(text, u.RequestURI(), "")
	}
	if token := c.server.Token.Reveal(); token != "" {
		text = strings.ReplaceAll(text, token, "[secret]")
	}
	return errors.New(event.Beginning(event.Text(strings.Join(strings.Fields(text), " ")), 300))
}
