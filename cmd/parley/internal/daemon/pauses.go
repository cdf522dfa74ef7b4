package daemon

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"parley/adapters/web/exchange"
	"parley/ingest"
)

// readPauses reads the pauses that another node, or a command beside a store of several nodes, may have changed.
func (d *Daemon) readPauses(ctx context.Context) error {
	if !d.shared {
		<-ctx.Done()
		return nil
	}
	d.pauses.Serve(ctx, func(err error) { d.log.Warn("the pauses cannot be read; those that are known stay", "err", err) })
	return nil
}

// paused returns the error of a program that would speak where the agent is paused; nil for none.
func (d *Daemon) paused(workspace, channel, parent, agent string) error {
	err := d.pauses.Refusal(workspace, channel, parent, agent)
	if paused, ok := errors.AsType[*ingest.PausedError](err); ok {
		return exchange.Fail(http.StatusServiceUnavailable, "paused", paused.Error())
	}
	return err
}

// ticking returns the workspaces whose schedules tick: not those that are paused as a whole, so that their times count as missed.
func (d *Daemon) ticking() []string {
	return slices.DeleteFunc(d.serves(), func(workspace string) bool { return d.pauses.Of(workspace, "", "", "") != nil })
}
