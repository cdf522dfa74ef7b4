package slack

import (
	"context"

	"parley/cmd/parley-bench/internal/rig"
)

// Peers measures the daemon beside the floor and, if it is installed, beside an app of Bolt, Slack's own framework
// for Node.
type Peers struct{ Load }

func (p *Peers) Define(f *rig.FlagSet) {
	p.Load.Define(f)
	p.fallback = 5000
	for name, value := range map[string]string{"workload": newThreads, "rounds": "3"} {
		own := f.Lookup(name)
		_ = own.Value.Set(value) // each is a value of its flag
		own.DefValue = value
	}
	f.StringVar(&p.bolt, "bolt", "", "the folder in which npm has installed @slack/bolt, and openai for -workload stream; without it the floor alone is the peer")
}

func (p *Peers) Run(ctx context.Context, b *rig.Bench) error {
	if err := b.PrintMachine(ctx, p.bolt); err != nil {
		return err
	}
	return p.Load.Run(ctx, b)
}
