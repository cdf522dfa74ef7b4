package payload

import (
	"errors"

	"parley/ingest/event"
)

// maxDispatchType and maxDispatchConfig bound what a program gets back with an answer, in bytes.
const maxDispatchType, maxDispatchConfig = 128, 16 << 10

// Dispatch are the members dispatch_type and dispatch_config beside a message's metadata, as far as they are given.
type Dispatch []event.Extra

// Set reads one of the two members, for which null means the same as its absence. It returns the fault's text, or "".
func (d *Dispatch) Set(m event.Extra) string {
	if string(m.Value) == "null" {
		return ""
	}
	var text string
	switch {
	case m.Key == event.DispatchType && (Text(m.Value, &text) != "" || text == "" || len(text) > maxDispatchType):
		return "must be a text of 1 to 128 bytes"
	case m.Key == event.DispatchConfig && (m.Value[0] != '{' || len(m.Value) > maxDispatchConfig || event.IsDeep(m.Value)):
		return "must be an object of at most 16 KiB that is not nested deeply"
	}
	*d = append(*d, m)
	return ""
}

// Join puts the members into the metadata, which agents get. Metadata that has one of them already is a fault.
func (d Dispatch) Join(metadata []byte) (joined []byte, faults event.FieldErrors) {
	if len(d) == 0 {
		return metadata, nil
	}
	members, err := event.ReadObject(metadata)
	if err != nil && !errors.As(err, &faults) {
		return metadata, event.FieldErrors{{Field: "metadata", Message: err.Error()}}
	}
	for _, m := range members {
		for _, own := range d {
			faults.Check(m.Key != own.Key, own.Key, "must not stand beside metadata."+own.Key)
		}
	}
	return event.WriteObject(append(members, d...)), faults
}
