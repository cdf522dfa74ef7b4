package runs

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"strings"

	"parley/ingest/event"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/storage"
)

// Artifact is a stored file of a run: one that its agent has made, or one of the messages that it answers.
type Artifact struct {
	// Child has the launch_ids of the workstreams that made the file, from the run's own one down, with slashes between
	// them; empty for the run itself.
	Child string
	Made  bool // by the run's agent, or by that of Child
	File  event.Attachment
	// Path is the place of the file among those of the run, which no other one of them has: out/ has those that its agent made, files/
	// those of the messages that it answers, and files/{launch_id}/ those of a workstream. A second a.png is a-2.png.
	Path string

	place event.Copy // of File
}

// maxArtifacts bounds the files of a run and those of its workstreams.
const maxArtifacts = 1000

// Artifacts returns the files of a run: first those that its agent made, then those of the messages that it answers,
// then those that its workstreams made, unless a workstream was launched apart. All of them have a copy.
func (r *Runs) Artifacts(ctx context.Context, run string) ([]Artifact, error) {
	list, err := storage.Read(ctx, r.db, func(tx *storage.Txn) (list []Artifact) {
		read := func(query string) []Artifact {
			found := storage.Rows(tx, (*Artifact).dest, query+` LIMIT CAST($2 AS BIGINT)`, run, int64(maxArtifacts))
			for i := range found {
				found[i].File.ID, found[i].File.Copy = path.Base(found[i].place.Path), &found[i].place
			}
			return found
		}
		list = read(`SELECT '', 1, ` + copied + ` FROM messages m JOIN attachments a ON a.message = m.row
			WHERE m.run = $1 AND m.author = 'agent' AND m.deleted_at = 0 AND a.state = 'stored' ORDER BY m.seq, a.part`)
		posted := storage.Rows(tx, func(file *string) []any { return []any{file} }, `SELECT file FROM deliveries WHERE run = $1 AND file <> '' ORDER BY part, id
			LIMIT CAST($2 AS BIGINT)`, run, int64(maxArtifacts))
		for _, column := range posted {
			var file outbox.File
			if tx.Fail(storage.Unpack(column, &file)); file.Path != "" {
				list = append(list, Artifact{Made: true, File: event.Attachment{
					ID: path.Base(file.Path), Name: file.Name, MimeType: file.MimeType, Size: file.Size, Copy: &event.Copy{Bucket: file.Bucket, Path: file.Path},
				}})
			}
		}
		list = append(list, read(`SELECT '', 0, `+copied+` FROM messages m JOIN attachments a ON a.message = m.row
			WHERE m.run = $1 AND m.author NOT IN ('agent', 'system') AND m.deleted_at = 0 AND a.state = 'stored' ORDER BY m.seq, a.part`)...)
		return append(list, read(`WITH RECURSIVE below (path, thread, at) AS (
				SELECT id, thread, launched_at FROM workstreams WHERE run = $1 AND apart = 0
				UNION ALL SELECT b.path || '/' || w.id, w.thread, w.launched_at FROM below b JOIN workstreams w ON w.parent = b.thread AND w.apart = 0)
			SELECT b.path, 1, `+copied+` FROM below b JOIN threads t ON t.key = b.thread JOIN messages m ON m.thread = t.id JOIN attachments a ON a.message = m.row
			WHERE m.author = 'agent' AND m.deleted_at = 0 AND a.state = 'stored' ORDER BY b.at, b.path, m.seq, a.part`)...)
	})
	taken := map[string]bool{}
	for i := range list {
		list[i].Path = list[i].path(taken)
	}
	return list, err
}

// path returns the path of a file that no other one of taken has.
func (a *Artifact) path(taken map[string]bool) string {
	folder := "files/"
	switch {
	case a.Child != "":
		folder += a.Child + "/"
	case a.Made:
		folder = "out/"
	}
	name := strings.ReplaceAll(cmp.Or(a.File.Name, "file"), "/", "_")
	if name == "." || name == ".." {
		name = strings.ReplaceAll(name, ".", "_")
	}
	end := path.Ext(name)
	place := folder + name
	for n := 2; taken[place]; n++ {
		place = fmt.Sprintf("%s%s-%d%s", folder, strings.TrimSuffix(name, end), n, end)
	}
	taken[place] = true
	return place
}

// copied are the columns of a stored attachment.
const copied = `a.name, a.mime_type, a.size, a.bucket, a.path`

func (a *Artifact) dest() []any {
	return []any{&a.Child, &a.Made, &a.File.Name, &a.File.MimeType, &a.File.Size, &a.place.Bucket, &a.place.Path}
}
