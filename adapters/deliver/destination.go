package deliver

import (
	"fmt"
	"strings"

	"parley/adapters"
	"parley/ingest/journal"
)

// Notice implements turn.Outbox: words of our own about a run, for its asker alone
// where the platform can do that.
func (o *Outbox) Notice(run *journal.Run, text string) ([]journal.Post, error) {
	platform, to, err := o.way(run)
	if err != nil || platform.Sender == nil {
		return nil, err
	}
	_, alone := platform.Sender.(adapters.Ephemeral)
	posts := to.posts(platform.Sender.Format(text, nil))
	for i := range posts {
		posts[i].Alone = alone && to.asker != ""
	}
	return posts, nil
}

// way is how a run's words go out; a platform without Sender where they don't.
func (o *Outbox) way(run *journal.Run) (platform Platform, to destination, err error) {
	platform, ok := o.Platform(run.Workspace)
	if !ok {
		return platform, to, fmt.Errorf("workspace %q is not configured", run.Workspace)
	}
	if platform.Sender == nil {
		return platform, to, nil
	}
	to.asker = asker(run)
	to.Address, err = platform.Sender.Address(run.ThreadKey)
	return platform, to, err
}

// destination is where a run's posts go, and whom they answer.
type destination struct {
	adapters.Address
	asker string
}

func (to destination) post(text string) journal.Post {
	return journal.Post{Channel: to.Channel, Root: to.Root, Text: text, Asker: to.asker}
}

func (to destination) posts(texts []string) []journal.Post {
	posts := make([]journal.Post, len(texts))
	for i, text := range texts {
		posts[i] = to.post(text)
	}
	return posts
}

// asker is the platform's id of the person who spoke last in a run's turn; empty for
// none.
func asker(run *journal.Run) string {
	for i := len(run.Messages) - 1; i >= 0; i-- {
		if run.Messages[i].Author == journal.ByHuman {
			_, id, _ := strings.Cut(run.Messages[i].SenderID, ":")
			return id
		}
	}
	return ""
}
