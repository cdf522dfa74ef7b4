package daemon

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"parley/adapters"
	"parley/assembly/turn"
	"parley/ingest/journal/runs"
)

// liveMetrics are the figures of this node's connections, which each scrape counts.
type liveMetrics struct {
	daemon               *Daemon
	connections, streams *prometheus.Desc
}

func newLiveMetrics(d *Daemon) *liveMetrics {
	return &liveMetrics{
		daemon: d,
		connections: prometheus.NewDesc("parley_connections", "Connections of this node to the platform, by state: "+strings.Join(stateNames(), ", ")+".",
			[]string{"workspace", "state"}, nil),
		streams: prometheus.NewDesc("parley_streams_open", "Streams of events that callers of this node read.", nil, nil),
	}
}

// stateNames returns the states of a connection, in their order.
func stateNames() (names []string) {
	for _, s := range worst {
		names = append(names, string(s))
	}
	return names
}

// Describe implements prometheus.Collector.
func (m *liveMetrics) Describe(to chan<- *prometheus.Desc) {
	to <- m.connections
	to <- m.streams
}

// Collect implements prometheus.Collector.
func (m *liveMetrics) Collect(to chan<- prometheus.Metric) {
	for id, a := range m.daemon.accounts.all() {
		counts := a.links.counts()
		for _, state := range worst {
			to <- prometheus.MustNewConstMetric(m.connections, prometheus.GaugeValue, float64(counts[state]), id, string(state))
		}
	}
	to <- prometheus.MustNewConstMetric(m.streams, prometheus.GaugeValue, float64(m.daemon.streams.Open()))
}

// meter counts the requests of a workspace. It implements adapters.Meter.
type meter struct {
	requests  *prometheus.CounterVec
	throttled prometheus.Counter
}

var _ adapters.Meter = meter{}

// meter returns the meter of a workspace.
func (m *metrics) meter(workspace string) meter {
	return meter{m.requests.MustCurryWith(prometheus.Labels{"workspace": workspace}), m.throttled.WithLabelValues(workspace)}
}

// Requested implements adapters.Meter.
func (m meter) Requested(method, code string) { m.requests.WithLabelValues(method, code).Inc() }

// Throttled implements adapters.Meter.
func (m meter) Throttled(wait time.Duration) { m.throttled.Add(max(0, wait.Seconds())) }

// Answered implements deliver.Observer.
func (d *Daemon) Answered(workspace string, asked time.Time) {
	d.metrics.answers.WithLabelValues(workspace).Observe(max(0, d.now().Sub(asked).Seconds()))
}

// readable measures an answer without deliveries: the callers of our own API can read it now.
func (d *Daemon) readable(run *runs.Run, r turn.Report) {
	a := d.account(run.Workspace)
	if r.Outcome != turn.Answered || a == nil || len(run.Messages) == 0 {
		return
	}
	if _, posts := a.adapter.(adapters.Sender); !posts {
		d.Answered(run.Workspace, run.AskedAt())
	}
}
