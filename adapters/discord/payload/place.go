package payload

import (
	"context"
	"fmt"
	"slices"

	"parley/adapters"
)

// filesName is the name of the latest attachments' messages in the state.
const filesName = "files"

// filePlace is the message of an attachment.
type filePlace struct {
	File    string `json:"f"`
	Channel string `json:"c"`
	Message string `json:"m"`
}

// rememberFiles stores the message of its attachments, because an attachment's id does not name
// it. Links to files expire, so they are not stored.
func rememberFiles(ctx context.Context, state adapters.State, m *message) error {
	err := adapters.UpdateList(ctx, state, filesName, func(list []filePlace) []filePlace {
		for _, f := range m.attached() {
			place := filePlace{File: f.ID, Channel: m.channel.ID, Message: m.id}
			if !slices.Contains(list, place) {
				list = append(list, place)
			}
		}
		return list
	})
	if err != nil {
		return fmt.Errorf("store the place of a file: %w", err)
	}
	return nil
}

// FileAt returns the channel and the id of the message that has a file; both are empty if it is not known.
func FileAt(ctx context.Context, state adapters.State, id string) (channel, message string, err error) {
	list, err := adapters.GetList[filePlace](ctx, state, filesName)
	if err != nil {
		return "", "", err
	}
	at := slices.IndexFunc(list, func(p filePlace) bool { return p.File == id })
	if at < 0 {
		return "", "", nil
	}
	return list[at].Channel, list[at].Message, nil
}
