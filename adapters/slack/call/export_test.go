package call

import "context"

// Pace is the pace of one method.
type Pace struct{ pace }

// Wait blocks until the next call is allowed.
func (p *Pace) Wait(ctx context.Context, urgent <-chan struct{}) error { return p.wait(ctx, urgent) }
