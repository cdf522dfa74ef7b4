package daemon

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"parley/adapters"
	"parley/adapters/backfill"
	"parley/assembly/stream"
	"parley/ingest/event"
	"parley/ingest/journal"
	"parley/ingest/work"
)

// recorded is a platform that this version reads from recordings alone.
type recorded struct {
	adapters.Normalizer
	platform event.Platform
}

// Limits implements adapters.Adapter: nothing is sent.
func (recorded) Limits() adapters.Limits { return adapters.Limits{} }

// Run implements adapters.Runner.
func (r recorded) Run(context.Context, adapters.Inbox, adapters.Link) error {
	return &adapters.RefusedError{
		Err:  fmt.Errorf("a live connection to %s is not supported by this version", r.platform),
		Hint: "recordings of it can be replayed; remove the workspace's file to be rid of this message",
	}
}

// startAccounts starts the adapters that are not running yet. One that takes a
// workspace over begins when the one before it has ended.
func (d *Daemon) startAccounts(ctx context.Context) {
	for _, a := range d.current.Load().accounts {
		if a.stop != nil {
			continue
		}
		runner, ok := a.adapter.(adapters.Runner)
		if !ok {
			a.stop = func() {}
			d.report(a, adapters.Status{State: adapters.Up, Since: d.now().UTC()})
			continue
		}
		var own context.Context
		own, a.stop = context.WithCancel(ctx)
		before, ended := d.running[a.ID], make(chan struct{})
		d.running[a.ID] = ended
		d.accounts.Go(func() {
			defer close(ended)
			if before != nil {
				<-before
			}
			var reading sync.WaitGroup
			defer reading.Wait()
			if a.backfill != nil {
				reading.Go(func() { a.backfill.Run(own) })
			}
			d.supervise(own, a, runner)
		})
	}
}

func (d *Daemon) supervise(ctx context.Context, a *account, runner adapters.Runner) {
	adapters.Supervise(ctx, adapters.Supervised{
		Runner: runner,
		Inbox:  timed{d.ingest, d.metrics},
		Lease:  adapters.ExclusiveLease{Store: d.journal, Name: "workspace/" + a.ID},
		Up: func(self event.Self) {
			d.introduce(ctx, a, self)
			if a.backfill != nil {
				a.backfill.Up(ctx)
			}
		},
		Report: func(s adapters.Status) {
			switch {
			case a.backfill == nil || s.State == adapters.Up:
			case s.State == adapters.Standby:
				a.backfill.Standby()
			default:
				a.backfill.Down()
			}
			d.report(d.successor(a), s)
		},
		Log: d.log.With("workspace", a.ID), Wants: wants(a.Workspace),
	})
}

// newBackfill returns the backfill of an account; nil if its adapter cannot read missed messages.
func (d *Daemon) newBackfill(ctx context.Context, a *account) (*backfill.Workspace, error) {
	platform, ok := a.adapter.(adapters.Backfiller)
	if !ok {
		return nil, nil
	}
	b, err := backfill.New(ctx, backfill.Parts{
		ID: a.ID, Platform: platform, Inbox: d.ingest, Store: d.journal, Lease: adapters.ExclusiveLease{Store: d.journal},
		Config: func() backfill.Config { return d.successor(a).Backfill },
		Now:    d.now, Log: d.log.With("workspace", a.ID),
	})
	if err != nil {
		return nil, fmt.Errorf("read the gaps of %s: %w", a.ID, err)
	}
	return b, nil
}

// successor is the account that has taken a's adapter over at a reload.
func (d *Daemon) successor(a *account) *account {
	if current := d.current.Load(); current != nil {
		if now := current.accounts[a.ID]; now != nil && now.adapter == a.adapter {
			return now
		}
	}
	return a
}

// report keeps an adapter's state. A workspace is up on the node that serves it:
// where another one has its connection it stands by here.
func (d *Daemon) report(a *account, s adapters.Status) {
	a.status.Store(&s)
	d.metrics.up(a.ID, s.State == adapters.Up)
}

// introduce remembers who the platform says we are.
func (d *Daemon) introduce(ctx context.Context, a *account, self event.Self) {
	known, err := d.journal.Self(ctx, a.ID)
	if err == nil {
		if known.TeamID == self.TeamID && self.AppID == "" {
			self.AppID = known.AppID // which the platform does not always tell
		}
		err = d.ingest.SetSelf(ctx, a.Platform, a.ID, self)
	}
	if err != nil && ctx.Err() == nil {
		d.log.Error("remember who we are", "workspace", a.ID, "err", err)
	}
}

