package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"parley/adapters/jsonobject"
	"parley/adapters/replay"
	"parley/adapters/web/payload"
	"parley/config"
	"parley/ingest/event"
	"parley/ingest/journal"
	"parley/ingest/journal/record"
	"parley/ingest/journal/storage"
)

func importCommand() *cobra.Command {
	var path string
	c := &cobra.Command{
		Use:   "import FILE.jsonl",
		Short: "Reads messages of another system, with a prefix in their content, into threads",
		Long: `Reads messages of version 0, whose content begins with a prefix, into threads. Each line
is an object {"id","workspace","thread_id","role","content","metadata","created_at"}. The
role is user or assistant, and created_at a time such as 2024-05-01T09:30:00Z. The
thread_id is a UUID, or the key of a thread such as slack:acme:C06RY3YBSLE:1700000000.000100.

A message whose id is known is skipped, so an import can be repeated. The messages are
finished turns: they start no run, and agents see them as they are. If a line has a fault,
nothing is imported. With SQLite the daemon must be stopped.`,
		Args: wrong(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			conf, err := config.Load(path)
			if err != nil {
				return faults(err)
			}
			return importFile(c.Context(), conf, args[0], c.OutOrStdout())
		},
	}
	configFlag(c, &path, ifExists)
	return c
}

// importFile checks the whole file, and then imports it.
func importFile(ctx context.Context, conf *config.Config, path string, out io.Writer) (err error) {
	if err := checkPast(path, conf); err != nil {
		return err
	}
	engine, err := openStore(ctx, conf.Store)
	if err != nil {
		return err
	}
	i := importer{journal: journal.New(engine, journal.Options{})}
	defer func() { err = errors.Join(err, i.journal.Close()) }()
	if err := storage.Whole(ctx, engine); err != nil {
		return err
	}
	err = replay.Lines(path, func(_ int, raw []byte, _ error) error { // checkPast has found no fault
		m, err := readPast(raw, conf)
		if err != nil {
			return err
		}
		return i.add(ctx, m)
	})
	if err = errors.Join(err, i.flush(ctx)); err != nil {
		return fmt.Errorf("import %s: %w", path, err)
	}
	_, err = fmt.Fprintf(out, "%d messages are imported; %d were known\n", i.added, i.read-i.added)
	return err
}

const (
	// maxPastFaults bounds the printed faults.
	maxPastFaults = 20
	// pastBatch bounds the messages of one transaction.
	pastBatch = 200
)

// checkPast returns the first faults of the file.
func checkPast(path string, conf *config.Config) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s: must be a regular file, because an import reads it twice", path)
	}
	var list []error
	err := replay.Lines(path, func(line int, raw []byte, fault error) error {
		if fault == nil {
			_, fault = readPast(raw, conf)
		}
		if fault != nil && len(list) < maxPastFaults {
			list = append(list, fmt.Errorf("%s:%d: %w", path, line, fault))
		}
		return nil
	})
	return errors.Join(append(list, err)...)
}

// past is a line of an import.
type past struct {
	ID        string
	Workspace string
	ThreadID  string
	Role      string
	Content   string
	Metadata  json.RawMessage
	CreatedAt time.Time

	known    event.Metadata
	settings *config.Workspace
}

