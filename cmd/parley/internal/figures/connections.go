package figures

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"parley/adapters"
	"parley/adapters/web/exchange"
)

// States are the states of a connection. A workspace has the first state that one of its connections has.
var States = []adapters.ConnectionState{adapters.Refused, adapters.Down, adapters.Starting, adapters.Up, adapters.Standby}

// Connections counts the connections of this node.
type Connections interface {
	// CountConnections returns the numbers of a workspace's connections by state, for each workspace.
	CountConnections() map[string]map[adapters.ConnectionState]int
}

// connected are the figures of this node's connections, which each scrape counts.
type connected struct {
	from                 Connections
	open                 *exchange.Streams
	connections, streams *prometheus.Desc
}

// Connected adds the figures of this node's connections and streams.
func (m *Metrics) Connected(from Connections, open *exchange.Streams) {
	m.Registry.MustRegister(&connected{
		from: from, open: open,
		connections: prometheus.NewDesc("parley_connections", "Connections of this node to the platform, by state: "+strings.Join(stateNames(), ", ")+".",
			[]string{"workspace", "state"}, nil),
		streams: prometheus.NewDesc("parley_streams_open", "Streams of events that callers of this node read.", nil, nil),
	})
}

// stateNames returns the states of a connection, in their order.
func stateNames() (names []string) {
	for _, s := range States {
		names = append(names, string(s))
	}
	return names
}

// Describe implements prometheus.Collector.
func (m *connected) Describe(to chan<- *prometheus.Desc) {
	to <- m.connections
	to <- m.streams
}

// Collect implements prometheus.Collector.
func (m *connected) Collect(to chan<- prometheus.Metric) {
	for id, counts := range m.from.CountConnections() {
		for _, state := range States {
			to <- prometheus.MustNewConstMetric(m.connections, prometheus.GaugeValue, float64(counts[state]), id, string(state))
		}
	}
	to <- prometheus.MustNewConstMetric(m.streams, prometheus.GaugeValue, float64(m.open.Open()))
}

// meter counts the requests of a workspace. It implements adapters.Meter.
type meter struct {
	requests  *prometheus.CounterVec
	throttled prometheus.Counter
}

var _ adapters.Meter = meter{}

// Meter returns the meter of a workspace.
func (m *Metrics) Meter(workspace string) adapters.Meter {
	return meter{m.requests.MustCurryWith(prometheus.Labels{"workspace": workspace}), m.throttled.WithLabelValues(workspace)}
}

// Requested implements adapters.Meter.
func (m meter) Requested(method, code string) { m.requests.WithLabelValues(method, code).Inc() }

// Throttled implements adapters.Meter.
func (m meter) Throttled(wait time.Duration) { m.throttled.Add(max(0, wait.Seconds())) }
