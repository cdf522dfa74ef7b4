package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/cmd/parley/internal/boot"
	"parley/cmd/parley/internal/operator"
	"parley/config"
)

const (
	// pruneEvery is the interval between two removals of old rows and files.
	pruneEvery = 10 * time.Minute
	// draftAge is the age after which an unfinished file cannot have a writer any more.
	draftAge = 24 * time.Hour
)

// reloadRequest is a request to read the configuration again, with the result once done is closed.
type reloadRequest struct {
	done   chan struct{}
	result operator.Reloaded
	err    error
}

// reloads reads the configuration again for each request, until claim ends.
func (d *Daemon) reloads(serve, claim, work context.Context, workers *sync.WaitGroup) error {
	for {
		select {
		case <-claim.Done():
			return nil
		case r := <-d.reloading:
			r.result, r.err = d.reload(serve, claim, work, workers)
			close(r.done)
		}
	}
}

// Reload asks the daemon to read its configuration again, and returns at once. The channel is
// closed when the daemon has applied or refused the configuration. It is nil if an earlier
// call is still pending: that reload reads the same files.
func (d *Daemon) Reload() <-chan struct{} {
	r := &reloadRequest{done: make(chan struct{})}
	select {
	case d.reloading <- r:
		return r.done
	default:
		return nil
	}
}

// reloadNow reads the configuration again and returns the result.
func (d *Daemon) reloadNow(ctx context.Context) (operator.Reloaded, error) {
	r := &reloadRequest{done: make(chan struct{})}
	select {
	case d.reloading <- r:
	case <-ctx.Done():
		return operator.Reloaded{}, ctx.Err()
	}
	select {
	case <-r.done:
		return r.result, r.err
	case <-ctx.Done():
		return operator.Reloaded{}, ctx.Err()
	}
}

// reload applies the present content of the files. If the content has a fault, the last
// good configuration stays.
func (d *Daemon) reload(serve, claim, work context.Context, workers *sync.WaitGroup) (operator.Reloaded, error) {
	result := operator.Reloaded{Faults: []operator.Fault{}, Changed: []string{}, Restart: []string{}}
	next, err := d.load()
	before, accounts := d.Setup().Config, d.accounts.all()
	if err == nil && onlyLocal(next) && !onlyLocal(before) {
		err = config.Faults{{File: config.File, Line: 1, Words: "the files of the workspaces are missing; without them the next start runs the built-in workspace alone"}}
	}
	if err == nil && !boot.IsLoopback(d.listener.Addr()) { // the listener is that of the start, whatever the new file says
		next.Workspaces = slices.DeleteFunc(next.Workspaces, func(w config.Workspace) bool { return config.IsLocal(w.Config) })
	}
	if err != nil {
		d.metrics.Configured(false)
		d.log.Error("the configuration has faults; the last good one stays", "err", err)
		if faults, ok := errors.AsType[config.Faults](err); ok {
			result.Faults, err = operator.FaultsOf(faults), nil
		}
		return result, err
	}
	if err := d.configure(claim, next); claim.Err() != nil {
		return result, operator.Fail(http.StatusServiceUnavailable, "stopping", "the daemon stops")
	} else if err != nil {
		d.metrics.Configured(false)
		d.log.Error("the configuration can't be applied; the last good one stays", "err", err)
		return result, fmt.Errorf("the configuration can't be applied; the last good one stays: %w", err)
	}
	result.Changed = append(result.Changed, next.Changes(before)...)
	for _, key := range next.Changes(d.started) {
		if atStart(key) {
			result.Restart = append(result.Restart, key)
		}
	}
	if len(result.Restart) > 0 {
		d.log.Warn("some changes take effect at the next start", "restart", strings.Join(result.Restart, ", "))
	}
	for id, old := range accounts {
		if now := d.account(id); (now == nil || now.adapter != old.adapter) && old.stop != nil {
			old.stop()
		}
	}
	d.startAccounts(serve)
	d.ServeAgents(claim, work, workers)
	result.Applied = true
	d.log.Info("the configuration was reloaded", "workspaces", len(next.Workspaces), "agents", len(next.Agents), "changed", strings.Join(result.Changed, ", "))
	return result, nil
}

// atStart reports whether a key of parley.yaml takes effect only at the next start.
func atStart(key string) bool {
	block := strings.FieldsFunc(key, func(r rune) bool { return strings.ContainsRune(".[:", r) })[0]
	return slices.Contains([]string{"listen", "store", "remembered_windows", "attachments", "operator", "console", "tracing"}, block)
}
