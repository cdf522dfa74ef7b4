package payload

import (
	"encoding/json"
	"strings"

	"parley/assembly/runinput"
)

// BlockFile is a file among the blocks, with the members that its client gave.
type BlockFile struct {
	File     int    `json:"file"` // the index of the attachment
	ID       string `json:"id,omitempty"`
	Filename string `json:"filename,omitempty"`
}

// LayoutOf returns the value of event.KeyBlocks, the blocks in which a client sent the content: for a text its
// length in bytes, and for a file an object. The content has the texts, a line end between two of them.
func LayoutOf(blocks []runinput.Block) json.RawMessage {
	files, list := 0, make([]any, len(blocks))
	for i, b := range blocks {
		if b.Type == "text" {
			list[i] = len(b.Text)
			continue
		}
		list[i] = BlockFile{files, b.ID, b.Filename}
		files++
	}
	value, _ := json.Marshal(list) // numbers and texts always encode
	return value
}

// TextsOf returns the texts of blocks as a content.
func TextsOf(blocks []runinput.Block) string {
	var texts []string
	for _, b := range blocks {
		if b.Type == "text" {
			texts = append(texts, b.Text)
		}
	}
	return strings.Join(texts, "\n")
}
