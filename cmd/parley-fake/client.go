package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/google/uuid"

	"parley/adapters/sse"
	"parley/cmd/internal/command"
	"parley/ingest/stream"
)

// dot is an image of one pixel: a PNG in base64.
const dot = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="

// client is a program that talks to a daemon over the HTTP API.
type client struct {
	terminal
	ctx         context.Context
	base, token string
}

// playClient plays a whole conversation with a running daemon: a thread, a file, a run, its
// stream, and the history.
func playClient(ctx context.Context, args []string, out io.Writer) error {
	c := &client{terminal: terminal{out: out}, ctx: ctx}
	text := "What does this picture show?"
	err := command.ParseFlags("client", args, func(flags *flag.FlagSet) {
		flags.StringVar(&c.base, "url", "http://127.0.0.1:8484", "address of the daemon")
		flags.StringVar(&c.token, "token", os.Getenv("PARLEY_TOKEN"), "token of a web workspace, such as the content of data/local.token (default $PARLEY_TOKEN)")
		flags.StringVar(&text, "text", text, "the message")
	})
	if err != nil {
		return err
	}
	c.base = strings.TrimRight(c.base, "/")
	return c.converse(text)
}

// converse calls each route in turn and prints what it answers.
func (c *client) converse(text string) error {
	var thread struct{ ID string }
	if err := c.call("make a thread", http.MethodPost, "/api/v1/chat/threads", map[string]any{"mode": "open"}, &thread); err != nil {
		return err
	}
	image, err := base64.StdEncoding.DecodeString(dot)
	if err != nil {
		return err
	}
	var file struct{ URL string }
	if err := c.send("send a file", http.MethodPost, "/api/v1/agent/attachments", "image/png", image, &file); err != nil {
		return err
	}
	run := "run-" + uuid.NewString()
	if err := c.call("start a run", http.MethodPost, "/api/v1/agent/runs", map[string]any{
		"threadId": thread.ID, "runId": run, "state": map[string]any{}, "tools": []any{}, "context": []any{}, "forwardedProps": map[string]any{},
		"messages": []any{map[string]any{"id": "msg-001", "role": "user", "content": []any{
			map[string]string{"type": "text", "text": text}, map[string]string{"type": "binary", "mimeType": "image/png", "url": file.URL},
		}}},
	}, nil); err != nil {
		return err
	}
	if err := c.follow("/runs/" + thread.ID + "/" + run + "/stream"); err != nil {
		return err
	}
	var history struct {
		Messages []struct{ Role, Content, URL string }
	}
	if err := c.call("read the history", http.MethodGet, "/api/v1/agent/history?threadId="+url.QueryEscape(thread.ID), nil, &history); err != nil {
		return err
	}
	if len(history.Messages) == 0 {
		return errors.New("the history has no messages")
	}
	return c.fetch(history.Messages[0].URL, image)
}

// call sends JSON and reads JSON.
func (c *client) call(step, method, path string, body, into any) error {
	raw := []byte(nil)
	if body != nil {
		var err error
		if raw, err = json.Marshal(body); err != nil {
			return err
		}
	}
	return c.send(step, method, path, "application/json", raw, into)
}

// send sends a body, prints the answer, and reads it as JSON.
func (c *client) send(step, method, path, contentType string, body []byte, into any) error {
	c.printf("# %s\n%s %s\n", step, method, path)
	response, err := c.do(method, c.base+path, contentType, body)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	c.printf("%s\n%s\n\n", response.Status, bytes.TrimSpace(raw))
	switch {
	case err != nil:
		return err
	case response.StatusCode >= 300:
		return fmt.Errorf("%s: the daemon answered %s", step, response.Status)
	case into == nil:
		return nil
	}
	return json.Unmarshal(raw, into)
}

func (c *client) do(method, address, contentType string, body []byte) (*http.Response, error) {
	request, err := http.NewRequestWithContext(c.ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != nil {
		request.Header.Set("Content-Type", contentType)
	}
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	return http.DefaultClient.Do(request)
}

// follow prints the messages of a run until its stream ends.
func (c *client) follow(path string) error {
	c.printf("# follow the run\nGET %s\n", path)
	response, err := c.do(http.MethodGet, c.base+path, "", nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("follow the run: the daemon answered %s", response.Status)
	}
	for events := sse.NewReader(response.Body, 1<<20); ; {
		e, err := events.Next()
		if err != nil {
			return errors.New("follow the run: the stream ended before the run")
		}
		m, err := stream.Parse(e.Data)
		if err != nil {
			return fmt.Errorf("follow the run: %w", err)
		}
		c.printf("%s %s\n", m.Type, oneLine(m.Text))
		if m.Ends() {
			c.printf("\n")
			return nil
		}
	}
}

// fetch reads a file under its link, which needs no token.
func (c *client) fetch(link string, want []byte) error {
	c.token = ""
	c.printf("# read the file under its new link\nGET %s\n", link)
	response, err := c.do(http.MethodGet, link, "", nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	got, err := io.ReadAll(response.Body)
	c.printf("%s, %s, %d bytes\n", response.Status, response.Header.Get("Content-Type"), len(got))
	if err == nil && !bytes.Equal(got, want) {
		err = errors.New("the file is not the one that was sent")
	}
	return err
}
