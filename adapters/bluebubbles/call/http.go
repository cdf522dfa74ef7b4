package call

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"parley/adapters"
	"parley/adapters/httpcall"
)

// maxAnswer bounds an answer of the server, in bytes.
const maxAnswer = 64 << 20

// routes are the parts of paths that name calls for the meter.
var routes = []string{"attachment", "chat", "contact", "handle", "icloud", "info", "message", "query", "react", "read", "server", "text", "typing", "webhook"}

// newTransport returns the transport of all calls. Each call's URL contains the password, so
// only calls by HTTPS may pass a proxy.
func newTransport() *http.Transport {
	transport := httpcall.NewTransport()
	transport.Proxy = func(request *http.Request) (*url.URL, error) {
		if request.URL.Scheme != "https" {
			return nil, nil
		}
		return http.ProxyFromEnvironment(request)
	}
	return transport
}

// address returns the URL of a call. It contains the password.
func (c *Client) address(path string, query url.Values) string {
	if query == nil {
		query = url.Values{}
	}
	query.Set("password", c.password.Reveal())
	return strings.TrimSuffix(c.url, "/") + "/api/v1/" + path + "?" + query.Encode()
}

// Escape returns a guid as a segment of a path.
func Escape(guid string) string { return strings.ReplaceAll(url.QueryEscape(guid), "+", "%20") }

// Call makes a call with a JSON body, and decodes the data of the answer; in and out may be
// nil. Its errors are *adapters.SendError.
func (c *Client) Call(ctx context.Context, method, path string, query url.Values, in, out any) error {
	body, err := []byte(nil), error(nil)
	if in != nil {
		if body, err = json.Marshal(in); err != nil {
			return adapters.Permanently(err.Error())
		}
	}
	return c.send(ctx, method, path, query, "application/json", body, out)
}

// send is Call with an encoded body. No error contains the URL, because that has the password.
func (c *Client) send(ctx context.Context, method, path string, query url.Values, contentType string, body []byte, out any) error {
	name := method + " " + path[:strings.IndexByte(path+"/", '/')]
	request, err := http.NewRequestWithContext(ctx, method, c.address(path, query), bytes.NewReader(body))
	if err != nil {
		return adapters.Permanently(name + ": the address of the call is not valid")
	}
	request.Header.Set("Content-Type", contentType)
	response, raw, err := httpcall.Do(c.http, request, maxAnswer)
	c.Meter.Count(httpcall.Route(request, routes), response)
	if failure, ok := errors.AsType[*adapters.SendError](err); ok {
		return &adapters.SendError{Failure: failure.Failure, Err: fmt.Errorf("%s: %w", name, c.hideIn(httpcall.WithoutURL(failure.Err)))}
	}
	var answer envelope
	if err = json.Unmarshal(raw, &answer); err != nil {
		err = errors.New(otherServer)
	}
	if response.StatusCode != http.StatusOK {
		return c.refusal(name, response, answer)
	}
	if err == nil && out != nil && string(answer.Data) != "null" {
		err = json.Unmarshal(answer.Data, out)
	}
	if err != nil {
		return &adapters.SendError{Failure: adapters.Unclear, Err: fmt.Errorf("%s: decode the answer: %s", name, c.hide(err.Error()))}
	}
	return nil
}

// Upload posts an encoded form, and decodes the data of the answer. Its errors are those of Call.
func (c *Client) Upload(ctx context.Context, path, contentType string, form []byte, out any) error {
	return c.send(ctx, http.MethodPost, path, nil, contentType, form, out)
}

// Open gets a file. The caller closes the reader, and bounds its size and time.
func (c *Client) Open(ctx context.Context, path string, query url.Values) (io.ReadCloser, error) {
	response, err := httpcall.Open(ctx, c.http, &c.Meter, c.address(path, query), "")
	if err != nil {
		return nil, c.hideIn(err)
	}
	return response.Body, nil
}

// envelope is the form of every answer.
type envelope struct {
	Status  int             `json:"status"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data"`
	Error   struct {
		Message string `json:"message"`
	} `json:"error"`
}
