package daemon

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"sync"
	"time"

	"parley/adapters"
	"parley/adapters/backfill"
	"parley/assembly/turn"
	"parley/ingest/attach"
	"parley/ingest/event"
	"parley/ingest/journal/files"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/places"
	"parley/ingest/journal/runs"
	"parley/ingest/stream"
	"parley/ingest/wake"
	"parley/ingest/work"
)

// startAccounts starts the adapters that are not running yet. A workspace's new adapter
// starts when its previous one has ended.
func (d *Daemon) startAccounts(ctx context.Context) {
	for _, a := range d.current.Load().accounts {
		if a.stop != nil {
			continue
		}
		var connections []adapters.Connection
		if connector, ok := a.adapter.(adapters.Connector); ok {
			connections = connector.Connections()
		}
		if len(connections) == 0 {
			a.stop = func() {}
			d.report(a, "", adapters.Status{State: adapters.Up, Since: d.now().UTC()})
			d.sayHello(a)
			continue
		}
		var own context.Context
		own, a.stop = context.WithCancel(ctx)
		previous, ended := d.running[a.ID], make(chan struct{})
		d.running[a.ID] = ended
		d.accounts.Go(func() {
			defer close(ended)
			if previous != nil {
				<-previous
			}
			var running sync.WaitGroup
			if a.backfill != nil {
				running.Go(func() { a.backfill.Run(own) })
			}
			for _, c := range connections {
				running.Go(func() { d.supervise(own, a, c) })
			}
			running.Wait()
		})
	}
}

// supervise runs one of an account's connections until ctx ends, and passes its state on.
func (d *Daemon) supervise(ctx context.Context, a *account, c adapters.Connection) {
	adapters.Supervise(ctx, adapters.Supervised{
		Connection: c,
		Each:       func(ctx context.Context, c adapters.Connection) { d.supervise(ctx, a, c) },
		Inbox:      timed{d.ingest, d},
		Lease:      adapters.ExclusiveLease{Store: d.journal.Places, Name: path.Join("workspace", a.ID, c.Name)},
		Link: adapters.Link{
			Up: func(self event.Self) {
				if !d.introduce(ctx, a, self) {
					return
				}
				d.sayHello(a)
				if a.backfill != nil && a.links.up(c.Name) {
					a.backfill.Up(ctx)
				}
			},
			Missed: func(channel string, since time.Time) {
				if a.backfill != nil {
					a.backfill.Missed(channel, since)
				}
			},
			State: d.journal.Places.AdapterState(a.ID), Log: d.log.With("workspace", a.ID),
			Wants: func() adapters.Wants { return wants(d.publicURL(), d.current.Load().config, d.successor(a).Workspace) },
		},
		Report: func(s adapters.Status) { d.report(d.successor(a), c.Name, s) },
	})
}

// newBackfill returns the backfill of an account; nil if its adapter cannot read missed messages.
func (d *Daemon) newBackfill(ctx context.Context, a *account) (*backfill.Workspace, error) {
	platform, ok := a.adapter.(adapters.Backfiller)
	if !ok {
		return nil, nil
	}
	hook, ok := a.adapter.(adapters.Hook)
	b, err := backfill.New(ctx, backfill.Parts{
		ID: a.ID, Platform: platform, HookOnly: ok && hook.HookOnly(), Inbox: d.ingest, Store: d.journal.Places, Lease: adapters.ExclusiveLease{Store: d.journal.Places},
		Config: func() backfill.Config { return d.successor(a).Backfill },
		Now:    d.wall, Log: d.log.With("workspace", a.ID),
	})
	if err != nil {
		return nil, fmt.Errorf("read the gaps of %s: %w", a.ID, err)
	}
	return b, nil
}

// successor returns the account that has a's adapter since the last reload; a itself if
// there is none.
func (d *Daemon) successor(a *account) *account {
	if current := d.current.Load(); current != nil {
		if now := current.accounts[a.ID]; now != nil && now.adapter == a.adapter {
			return now
		}
	}
	return a
}

// report stores the state of an account's connection. A workspace is up only on the nodes
// that have its connections, and on standby on the other nodes.
func (d *Daemon) report(a *account, connection string, s adapters.Status) {
	s = a.links.report(connection, s)
	d.metrics.up(a.ID, s.State == adapters.Up)
	switch {
	case a.backfill == nil || s.State == adapters.Up:
	case s.State == adapters.Standby:
		a.backfill.Standby()
	default:
		a.backfill.Down()
	}
}

// introduceAgain is the wait after a failure to store our identity.
const introduceAgain = time.Second

// introduce stores our own identity on the platform. No envelope of the account is read before,
// so introduce tries until it succeeds or ctx ends. It reports whether it has succeeded.
func (d *Daemon) introduce(ctx context.Context, a *account, self event.Self) bool {
	for {
		err := d.storeSelf(ctx, a, self)
		if err == nil {
			return true
		}
		if ctx.Err() == nil {
			d.log.Error("own identity not stored", "workspace", a.ID, "err", err)
		}
		if !wake.After(ctx, introduceAgain) {
			return false
		}
	}
}

