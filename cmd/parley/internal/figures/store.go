package figures

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"parley/ingest/backup"
	"parley/ingest/journal"
	"parley/ingest/journal/listing"
	"parley/ingest/journal/storage"
)

// scrapeTimeout bounds the wait of a scrape for the store.
const scrapeTimeout = 2 * time.Second

// committed are the figures of this node's transactions in the store. parley_commit_seconds counts them.
type committed struct {
	writes  *prometheus.CounterVec
	seconds prometheus.Counter
}

func newCommitted() committed {
	return committed{
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "parley_store_writes_total", Help: "Writes in the store by unit: call (those that wait at the same time share a transaction), page of SQLite's log, round trip to PostgreSQL.",
		}, []string{"unit"}),
		seconds: prometheus.NewCounter(prometheus.CounterOpts{Name: "parley_store_transaction_seconds_total", Help: "Time of the transactions that write in the store."}),
	}
}

// Committed implements storage.Recorder.
func (m *Metrics) Committed(c storage.Commit) {
	m.commit.Observe(c.Took.Seconds())
	for unit, n := range map[string]float64{"call": float64(c.Calls), "page": float64(c.Pages), "trip": float64(c.Trips)} {
		if n > 0 {
			m.store.writes.WithLabelValues(unit).Add(n)
		}
	}
	m.store.seconds.Add(c.Held.Seconds())
}

// storeMetrics are the figures that each scrape counts in the store. If several nodes share the
// store, only the one that does the retention tells them, so that a sum over the nodes counts each
// row once. If the store does not answer, parley_store_up is 0 and the others are left out.
type storeMetrics struct {
	ctx     context.Context // of the daemon's values
	journal *journal.Journal
	now     func() time.Time
	counts  *atomic.Bool // this node tells the figures of the store
	takes   Taker
	known   func() (workspaces, agents []string)

	up, pending, dead, bytes, free, backup                        *prometheus.Desc
	deliveries, waiting, running, questions, behind, oldestSecond *prometheus.Desc
}

// Taker knows whether the store takes messages.
type Taker interface {
	// TakesMessages returns the error for which the store takes no messages; nil if it does.
	TakesMessages(ctx context.Context) error
}

// Stored adds the figures of the store. counts says whether this node tells them, and known names what has figures also while they are 0.
func (m *Metrics) Stored(ctx context.Context, j *journal.Journal, takes Taker, counts *atomic.Bool, known func() (workspaces, agents []string), now func() time.Time) {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	m.Registry.MustRegister(&storeMetrics{
		ctx: ctx, journal: j, now: now, counts: counts, takes: takes, known: known,
		up:           desc("parley_store_up", "1 if the store takes messages of this node, else 0."),
		pending:      desc("parley_pending_envelopes", "Envelopes without a result yet; at most 10,000."),
		dead:         desc("parley_dead_letters", "Envelopes whose processing failed for good; at most 10,000."),
		bytes:        desc("parley_store_bytes", "Size of the database."),
		free:         desc("parley_store_free_bytes", "Space that is left beside an embedded database."),
		backup:       desc("parley_backup_last_success_timestamp_seconds", "When the last backup that was read back was begun; 0 if an embedded store has none."),
		deliveries:   desc("parley_deliveries_open", "Deliveries that are not sent, by state: pending, sending, unknown or failed.", "workspace", "state"),
		waiting:      desc("parley_turns_waiting", "Turns that wait for their agent.", "agent"),
		running:      desc("parley_runs_in_progress", "Runs that have begun and not ended.", "agent"),
		questions:    desc("parley_questions_open", "Questions of agents that wait for an answer.", "agent"),
		behind:       desc("parley_backfill_channels_behind", "Channels whose missed messages are still to be read.", "workspace"),
		oldestSecond: desc("parley_oldest_pending_seconds", "Age of the oldest due work, by queue: intake, turn or delivery; 0 without work.", "queue"),
	})
}

// Describe implements prometheus.Collector.
func (m *storeMetrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.up, m.pending, m.dead, m.bytes, m.free, m.backup, m.deliveries, m.waiting, m.running, m.questions, m.behind, m.oldestSecond} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (m *storeMetrics) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(m.ctx, scrapeTimeout)
	defer cancel()
	send := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	up := 0.0
	if m.takes.TakesMessages(ctx) == nil {
		up = 1
	}
	send(m.up, up)
	f, err := m.journal.Listing.Figures(ctx)
	if err != nil || !m.counts.Load() {
		return
	}
	send(m.pending, float64(f.Pending))
	send(m.dead, float64(f.DeadLetters))
	m.described(ctx, send)
	m.grouped(f, send)
	for _, queue := range []string{"intake", "turn", "delivery"} {
		age := 0.0
		if at, waits := f.Oldest[queue]; waits {
			age = max(0, m.now().Sub(at).Seconds())
		}
		send(m.oldestSecond, age, queue)
	}
}

// described sends the figures of the database as a whole.
func (m *storeMetrics) described(ctx context.Context, send func(d *prometheus.Desc, value float64, labels ...string)) {
	facts, err := m.journal.Facts(ctx)
	if err == nil && facts.Bytes > 0 {
		send(m.bytes, float64(facts.Bytes))
	}
	if facts.Free > 0 {
		send(m.free, float64(facts.Free))
	}
	switch at, err := backup.Last(ctx, m.journal); {
	case err != nil:
	case !at.IsZero():
		send(m.backup, float64(at.Unix()))
	case facts.Free > 0: // other databases have tools of their own
		send(m.backup, 0)
	}
}

// grouped sends the figures of workspaces and agents.
func (m *storeMetrics) grouped(f listing.Figures, send func(d *prometheus.Desc, value float64, labels ...string)) {
	workspaces, agents := m.known()
	each := func(known []string, counts map[string]int64, send func(label string, n float64)) {
		for _, label := range known {
			if _, counted := counts[label]; !counted {
				send(label, 0)
			}
		}
		for label, n := range counts {
			send(label, float64(n))
		}
	}
	for _, state := range []string{"pending", "sending", "unknown", "failed"} {
		each(workspaces, f.Deliveries[state], func(workspace string, n float64) { send(m.deliveries, n, workspace, state) })
	}
	each(agents, f.Waiting, func(agent string, n float64) { send(m.waiting, n, agent) })
	each(agents, f.Running, func(agent string, n float64) { send(m.running, n, agent) })
	each(agents, f.Questions, func(agent string, n float64) { send(m.questions, n, agent) })
	each(workspaces, f.Behind, func(workspace string, n float64) { send(m.behind, n, workspace) })
}
