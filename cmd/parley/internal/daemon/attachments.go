package daemon

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"time"

	"parley/adapters"
	"parley/assembly/turn"
	"parley/ingest/attach"
	"parley/ingest/event"
	"parley/ingest/journal/files"
	"parley/ingest/journal/outbox"
	"parley/ingest/stream"
)

// fetchTimeout bounds the copying of one attachment.
const fetchTimeout = 30 * time.Second

// attachments copies the files of messages by the adapters of their workspaces, and keeps the files that agents make.
type attachments struct {
	store    *attach.Store
	records  *files.Files
	accounts *accounts
	log      *slog.Logger
}

var _ turn.Files = attachments{}

// Keep implements turn.Files: it stores a copy of the attachment, which it fetches with
// the platform's adapter.
func (s attachments) Keep(ctx context.Context, workspace, sender string, a files.Attachment) (files.Attachment, turn.Copying) {
	account := s.accounts.account(workspace)
	if account == nil {
		return a, ""
	}
	fetcher, ok := account.adapter.(adapters.Fetcher)
	if !ok {
		return a, ""
	}
	kept, err := s.fetch(ctx, fetcher, workspace+" "+sender, a)
	if err != nil && ctx.Err() == nil && !attach.IsRefused(err) { // the store of copies reports that
		s.log.Warn("attachment not copied", "workspace", workspace, "attachment", a.ID, "err", err)
	}
	switch {
	case err == nil && kept.State == files.Stored:
		return kept, turn.Copied
	case errors.Is(err, attach.ErrTooLarge):
		return kept, turn.TooLarge
	case kept.State == files.Unavailable, attach.IsRefused(err):
		return kept, turn.Refused
	}
	return kept, ""
}

// fetch copies an attachment and records the copy, or the attachment's absence.
func (s attachments) fetch(ctx context.Context, fetcher adapters.Fetcher, sender string, a files.Attachment) (files.Attachment, error) {
	run := ctx
	ctx, cancel := context.WithTimeout(run, fetchTimeout)
	defer cancel()
	if err := s.store.Fits(a.Size); err != nil {
		return s.unavailable(run, a, err)
	}
	source, err := adapters.Fetch(ctx, fetcher, a.Attachment)
	if err != nil {
		return s.unavailable(run, a, err)
	}
	defer source.Close()
	if described, ok := source.(adapters.Described); ok {
		a.Attachment = completed(a.Attachment, described.Describe())
	}
	kept, err := s.store.PutFor(ctx, sender, source, a.Attachment)
	switch {
	case errors.Is(err, attach.ErrTooLarge), errors.Is(err, attach.ErrOtherContent), err != nil && ctx.Err() != nil && !errors.Is(err, attach.ErrPlace):
		return s.unavailable(run, a, err)
	case err != nil: // the thread's next turn tries again
		return a, err
	}
	a.State, a.Bucket, a.Path, a.Size, a.MimeType = files.Stored, kept.Bucket, kept.Path, kept.Size, kept.MimeType
	return a, s.records.SetAttachment(ctx, a, kept.SHA256)
}

// completed adds the platform's description of a file to the message's own. The size is
// the platform's, because the platform sends the present content of the file.
func completed(a, described event.Attachment) event.Attachment {
	a.Name, a.MimeType, a.Size = cmp.Or(a.Name, described.Name), cmp.Or(a.MimeType, described.MimeType), cmp.Or(described.Size, a.Size)
	a.Type, a.DurationMS = cmp.Or(a.Type, described.Type), cmp.Or(a.DurationMS, described.DurationMS)
	return a
}

// unavailable records that a file is unavailable, unless the run has ended, which is no fault of
// the file.
func (s attachments) unavailable(run context.Context, a files.Attachment, cause error) (files.Attachment, error) {
	if run.Err() != nil {
		return a, cause
	}
	a.State = files.Unavailable
	return a, errors.Join(cause, s.records.SetAttachment(run, a, ""))
}

// Put implements turn.Files.
func (s attachments) Put(ctx context.Context, file stream.File) (outbox.File, error) {
	kept, err := s.store.Put(ctx, bytes.NewReader(file.Data), event.Attachment{Name: file.Name, MimeType: file.MimeType, Size: int64(len(file.Data))})
	return outbox.File{Name: file.Name, MimeType: kept.MimeType, Size: kept.Size, Bucket: kept.Bucket, Path: kept.Path}, err
}

// Open implements turn.Files. An agent goes on without a copy that can't be read, so Open logs that for the operator. It ends a read that takes longer than fetchTimeout, and
// the run goes on. If the copy is missing, a later turn copies the file again.
func (s attachments) Open(ctx context.Context, bucket, path string) (io.ReadCloser, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	content, err := s.store.Open(ctx, bucket, path)
	if errors.Is(err, fs.ErrNotExist) {
		err = errors.Join(err, s.records.CopyLost(ctx, bucket, path))
	}
	if err != nil {
		cancel()
		s.unread(path, err)
		return nil, err
	}
	return &openCopy{content, cancel, func(err error) { s.unread(path, err) }}, nil
}

// unread logs that a copy can't be read.
func (s attachments) unread(path string, err error) {
	if !errors.Is(err, context.Canceled) {
		s.log.Warn("attachment copy not readable; the agent goes on without it", "copy", path, "err", err)
	}
}

// openCopy is a copy while an agent reads it.
type openCopy struct {
	io.ReadCloser
	cancel context.CancelFunc
	failed func(error)
}

// Read implements io.Reader.
func (t *openCopy) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		t.failed(err)
	}
	return n, err
}

// Close implements io.Closer.
func (t *openCopy) Close() error {
	defer t.cancel()
	return t.ReadCloser.Close()
}
