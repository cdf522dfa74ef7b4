package floor

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// relay asks a model and reads its stream, with encoding/json and without a check of anything but the end.
type relay struct{ model, kind string }

// every is the time between two additions to a stream of Slack, the same as the daemon's in this measurement.
const every = time.Second

// stream asks the model and lets a message of Slack grow with its answer.
func (f *program) stream(ctx context.Context, event posted) (ts string, err error) {
	e := event.Event
	answer, err := f.relay.ask(ctx, f.client, event.EventID, e.Text)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	var text []byte
	var last time.Time
	lines, ended := bufio.NewScanner(answer.Body), false
	for !ended && lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !ok {
			continue
		}
		var more string
		if more, ended, err = f.relay.read(data); err != nil {
			return "", err
		}
		text = append(text, more...)
		if len(text) == 0 || time.Since(last) < every {
			continue
		}
		form := url.Values{"channel": {e.Channel}, "markdown_text": {string(text)}}
		if ts == "" {
			form.Set("thread_ts", e.ThreadTS)
			form.Set("recipient_team_id", event.Team)
			form.Set("recipient_user_id", e.User)
			ts, err = f.call(ctx, "chat.startStream", form)
		} else {
			form.Set("ts", ts)
			_, err = f.call(ctx, "chat.appendStream", form)
		}
		if err != nil {
			return "", err
		}
		text, last = text[:0], time.Now()
	}
	if !ended {
		return "", fmt.Errorf("the answer has no end: %w", lines.Err())
	}
	return f.call(ctx, "chat.stopStream", url.Values{"channel": {e.Channel}, "ts": {ts}, "markdown_text": {string(text)}})
}

// ask returns the response with the model's stream.
func (r *relay) ask(ctx context.Context, client *http.Client, run, text string) (*http.Response, error) {
	body, err := json.Marshal(map[string]any{"model": "fake", "stream": true, "messages": []map[string]string{{"role": "user", "content": text}}})
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.model+"/", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Idempotency-Key", run)
	response, err := client.Do(request)
	if err != nil || r.kind != "run-api" {
		return response, err
	}
	defer response.Body.Close()
	var begun struct{ RunID string }
	if err := json.NewDecoder(response.Body).Decode(&begun); err != nil {
		return nil, err
	}
	request, err = http.NewRequestWithContext(ctx, http.MethodGet, r.model+"/api/v1/agent/runs/"+begun.RunID+"/stream", nil)
	if err != nil {
		return nil, err
	}
	return client.Do(request)
}

// read returns the text of an event, and whether the answer ends with it.
func (r *relay) read(data []byte) (text string, ended bool, err error) {
	if string(data) == "[DONE]" {
		return "", true, nil
	}
	switch r.kind {
	case "openai":
		var chunk struct {
			Choices []struct{ Delta struct{ Content string } }
		}
		if err = json.Unmarshal(data, &chunk); len(chunk.Choices) > 0 {
			text = chunk.Choices[0].Delta.Content
		}
	case "anthropic":
		var event struct {
			Type  string
			Delta struct{ Text string }
		}
		err = json.Unmarshal(data, &event)
		text, ended = event.Delta.Text, event.Type == "message_stop"
	case "agui":
		var event struct{ Type, Delta string }
		err = json.Unmarshal(data, &event)
		text, ended = event.Delta, event.Type == "RUN_FINISHED"
	case "webhook":
		var event struct{ Content string }
		err = json.Unmarshal(data, &event)
		text = event.Content
	case "run-api":
		var event struct {
			T int
			M string
		}
		if err = json.Unmarshal(data, &event); event.T == 12 {
			text = event.M
		}
		ended = event.T == 4
	default:
		err = fmt.Errorf("the floor does not know the kind %q", r.kind)
	}
	return text, ended, err
}