// startLanes serves the turns of the agents that are not served yet. A lane
// stays until the daemon stops: an agent that is gone has no turns.
func (d *Daemon) startLanes(claim, running context.Context, workers *sync.WaitGroup) {
	for id, a := range d.current.Load().agents {
		if d.lanes[id] {
			d.work.Resize(work.Turns, id, a.slots())
			continue
		}
		d.lanes[id] = true
		workers.Go(func() {
			if err := d.turns.Serve(claim, running, id, a.slots()); err != nil {
				d.log.Error("a part ended", "part", "turns of "+id, "err", err)
			}
		})
	}
}

// Ready implements turn.History.
func (d *Daemon) Ready(lease *journal.Claim, wake func()) (ready, gap bool) {
	a := d.current.Load().accounts[workspaceOf(lease.Key)]
	if a == nil || a.backfill == nil {
		return true, false
	}
	return a.backfill.Ready(lease.Key, wake)
}

// workspaceOf returns the workspace that stands in a thread's key.
func workspaceOf(key event.ThreadKey) string {
	_, rest, _ := strings.Cut(string(key), ":")
	workspace, _, _ := strings.Cut(rest, ":")
	return workspace
}

// Preface implements turn.History.
func (d *Daemon) Preface(ctx context.Context, lease *journal.Claim, run *journal.Run, newest int) error {
	return d.ingest.Preface(ctx, lease, run, newest)
}

// Keep implements turn.Files: a copy of the attachment, by the platform's own
// way to it.
func (d *Daemon) Keep(ctx context.Context, workspace string, a journal.Attachment) journal.Attachment {
	if a.State != journal.AttachmentPending {
		return a
	}
	account := d.current.Load().accounts[workspace]
	if account == nil {
		return a
	}
	fetcher, ok := account.adapter.(adapters.Fetcher)
	if !ok {
		return a
	}
	kept, err := d.fetch(ctx, fetcher, a)
	if err != nil && ctx.Err() == nil {
		d.log.Warn("an attachment can't be had", "workspace", workspace, "attachment", a.ID, "err", err)
	}
	return kept
}

// Put implements turn.Files.
func (d *Daemon) Put(ctx context.Context, file stream.File) (journal.File, error) {
	kept, err := d.files.Put(ctx, bytes.NewReader(file.Data), event.Attachment{Name: file.Name, MimeType: file.MimeType, Size: int64(len(file.Data))})
	if err == nil { // a day is longer than any run, which must store the delivery first
		err = d.journal.CheckCopy(ctx, kept.Bucket, kept.Path, 24*time.Hour)
	}
	return journal.File{Name: file.Name, MimeType: kept.MimeType, Size: kept.Size, Bucket: kept.Bucket, Path: kept.Path}, err
}

func (d *Daemon) fetch(ctx context.Context, fetcher adapters.Fetcher, a journal.Attachment) (journal.Attachment, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	if err := d.files.Fits(a.Size); err != nil {
		return d.unavailable(ctx, a, err)
	}
	source, err := fetcher.Fetch(ctx, a.Attachment)
	if err != nil {
		return d.unavailable(ctx, a, err)
	}
	defer source.Close()
	if told, ok := source.(adapters.Described); ok {
		a.Attachment = completed(a.Attachment, told.Describe())
	}
	kept, err := d.files.Put(ctx, source, a.Attachment)
	if err != nil {
		return d.unavailable(ctx, a, err)
	}
	a.State, a.Bucket, a.Path, a.Size, a.MimeType = journal.AttachmentStored, kept.Bucket, kept.Path, kept.Size, kept.MimeType
	return a, d.journal.SetAttachment(ctx, a, kept.SHA256)
}

// completed fills in what a message has left out of its file. The size is the
// platform's: what it has now is what is copied.
func completed(a, told event.Attachment) event.Attachment {
	a.Name, a.MimeType, a.Size = cmp.Or(a.Name, told.Name), cmp.Or(a.MimeType, told.MimeType), cmp.Or(told.Size, a.Size)
	return a
}

// unavailable records that a file can't be had, unless it was only cut short.
func (d *Daemon) unavailable(ctx context.Context, a journal.Attachment, cause error) (journal.Attachment, error) {
	if errors.Is(cause, context.Canceled) {
		return a, cause
	}
	a.State = journal.AttachmentUnavailable
	return a, errors.Join(cause, d.journal.SetAttachment(context.WithoutCancel(ctx), a, ""))
}