// readPast reads and checks a line. Its error names every faulty field.
func readPast(raw []byte, conf *config.Config) (m past, err error) {
	f, err := jsonobject.Parse(bytes.ToValidUTF8(raw, []byte("\uFFFD"))) // a copy; the stored metadata is shown as JSON
	if err != nil {
		return m, fmt.Errorf("the line is no message: %s", strings.TrimPrefix(err.Error(), "body: "))
	}
	m = past{ID: f.Text("id"), Workspace: f.Text("workspace"), ThreadID: f.Text("thread_id"), Role: f.Text("role"), Content: f.Text("content"), Metadata: f.Raw("metadata")}
	f.Decode("created_at", "a time such as 2024-05-01T09:30:00Z", &m.CreatedAt)
	for i := range conf.Workspaces {
		if w := &conf.Workspaces[i]; w.ID == m.Workspace {
			m.settings = w
		}
	}
	if m.Metadata == nil {
		m.Metadata = json.RawMessage("{}")
	}
	faults, _ := errors.AsType[event.FieldErrors](f.Err())
	check := func(ok bool, field, message string) { // a field's first fault causes the later ones
		noted := slices.ContainsFunc(faults, func(e event.FieldError) bool { return e.Field == field })
		faults.Check(ok || noted, field, message)
	}
	check(m.ID != "", "id", "is required")
	check(m.settings != nil, "workspace", "must be a configured workspace")
	check(m.Role == "user" || m.Role == "assistant", "role", "must be user or assistant")
	check(f.Has("content"), "content", "is required")
	check(!m.CreatedAt.IsZero(), "created_at", "is required")
	if m.settings == nil || !m.byKey() {
		id, err := uuid.Parse(m.ThreadID)
		check(err == nil || m.settings == nil && m.ThreadID != "", "thread_id", "must be a UUID, or the key of a thread of the workspace")
		m.ThreadID = id.String() // the form of the API: lower case, with dashes
	}
	if m.known, err = event.ReadMetadata(m.Metadata); err != nil {
		more, _ := errors.AsType[event.FieldErrors](err)
		faults = append(faults, more...)
	}
	return m, faults.Err()
}

// byKey reports whether the line names its thread by the key.
func (m *past) byKey() bool {
	return strings.HasPrefix(m.ThreadID, string(m.settings.Platform)+":"+m.Workspace+":")
}

// importer stores the lines of one file.
type importer struct {
	journal *journal.Journal

	of          past                // the line that names the thread of the batch
	to          record.ImportThread // the thread of the batch
	batch       []record.ImportMessage
	read, added int
}

// add adds a line to the batch of its thread.
func (i *importer) add(ctx context.Context, m past) error {
	if m.Workspace != i.of.Workspace || m.ThreadID != i.of.ThreadID || len(i.batch) == pastBatch {
		if err := i.flush(ctx); err != nil {
			return err
		}
		var err error
		if i.to, err = i.thread(ctx, &m); err != nil {
			return err
		}
		i.of = m
	}
	i.read++
	i.batch = append(i.batch, record.ImportMessage{
		ID: m.ID, Own: m.Role == "assistant", Content: m.Content, Metadata: m.Metadata,
		SenderID: m.known.SenderID, Bot: m.known.SenderType == event.Bot, CreatedAt: m.CreatedAt,
	})
	return nil
}

// flush imports the batch.
func (i *importer) flush(ctx context.Context) error {
	if len(i.batch) == 0 {
		return nil
	}
	added, err := i.journal.Import(ctx, i.to, i.batch)
	i.added += added
	i.batch = nil
	return err
}

// thread returns the thread of a line: the one with its key or its UUID, or a new one.
func (i *importer) thread(ctx context.Context, m *past) (to record.ImportThread, err error) {
	w := m.settings
	to = record.ImportThread{Workspace: w.ID, Platform: w.Platform, Channel: m.known.ChannelExternalID}
	switch id := m.ThreadID; {
	case m.byKey():
		to.Key = event.ThreadKey(m.ThreadID)
		if to.ID, err = i.journal.ThreadID(ctx, to.Key); err != nil {
			return to, err
		}
	case w.Platform == event.Web:
		to.Key, to.ID, to.Channel = payload.ThreadKey(w.ID, id), id, id
	default:
		to.ID = id
		known, err := i.journal.Thread(ctx, w.ID, id)
		if err != nil && !errors.Is(err, storage.ErrNotFound) {
			return to, err
		}
		to.Key = cmp.Or(known.Key, event.ThreadKey(fmt.Sprintf("%s:%s:%s", w.Platform, w.ID, id)))
	}
	to.Agent = w.Channel(to.Channel).Agent
	return to, nil
}
