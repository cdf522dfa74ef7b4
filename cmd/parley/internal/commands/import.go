package commands

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"parley/adapters/jsonobject"
	"parley/adapters/replay"
	"parley/adapters/web/access"
	"parley/adapters/web/payload"
	"parley/cmd/parley/internal/boot"
	"parley/config"
	"parley/ingest/event"
	"parley/ingest/journal"
	"parley/ingest/journal/record"
	"parley/ingest/journal/storage"
)

func importCommand() *cobra.Command {
	var path string
	var quiet, asJSON bool
	c := &cobra.Command{
		Use:   "import FILE.jsonl",
		Short: "Reads messages of another system into threads",
		Long: `Reads messages of another system into threads. FILE is - for the standard input. Each line
is an object {"id","workspace","thread_id","role","content","metadata","created_at"}. The
role is user or assistant, and created_at a time such as 2024-05-01T09:30:00Z. The
thread_id is a UUID, or the key of a thread such as slack:acme:C06RY3YBSLE:1700000000.000100.
The content may begin with a header of the other system, such as [Slack channel:C1 user:U1];
agents get the content as it is, with or without one.

A message whose id is known is skipped, so an import can be repeated. The messages are
finished turns: they start no run, and agents see them as they are. If a line has a fault,
nothing is imported. With SQLite the daemon must be stopped.`,
		Example: `  parley import old.jsonl
  zcat old.jsonl.gz | parley import -`,
		Args: wrong(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			conf, err := config.Load(path)
			if err != nil {
				return faults(err)
			}
			file, done, err := importFrom(args[0], c.InOrStdin())
			if err != nil {
				return err
			}
			defer done()
			added, known, err := importFile(c.Context(), conf, file, newProgress(c, quiet))
			if err != nil {
				return err
			}
			return printImported(c.OutOrStdout(), added, known, asJSON)
		},
	}
	configFlag(c, &path, ifExists)
	quietFlag(c, &quiet)
	jsonFlag(c, &asJSON)
	return c
}

// pastFile is the file of an import.
type pastFile struct {
	path string
	name string // in faults
}

// importFrom returns the file of an argument. An import reads it twice, so the standard input, -, goes
// into a temporary file, which done removes.
func importFrom(argument string, stdin io.Reader) (file pastFile, done func(), err error) {
	file, done = pastFile{argument, argument}, func() {}
	if argument != "-" {
		if info, err := os.Stat(argument); err == nil && !info.Mode().IsRegular() {
			return file, done, fmt.Errorf("%s: must be a regular file, because an import reads it twice: use - for the standard input", argument)
		}
		return file, done, nil
	}
	spool, err := os.CreateTemp("", "parley-import-")
	if err != nil {
		return file, done, err
	}
	done = func() { _ = os.Remove(spool.Name()) }
	_, err = io.Copy(spool, stdin)
	if err = errors.Join(err, spool.Close()); err != nil {
		done()
	}
	return pastFile{spool.Name(), "standard input"}, done, err
}

// printImported prints the result.
func printImported(to io.Writer, added, known int, asJSON bool) error {
	if asJSON {
		return printJSON(to, map[string]int{"imported": added, "known": known})
	}
	verb := "were"
	if known == 1 {
		verb = "was"
	}
	_, err := fmt.Fprintf(to, "%s %s imported; %s %s known\n", count(added, "message"), are(added), humanize.Comma(int64(known)), verb)
	return err
}

