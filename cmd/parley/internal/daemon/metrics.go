package daemon

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"parley/assembly/turn"
	"parley/ingest/journal"
	"parley/ingest/journal/envelopes"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/runs"
)

// metrics holds all figures of the daemon. No label contains a thread, a user or a text.
type metrics struct {
	registry   *prometheus.Registry
	envelopes  *prometheus.CounterVec
	ack        prometheus.Histogram
	commit     prometheus.Histogram
	runs       *prometheus.CounterVec
	runSeconds prometheus.Histogram
	deliveries *prometheus.CounterVec
	rejected   *prometheus.CounterVec
	inbound    *prometheus.GaugeVec
	workspaces *prometheus.GaugeVec
}

// fast and slow are buckets in seconds, for commits and for agents.
var (
	fast = []float64{.0005, .001, .002, .005, .01, .02, .05, .1, .25, .5, 1, 2}
	slow = []float64{.01, .05, .1, .5, 1, 2.5, 5, 10, 30, 60, 120, 300}
)

// newMetrics registers every figure except for those of backlog.
func newMetrics() *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	}
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
	}
	m := &metrics{
		registry:   prometheus.NewRegistry(),
		envelopes:  counter("parley_envelopes_total", "Processed envelopes by result.", "workspace", "kind", "disposition", "reason"),
		ack:        histogram("parley_ack_seconds", "Time of the durable accept of an envelope.", fast),
		commit:     histogram("parley_commit_seconds", "Time of one commit in the store.", fast),
		runs:       counter("parley_runs_total", "Attempts of runs by outcome.", "agent", "outcome"),
		runSeconds: histogram("parley_run_seconds", "Time of one attempt of a run.", slow),
		deliveries: counter("parley_deliveries_total", "Deliveries by the state that they reached.", "workspace", "state"),
		rejected:   counter("parley_rejected_requests_total", "Refused HTTP requests by reason.", "reason"),
		inbound:    gauge("parley_last_inbound_timestamp_seconds", "Time of the last accepted envelope.", "workspace"),
		workspaces: gauge("parley_workspace_up", "1 if events of the workspace can arrive on this node, else 0; /readyz shows the state and the error.", "workspace"),
	}
	m.registry.MustRegister(m.envelopes, m.ack, m.commit, m.runs, m.runSeconds, m.deliveries, m.rejected, m.inbound, m.workspaces,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// backlogTimeout bounds the wait of a scrape for the store.
const backlogTimeout = 2 * time.Second

// backlog adds the figures that each scrape counts in the store.
func (m *metrics) backlog(ctx context.Context, j *journal.Journal) {
	count := func(pick func(envelopes.Backlog) int64) func() float64 {
		return func() float64 {
			ctx, cancel := context.WithTimeout(ctx, backlogTimeout)
			defer cancel()
			b, err := j.Backlog(ctx)
			if err != nil {
				return -1
			}
			return float64(pick(b))
		}
	}
	m.registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "parley_pending_envelopes", Help: "Envelopes without a result yet; -1 if the store does not answer."},
			count(func(b envelopes.Backlog) int64 { return b.Pending })),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "parley_dead_letters", Help: "Envelopes whose processing failed for good; -1 if the store does not answer."},
			count(func(b envelopes.Backlog) int64 { return b.DeadLetters })))
	m.remembered(j)
}

// remembered adds the figures of the windows that the journal remembers.
func (m *metrics) remembered(j *journal.Journal) {
	m.registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "parley_remembered_bytes", Help: "Memory of the remembered windows of threads."},
			func() float64 { return float64(j.Remembered().Bytes) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "parley_windows_remembered_total", Help: "Runs whose window of the thread was remembered."},
			func() float64 { return float64(j.Remembered().Used) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "parley_windows_read_total", Help: "Runs whose window of the thread was read from the store."},
			func() float64 { return float64(j.Remembered().Read) }))
}

func (m *metrics) attempted(run *runs.Run, r turn.Report) {
	m.runs.WithLabelValues(run.Agent, string(r.Outcome)).Inc()
	m.runSeconds.Observe(r.Took.Seconds())
}

func (m *metrics) delivered(workspace string, state outbox.State) {
	m.deliveries.WithLabelValues(workspace, string(state)).Inc()
}

// Committed implements storage.Recorder.
func (m *metrics) Committed(_ int, took time.Duration) { m.commit.Observe(took.Seconds()) }

func (m *metrics) acknowledged(workspace string, begun time.Time) {
	m.ack.Observe(time.Since(begun).Seconds())
	m.inbound.WithLabelValues(workspace).SetToCurrentTime()
}

func (m *metrics) reject(reason string) { m.rejected.WithLabelValues(reason).Inc() }

func (m *metrics) up(workspace string, up bool) {
	value := 0.0
	if up {
		value = 1
	}
	m.workspaces.WithLabelValues(workspace).Set(value)
}

// forget removes the figures of workspaces that a reload has removed.
func (m *metrics) forget(before, after *setup) {
	for id := range before.accounts {
		if after.accounts[id] == nil {
			m.workspaces.DeleteLabelValues(id)
			m.inbound.DeleteLabelValues(id)
		}
	}
}