func (d *Daemon) storeSelf(ctx context.Context, a *account, self event.Self) error {
	known, err := d.journal.Places.Self(ctx, a.ID)
	if err != nil {
		return err
	}
	if known.TeamID == self.TeamID && known.UserID == self.UserID && self.AppID == "" {
		self.AppID = known.AppID // the platform does not always report it
	}
	return d.ingest.SetSelf(ctx, a.Platform, a.ID, self)
}

// serveAgents starts a work queue for the turns of each new agent. A work queue stays until
// the daemon stops. That of a removed agent takes no turns: they go to its heir, or to a node that has the agent.
func (d *Daemon) serveAgents(claim, running context.Context, workers *sync.WaitGroup) {
	agents := d.current.Load().agents
	for id, serves := range d.queues {
		if _, kept := agents[id]; serves && !kept {
			d.queues[id] = false
			d.work.Resize(work.Turns, id, 0)
			d.log.Info("an agent was removed; its turns go to the first agent", "agent", id)
		}
	}
	for id, a := range agents {
		_, known := d.queues[id]
		if d.queues[id] = true; known {
			d.work.Resize(work.Turns, id, a.slots())
			continue
		}
		workers.Go(func() {
			if err := d.turns.Serve(claim, running, id, a.slots()); err != nil {
				d.log.Error("component ended", "component", "turns of "+id, "err", err)
			}
		})
	}
}

// Ready implements turn.History. The turns of a workspace that was removed wait in the store,
// until it is configured again or another node takes over the thread.
func (d *Daemon) Ready(lease *places.Claim, wake func()) (ready, gap bool) {
	switch a := d.current.Load().accounts[lease.Workspace]; {
	case a == nil:
		return false, false
	case a.backfill == nil, event.IsWorkstream(lease.Key), event.IsTick(lease.Key):
		return true, false
	default:
		return a.backfill.Ready(lease.Key, wake)
	}
}

// ReadHistory implements turn.History.
func (d *Daemon) ReadHistory(ctx context.Context, lease *places.Claim, run *runs.Run, newest int) error {
	return d.ingest.ReadHistory(ctx, lease, run, newest)
}

// Keep implements turn.Files: it stores a copy of the attachment, which it fetches with
// the platform's adapter.
func (d *Daemon) Keep(ctx context.Context, workspace, sender string, a files.Attachment) (files.Attachment, turn.Copying) {
	account := d.current.Load().accounts[workspace]
	if account == nil {
		return a, ""
	}
	fetcher, ok := account.adapter.(adapters.Fetcher)
	if !ok {
		return a, ""
	}
	kept, err := d.fetch(ctx, fetcher, workspace+" "+sender, a)
	if err != nil && ctx.Err() == nil && !attach.IsRefused(err) { // the store of copies reports that
		d.log.Warn("attachment not copied", "workspace", workspace, "attachment", a.ID, "err", err)
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

// Open implements turn.Files.
func (d *Daemon) Open(ctx context.Context, bucket, path string) (io.ReadCloser, error) {
	return agentFiles{d.files, d.journal, d.log}.Open(ctx, bucket, path)
}

// Put implements turn.Files.
func (d *Daemon) Put(ctx context.Context, file stream.File) (outbox.File, error) {
	return d.PutFor(ctx, "", file)
}

// PutFor implements files.Store.
func (d *Daemon) PutFor(ctx context.Context, sender string, file stream.File) (outbox.File, error) {
	kept, err := d.files.PutFor(ctx, sender, bytes.NewReader(file.Data), event.Attachment{Name: file.Name, MimeType: file.MimeType, Size: int64(len(file.Data))})
	return outbox.File{Name: file.Name, MimeType: kept.MimeType, Size: kept.Size, Bucket: kept.Bucket, Path: kept.Path}, err
}

// fetch copies an attachment and records the copy, or the attachment's absence.
func (d *Daemon) fetch(ctx context.Context, fetcher adapters.Fetcher, sender string, a files.Attachment) (files.Attachment, error) {
	run := ctx
	ctx, cancel := context.WithTimeout(run, fetchTimeout)
	defer cancel()
	if err := d.files.Fits(a.Size); err != nil {
		return d.unavailable(run, a, err)
	}
	source, err := adapters.Fetch(ctx, fetcher, a.Attachment)
	if err != nil {
		return d.unavailable(run, a, err)
	}
	defer source.Close()
	if described, ok := source.(adapters.Described); ok {
		a.Attachment = completed(a.Attachment, described.Describe())
	}
	kept, err := d.files.PutFor(ctx, sender, source, a.Attachment)
	switch {
	case errors.Is(err, attach.ErrTooLarge), errors.Is(err, attach.ErrOtherContent), err != nil && ctx.Err() != nil && !errors.Is(err, attach.ErrPlace):
		return d.unavailable(run, a, err)
	case err != nil: // the thread's next turn tries again
		return a, err
	}
	a.State, a.Bucket, a.Path, a.Size, a.MimeType = files.Stored, kept.Bucket, kept.Path, kept.Size, kept.MimeType
	return a, d.journal.Files.SetAttachment(ctx, a, kept.SHA256)
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
func (d *Daemon) unavailable(run context.Context, a files.Attachment, cause error) (files.Attachment, error) {
	if run.Err() != nil {
		return a, cause
	}
	a.State = files.Unavailable
	return a, errors.Join(cause, d.journal.Files.SetAttachment(run, a, ""))
}
