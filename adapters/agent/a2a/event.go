package a2a

import (
	"encoding/json"
	"strings"
)

// The types of the protocol, as far as they are needed. https://a2a-protocol.org/v0.3.0/specification/

// rpcRequest is a request of JSON-RPC.
type rpcRequest struct {
	JSONRPC string `json:"jsonrpc"`
	ID      string `json:"id"`
	Method  string `json:"method"`
	Params  any    `json:"params"`
}

// rpcAnswer is an answer of JSON-RPC, or an event of a stream.
type rpcAnswer struct {
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	} `json:"error"`
}

// The codes of errors that have a meaning for a run.
const (
	codeParse, codeRequest, codeMethod, codeParams = -32700, -32600, -32601, -32602

	codeNoTask, codeNoPush, codeUnsupported, codeType = -32001, -32003, -32004, -32005
)

// sendParams are the parameters of message/send and message/stream.
type sendParams struct {
	Message       message       `json:"message"`
	Configuration configuration `json:"configuration"`
}

type configuration struct {
	Blocking bool  `json:"blocking"`
	Push     *push `json:"pushNotificationConfig,omitempty"`
}

// push is where the service reports a change of the task.
type push struct {
	ID    string `json:"id"`
	URL   string `json:"url"`
	Token string `json:"token"`
}

// message is a message to the service.
type message struct {
	Kind      string          `json:"kind"` // message
	ID        string          `json:"messageId"`
	Role      string          `json:"role"` // user
	Parts     []any           `json:"parts"`
	ContextID string          `json:"contextId,omitempty"`
	TaskID    string          `json:"taskId,omitempty"`
	Metadata  json.RawMessage `json:"metadata,omitempty"`
}

type textPart struct {
	Kind string `json:"kind"` // text
	Text string `json:"text"`
}

type filePart struct {
	Kind string `json:"kind"` // file
	File file   `json:"file"`
}

type file struct {
	Name     string `json:"name,omitempty"`
	MimeType string `json:"mimeType,omitempty"`
	Bytes    string `json:"bytes,omitempty"` // base64
	URI      string `json:"uri,omitempty"`
}

// taskQuery names a task.
type taskQuery struct {
	ID string `json:"id"`
}

// happening is a result of the service: a message, a task, or a change of a task.
type happening struct {
	Kind      string     `json:"kind"`
	ID        string     `json:"id"` // of a task
	TaskID    string     `json:"taskId"`
	ContextID string     `json:"contextId"`
	Status    *status    `json:"status"`
	Artifacts []artifact `json:"artifacts"`
	Artifact  *artifact  `json:"artifact"`
	Append    bool       `json:"append"`
	Parts     []part     `json:"parts"` // of a message
}

// kind returns the kind, which some services leave out.
func (h *happening) kind() string {
	switch {
	case h.Kind != "":
		return h.Kind
	case h.Artifact != nil:
		return "artifact-update"
	case h.Status != nil && h.ID == "":
		return "status-update"
	case h.Status != nil:
		return "task"
	case h.Parts != nil:
		return "message"
	}
	return ""
}

// The states of a task.
const (
	stateSubmitted = "submitted"
	stateWorking   = "working"
	stateCompleted = "completed"
	stateInput     = "input-required"
	stateAuth      = "auth-required"
	stateRejected  = "rejected"
	stateFailed    = "failed"
	stateCanceled  = "canceled"
)

// isEnd reports whether a task in a state does nothing more by itself.
func isEnd(state string) bool {
	switch state {
	case stateCompleted, stateInput, stateAuth, stateRejected, stateFailed, stateCanceled:
		return true
	}
	return false
}

type status struct {
	State   string `json:"state"`
	Message *struct {
		ID    string `json:"messageId"`
		Parts []part `json:"parts"`
	} `json:"message"`
}

type artifact struct {
	ID    string `json:"artifactId"`
	Name  string `json:"name"`
	Parts []part `json:"parts"`
}

// part is a part of a message or an artifact.
type part struct {
	Kind string          `json:"kind"`
	Text string          `json:"text"`
	Data json.RawMessage `json:"data"`
	File *file           `json:"file"`
}

// texts returns the text parts, a line each.
func texts(parts []part) string {
	var lines []string
	for _, p := range parts {
		if p.Text != "" {
			lines = append(lines, p.Text)
		}
	}
	return strings.Join(lines, "\n")
}
