package read

import (
	"net/http"
	"sync"

	"parley/adapters"
	"parley/adapters/httpcall"
	"parley/adapters/slack/call"
)

// Reader reads one team: its history, its files and its names. It is safe for concurrent use.
type Reader struct {
	client    *call.Client
	workspace string // its name in thread keys
	files     *http.Client
	kinds     *sync.Map // of each channel's type in Slack's terms, by channel id
	groups    adapters.Kept[map[string][]string]
}

// New returns a reader that makes its calls by a client.
func New(client *call.Client, workspace string) *Reader {
	return &Reader{
		client: client, workspace: workspace, kinds: new(sync.Map),
		files: httpcall.NewFileClient(client.Transport, client.Base, "the bot may not read the file, or lacks the scope files:read", redirectDomains...),
	}
}

// Inherit takes over the types of channels that an earlier reader knows.
func (r *Reader) Inherit(old *Reader) { r.kinds = old.kinds }
