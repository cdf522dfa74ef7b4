package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"
)

// nodesFlags are the flags of the subcommands that may run several daemons.
type nodesFlags struct {
	postgres string
	daemons  int
}

func (f *nodesFlags) define(flags *flag.FlagSet) {
	flags.StringVar(&f.postgres, "postgres", "", "URL of a PostgreSQL server, where the store is a database of its own; SQLite where this is empty")
	flags.IntVar(&f.daemons, "daemons", max(1, f.daemons), "how many daemons share the store; more than one need -postgres")
}

func (f *nodesFlags) validate() error {
	if f.daemons < 1 {
		return usageError{errors.New("daemons must be at least 1")}
	}
	if f.daemons > 1 && f.postgres == "" {
		return usageError{errors.New("several daemons need -postgres: SQLite belongs to one process")}
	}
	return nil
}

// words say where the daemons keep everything.
func (f *nodesFlags) words() string {
	engine := "SQLite"
	if f.postgres != "" {
		engine = "PostgreSQL"
	}
	return fmt.Sprintf("%d x %s", max(1, f.daemons), engine)
}

// nodes are the processes of one measurement, and the store that they share.
type nodes struct {
	all      []*child
	database *database // nil for SQLite, which stands in the directory of the only one
}

// alone is a daemon that has its store to itself.
func alone(c *child) *nodes { return &nodes{all: []*child{c}} }

// newNodes makes a store and so many processes around it; each is made from its
// name, which its calls of the fake API carry.
func (b *bench) newNodes(ctx context.Context, name string, f nodesFlags, make func(name string, d *database) (*child, error)) (*nodes, error) {
	n := &nodes{}
	if f.postgres != "" {
		var err error
		if n.database, err = b.newDatabase(ctx, f.postgres); err != nil {
			return nil, err
		}
	}
	for i := range max(1, f.daemons) {
		c, err := make(fmt.Sprintf("%s-%d", name, i), n.database)
		if err != nil {
			return nil, err
		}
		n.all = append(n.all, c)
	}
	return n, nil
}

// newDaemons are the daemons of one configuration.
func (b *bench) newDaemons(ctx context.Context, name string, f nodesFlags, s settings) (*nodes, error) {
	return b.newNodes(ctx, name, f, func(name string, d *database) (*child, error) {
		s.database = d
		return b.newDaemon(name, s)
	})
}

// start starts all at the same moment, and returns when each is ready.
func (n *nodes) start(ctx context.Context) error {
	return n.each(func(c *child) error {
		_, err := c.start(ctx)
		return err
	})
}

// stop asks all to end, as an operator does, and returns when they are gone.
func (n *nodes) stop() error { return n.each((*child).stop) }

// end makes sure that all are gone.
func (n *nodes) end() {
	for _, c := range n.all {
		c.end()
	}
}

// alive is an error where one of them has ended by itself.
func (n *nodes) alive() error { return n.each((*child).alive) }

// each does the same with all of them, at the same time.
func (n *nodes) each(do func(*child) error) error {
	errs := make([]error, len(n.all))
	var group sync.WaitGroup
	for i, c := range n.all {
		group.Go(func() { errs[i] = do(c) })
	}
	group.Wait()
	return errors.Join(errs...)
}

// seize holds a random one that nobody else holds, and waits for one where all are
// held. The caller lets it go.
func (n *nodes) seize(random *rand.Rand) *child {
	order := random.Perm(len(n.all))
	for _, i := range order {
		if n.all[i].held.TryLock() {
			return n.all[i]
		}
	}
	c := n.all[order[0]]
	c.held.Lock()
	return c
}

func (n *nodes) balancer() *balancer { return newBalancer(n.addresses()...) }

func (n *nodes) addresses() (all []string) {
	for _, c := range n.all {
		all = append(all, c.address)
	}
	return all
}

// cpu is what all together have computed so far.
func (n *nodes) cpu() (sum time.Duration, err error) {
	for _, c := range n.all {
		one, err := cpu(c.pid())
		if err != nil {
			return 0, err
		}
		sum += one
	}
	return sum, nil
}

// resident is the sum of their memory. What they share counts for each.
func (n *nodes) resident() (sum memory, err error) {
	for _, c := range n.all {
		one, err := resident(c.pid())
		if err != nil {
			return memory{}, err
		}
		sum = memory{sum.now + one.now, sum.peak + one.peak}
	}
	return sum, nil
}

// logTail is the end of what each has said.
func (n *nodes) logTail() string {
	var words strings.Builder
	for _, c := range n.all {
		fmt.Fprintf(&words, "%s:\n%s\n", c.name(), c.logTail())
	}
	return words.String()
}
