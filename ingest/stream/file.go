package stream

import (
	"encoding/json"
	"fmt"
)

// File is a file that an agent made.
type File struct {
	Name     string `json:"name"`
	MimeType string `json:"mime_type"`
	Data     []byte `json:"data"` // base64 on the wire
}

// Files returns the files of an ANSWER or a COMPLETE. Its details contain them as
// {"files":[{"name":…,"mime_type":…,"data":…}]}. Details of another shape contain no
// files.
func (m Message) Files() ([]File, error) {
	if len(m.Details) == 0 || m.Type != Answer && m.Type != Complete {
		return nil, nil
	}
	var details struct {
		Files json.RawMessage `json:"files"`
	}
	if err := json.Unmarshal(m.Details, &details); err != nil || details.Files == nil {
		return nil, nil
	}
	var files []File
	if err := json.Unmarshal(details.Files, &files); err != nil {
		return nil, fmt.Errorf("details.files: %w", err)
	}
	for i, file := range files {
		if file.Name == "" || len(file.Data) == 0 {
			return nil, fmt.Errorf("details.files[%d]: must have a name and data", i)
		}
	}
	return files, nil
}
