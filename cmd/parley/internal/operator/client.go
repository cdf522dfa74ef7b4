package operator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"syscall"

	"github.com/google/uuid"

	"parley/ingest/event"
)

// ErrNoDaemon means that no daemon has the socket.
var ErrNoDaemon = errors.New("no daemon runs")

// Client calls the operator API.
type Client struct {
	// Stopped says that no daemon runs: the client works on the store itself. Its first change locks an SQLite file.
	Stopped bool

	http  *http.Client
	base  string
	token string
	close func() error
}

// Dial returns a client of the daemon that has a socket. It fails with ErrNoDaemon if there is none.
func Dial(ctx context.Context, path string) (*Client, error) {
	dial := func(ctx context.Context) (net.Conn, error) {
		short, done, err := shorten(path)
		if err != nil {
			return nil, err
		}
		defer done()
		return new(net.Dialer).DialContext(ctx, "unix", short)
	}
	first, err := dial(ctx)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ENOTDIR):
		return nil, ErrNoDaemon
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("open %s: permission denied: run the command as the user of the daemon", path)
	case err != nil:
		return nil, err
	}
	_ = first.Close()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) }}
	return &Client{http: &http.Client{Transport: transport}, base: "http://localhost", close: func() error {
		transport.CloseIdleConnections()
		return nil
	}}, nil
}

// DialURL returns a client of the listener at an address, with the token of an operator.
func DialURL(address, token string) *Client {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment}
	return &Client{http: &http.Client{Transport: transport}, base: address, token: token, close: func() error {
		transport.CloseIdleConnections()
		return nil
	}}
}

// Alone returns a client that calls a service in this process, which works on the store without a
// daemon. Close calls done.
func Alone(s *Service, done func() error) *Client {
	return &Client{Stopped: true, http: &http.Client{Transport: direct{s.Local()}}, base: "http://localhost", close: done}
}

// Close ends the client.
func (c *Client) Close() error { return c.close() }

// Error is the daemon's refusal of a request.
type Error struct {
	Status  int               `json:"-"` // of HTTP
	Code    string            `json:"code"`
	Message string            `json:"message"`
	Fields  event.FieldErrors `json:"fields"`
}

// Error returns the message with the faulty fields.
func (e *Error) Error() string {
	if len(e.Fields) > 0 {
		return e.Message + ": " + e.Fields.Error()
	}
	return e.Message
}

// Get reads the result of an operation. path is below Prefix; query may be nil.
func Get[T any](ctx context.Context, c *Client, path string, query url.Values) (result T, err error) {
	response, err := c.do(ctx, http.MethodGet, path, query, nil)
	if err != nil {
		return result, err
	}
	return result, decode(response, &result)
}

// Post asks for a change and returns its result. body is an object, or nil for none. If the connection
// breaks, the request is sent once more; its idempotency key prevents that anything happens twice.
func Post[T any](ctx context.Context, c *Client, path string, body any) (result T, err error) {
	raw := []byte{}
	if body != nil {
		if raw, err = json.Marshal(body); err != nil {
			return result, err
		}
	}
	key := uuid.NewString()
	post := func() (*http.Response, error) { return c.do(ctx, http.MethodPost, path, nil, raw, keyHeader, key) }
	response, err := post()
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
		response, err = post()
	}
	if err != nil {
		return result, err
	}
	return result, decode(response, &result)
}

// do sends a request with further headers. The caller closes the body of the response, whose status
// is 200.
func (c *Client) do(ctx context.Context, method, path string, query url.Values, body []byte, headers ...string) (*http.Response, error) {
	address := c.base + Prefix + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if len(body) > 0 {
		request.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	request.Header.Set(userHeader, os.Getenv("USER"))
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, failed(response)
	}
	return response, nil
}

// failed returns the error of a response.
func failed(response *http.Response) error {
	var answer struct{ Error *Error }
	if err := decode(response, &answer); err != nil || answer.Error == nil {
		return fmt.Errorf("the daemon answered %s", response.Status)
	}
	answer.Error.Status = response.StatusCode
	return answer.Error
}

// decode reads the JSON of a response and closes its body.
func decode(response *http.Response, into any) error {
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(into); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	return nil
}
