package faultfs

import (
	"maps"
	"slices"
)

type kind int

const (
	found    kind = iota // the file existed, with data
	write                // data at offset
	truncate             // to offset bytes
	synced               // every operation before position offset is durable
	remove               // the file was removed
)

type operation struct {
	kind   kind
	path   string
	offset int64
	data   []byte
}

func (f *FS) note(op operation) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.record = append(f.record, op)
}

// Position returns the number of operations so far. An event that a test observes is
// durable if the power fails at any later position.
func (f *FS) Position() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.record)
}

// Boundaries returns the positions directly before and directly after every sync.
func (f *FS) Boundaries() []int {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []int
	for i, op := range f.record {
		if op.kind == synced {
			out = append(out, i, i+1)
		}
	}
	return slices.Compact(out)
}

// PowerLoss returns the files by path as they are after the power fails at a position. Of
// the operations since a file's last sync, only those take effect for which survives
// returns true; nil means none.
func (f *FS) PowerLoss(position int, survives func() bool) map[string][]byte {
	f.mu.Lock()
	record := slices.Clone(f.record[:position])
	f.mu.Unlock()
	durable := map[string]int{} // by path: the position before which all is durable
	for _, op := range record {
		if op.kind == synced {
			durable[op.path] = max(durable[op.path], int(op.offset))
		}
	}
	files := map[string][]byte{}
	for i, op := range record {
		switch {
		case op.kind == found:
			files[op.path] = slices.Clone(op.data)
		case op.kind == remove:
			delete(files, op.path)
		case op.kind == synced:
		case i < durable[op.path] || survives != nil && survives():
			files[op.path] = op.apply(files[op.path])
		}
	}
	maps.DeleteFunc(files, func(path string, _ []byte) bool { return path == "" }) // temporary files
	return files
}

// apply returns content after the operation.
func (op operation) apply(content []byte) []byte {
	end := op.offset + int64(len(op.data))
	if grow := end - int64(len(content)); grow > 0 {
		content = append(content, make([]byte, grow)...)
	}
	if op.kind == truncate {
		return content[:end]
	}
	copy(content[op.offset:], op.data)
	return content
}
