package runs

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"

	"parley/adapters"
	"parley/adapters/web/exchange"
	"parley/adapters/web/payload"
	"parley/ingest/event"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/storage"
)

// signal takes a signal to a run: POST /runs/{runId}/signals {"signal","data"}. A UserInput and a
// FileUploaded become the next message of the run's thread, also after the run's end. Stop
// ends the run.
func (c call) signal(w http.ResponseWriter, r *http.Request, raw []byte) error {
	run, err := c.ownRun(r)
	if err != nil {
		return err
	}
	var signal string
	var data json.RawMessage
	faults := payload.Members(raw, func(m event.Extra) string {
		switch m.Key {
		case "signal":
			return payload.Text(m.Value, &signal)
		case "data":
			data = m.Value
		}
		return ""
	})
	if len(faults) > 0 {
		return faults
	}
	var message map[string]any
	switch signal {
	case "UserInput":
		message, faults = userInput(data)
	case "FileUploaded":
		message, faults = fileUploaded(data)
	default:
		faults.Check(signal == "Stop", "signal", "must be UserInput, FileUploaded or Stop")
	}
	switch {
	case len(faults) > 0:
		return faults
	case message == nil:
		return c.stopRun(w, r, run)
	}
	message["thread_id"] = run.ThreadID
	raw, _ = json.Marshal(message) // texts and valid JSON always encode
	return c.Threads.Post(w, r, c.Workspace, c.AsCaller(event.Human), raw)
}

// stopped is the notice of a run that a signal has stopped.
const stopped = "Stopped."

// stopRun ends a run, also one that has not begun.
func (c call) stopRun(w http.ResponseWriter, r *http.Request, run runs.Status) error {
	notice, name := outbox.NewNotice(run.Platform, stopped), r.PathValue("runId")
	var err error
	if run.ID == "" {
		err = c.Runs.StopNamedRun(r.Context(), c.Workspace, string(c.Actor), run.ThreadID, name, notice)
		if err == nil {
			return exchange.Respond(w, http.StatusAccepted, map[string]string{"run_id": name})
		}
		if errors.Is(err, storage.ErrNotFound) { // it has begun meanwhile, or its message is not recorded yet
			run, err = c.run(r)
		}
		if err == nil && run.ID == "" {
			err = adapters.ErrBusy
		}
	}
	if err == nil {
		err = c.Turns.Stop(r.Context(), run.ID, notice)
	}
	if err != nil {
		return err
	}
	return exchange.Respond(w, http.StatusAccepted, map[string]string{"run_id": run.ID})
}

// userInput returns the message of a UserInput, in the form of Body.
func userInput(data []byte) (map[string]any, event.FieldErrors) {
	var input struct {
		Message         *string         `json:"message"`
		ClientMessageID string          `json:"client_message_id"`
		Metadata        json.RawMessage `json:"metadata"`
		Attachments     json.RawMessage `json:"attachments"`
	}
	var faults event.FieldErrors
	err := json.Unmarshal(data, &input)
	faults.Check(err == nil && input.Message != nil, "data", "must be an object with message, a text; client_message_id, metadata and attachments are optional")
	if len(faults) > 0 {
		return nil, faults
	}
	message := map[string]any{"content": *input.Message}
	if input.ClientMessageID != "" {
		message["client_message_id"] = input.ClientMessageID
	}
	if input.Metadata != nil {
		message["metadata"] = input.Metadata
	}
	if input.Attachments != nil {
		message["attachments"] = input.Attachments
	}
	return message, nil
}

// fileUploaded returns the message of a FileUploaded, in the form of Body. It has the file and
// no words.
func fileUploaded(data []byte) (map[string]any, event.FieldErrors) {
	var file struct {
		Name        string `json:"name"`
		Filename    string `json:"filename"`
		MimeType    string `json:"mime_type"`
		ContentType string `json:"content_type"`
		Data        []byte `json:"data"`
		URL         string `json:"url"`
	}
	var faults event.FieldErrors
	err := json.Unmarshal(data, &file)
	attached := payload.Attachment{Name: cmp.Or(file.Name, file.Filename), MimeType: cmp.Or(file.MimeType, file.ContentType), Data: file.Data, URL: file.URL}
	faults.Check(err == nil && (attached.URL != "" || attached.Name != "" && len(attached.Data) > 0), "data", "must be an object with name, mime_type and data, the file's bytes in base64, or with url")
	return map[string]any{"content": "", "attachments": []payload.Attachment{attached}}, faults
}