// importFile checks the whole file, and then imports it. It returns the number of new messages and that of
// known ones.
func importFile(ctx context.Context, conf *config.Config, file pastFile, shown *progress) (added, known int, err error) {
	defer shown.end()
	lines, err := checkPast(file, conf, shown)
	if err != nil {
		return 0, 0, err
	}
	engine, err := boot.Store(ctx, conf.Store, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		return 0, 0, err
	}
	i := importer{journal: journal.New(engine, journal.Options{})}
	defer func() { err = errors.Join(err, i.journal.Close()) }()
	if err := storage.Whole(ctx, engine); err != nil {
		return 0, 0, err
	}
	shown.begin("importing messages", lines, false)
	err = replay.Lines(file.path, func(_ int, raw []byte, _ error) error { // checkPast has found no fault
		m, err := readPast(raw, conf)
		if err != nil {
			return err
		}
		shown.at(int64(i.read))
		return i.add(ctx, m)
	})
	if err = errors.Join(err, i.flush(ctx)); err != nil {
		return 0, 0, fmt.Errorf("import %s: %w", file.name, err)
	}
	return i.added, i.read - i.added, nil
}

const (
	// maxPastFaults bounds the printed faults.
	maxPastFaults = 20
	// pastBatch bounds the messages of one transaction.
	pastBatch = 200
)

// checkPast returns the number of lines that are not blank, and the first faults of the file.
func checkPast(file pastFile, conf *config.Config, shown *progress) (lines int64, err error) {
	var list []error
	shown.begin("checking lines", -1, false)
	err = replay.Lines(file.path, func(line int, raw []byte, fault error) error {
		if fault == nil {
			_, fault = readPast(raw, conf)
		}
		if fault != nil && len(list) < maxPastFaults {
			list = append(list, fmt.Errorf("%s:%d: %w", file.name, line, fault))
		}
		lines++
		shown.at(lines)
		return nil
	})
	return lines, errors.Join(append(list, err)...)
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
	if err := event.CheckUTF8(raw); err != nil {
		return m, fmt.Errorf("the line %w", err)
	}
	f, err := jsonobject.Parse(raw)
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
	for _, extra := range m.known.Extra {
		check(!event.IsDeep(extra.Value), "metadata."+event.Beginning(extra.Key, 64), "must not be nested more than 100 deep")
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
	added, err := i.journal.Recorder.Import(ctx, i.to, i.batch)
	i.added += added
	if err == nil && added > 0 {
		err = i.join(ctx)
	}
	i.batch = nil
	return err
}

// join lets the callers of our own API take part in the thread of the batch in which they have written.
func (i *importer) join(ctx context.Context) error {
	own, ok := i.of.settings.Config.(*access.Config)
	if !ok {
		return nil
	}
	joined := map[string]bool{}
	for _, m := range i.batch {
		actor, ok := own.ActorOf(i.to.Workspace, m.SenderID)
		if !ok || m.Own || joined[string(actor)] {
			continue
		}
		joined[string(actor)] = true
		t, err := i.journal.Threads.Thread(ctx, i.to.Workspace, i.to.ID)
		if err == nil && t.MadeBy == "" {
			_, err = i.journal.Threads.AddParticipant(ctx, &t, string(actor))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// thread returns the thread of a line: the one with its key or its UUID, or a new one.
func (i *importer) thread(ctx context.Context, m *past) (to record.ImportThread, err error) {
	w := m.settings
	to = record.ImportThread{Workspace: w.ID, Platform: w.Platform, Channel: m.known.ChannelExternalID}
	switch id := m.ThreadID; {
	case m.byKey():
		to.Key = event.ThreadKey(m.ThreadID)
		if to.ID, err = i.journal.Threads.ThreadID(ctx, to.Key); err != nil {
			return to, err
		}
	case w.Platform == event.Web:
		to.Key, to.ID, to.Channel = payload.ThreadKey(w.ID, id), id, id
	default:
		to.ID = id
		known, err := i.journal.Threads.Thread(ctx, w.ID, id)
		if err != nil && !errors.Is(err, storage.ErrNotFound) {
			return to, err
		}
		to.Key = cmp.Or(known.Key, event.ThreadKey(fmt.Sprintf("%s:%s:%s", w.Platform, w.ID, id)))
	}
	to.Agent = w.Channel(to.Channel).Agent
	return to, nil
}
