// Package figures has what a node measures and tells of its work: the metrics, the steps of messages, and how the agents do.
package figures

import (
	"net/http"
	"runtime"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"parley/assembly/turn"
	"parley/cmd/parley/internal/traces"
	"parley/ingest/journal"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/runs"
)

// Metrics are all figures of a node. No label contains a thread, a user or a text.
type Metrics struct {
	Registry   *prometheus.Registry
	envelopes  *prometheus.CounterVec
	ack        prometheus.Histogram
	commit     prometheus.Histogram
	store      committed
	runs       *prometheus.CounterVec
	deliveries *prometheus.CounterVec
	rejected   *prometheus.CounterVec
	inbound    *prometheus.GaugeVec
	workspaces *prometheus.GaugeVec

	answers, delivery, turnWait, firstToken, runSeconds *prometheus.HistogramVec
	tokens, ticks, requests, throttled                  *prometheus.CounterVec
	failing                                             *prometheus.GaugeVec
	reloaded, reloadedAt, retained                      prometheus.Gauge
}

// fast and slow are buckets in seconds, for commits and for agents.
var (
	fast = []float64{.0005, .001, .002, .005, .01, .02, .05, .1, .25, .5, 1, 2}
	slow = []float64{.01, .05, .1, .5, 1, 2.5, 5, 10, 30, 60, 120, 300}
)

// NewMetrics registers every figure except for those of the store, of the connections and of the program.
func NewMetrics() *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	}
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
	}
	m := &Metrics{
		Registry:   prometheus.NewRegistry(),
		envelopes:  counter("parley_envelopes_total", "Processed envelopes by result.", "workspace", "kind", "disposition", "reason"),
		ack:        histogram("parley_ack_seconds", "Time of the durable accept of an envelope.", fast),
		commit:     histogram("parley_commit_seconds", "Time of one commit in the store.", fast),
		store:      newCommitted(),
		runs:       counter("parley_runs_total", "Attempts of runs by outcome.", "agent", "outcome"),
		deliveries: counter("parley_deliveries_total", "Deliveries by the state that they reached.", "workspace", "state"),
		rejected:   counter("parley_rejected_requests_total", "Refused HTTP requests by reason.", "reason"),
		inbound:    gauge("parley_last_inbound_timestamp_seconds", "Time of the last accepted envelope.", "workspace"),
		workspaces: gauge("parley_workspace_up", "1 if events of the workspace can arrive on this node, else 0; /readyz shows the state and the error.", "workspace"),
	}
	histograms := func(name, help, label string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: slow}, []string{label})
	}
	plain := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	m.answers = histograms("parley_answer_seconds", "Time from the accept of the oldest message of a run to its first post that people see.", "workspace")
	m.delivery = histograms("parley_delivery_seconds", "Time from the commit of an answer to its post on the platform.", "workspace")
	m.turnWait = histograms("parley_turn_wait_seconds", "Time from the last message of a turn to the beginning of its run.", "agent")
	m.runSeconds = histograms("parley_run_seconds", "Time of one attempt of a run.", "agent")
	m.firstToken = histograms("parley_first_token_seconds", "Time from the beginning of an answered attempt to the agent's first message.", "agent")
	m.tokens = counter("parley_agent_tokens_total", "Tokens by the count of the agent's server; the direction is in or out.", "workspace", "agent", "direction")
	m.ticks = counter("parley_schedule_ticks_total", "Ticks of schedules by result: posted, quiet, failed or skipped.", "workspace", "result")
	m.requests = counter("parley_platform_requests_total", "Requests to the platform by method and by the status of the answer; the code is refused for a refusal with status 200, and none without an answer.", "workspace", "method", "code")
	m.throttled = counter("parley_platform_throttled_seconds_total", "Waits that the platform's rate limits have asked for.", "workspace")
	m.failing = gauge("parley_agent_failing", "1 if the last attempt of the agent on this node failed, else 0.", "agent")
	m.reloaded = plain("parley_config_last_reload_successful", "1 if the configuration that was read last is in use, else 0.")
	m.reloadedAt = plain("parley_config_last_reload_timestamp_seconds", "When the configuration in use was read.")
	m.retained = plain("parley_retention_last_success_timestamp_seconds", "When this node last removed old rows; 0 if it has not.")
	m.Registry.MustRegister(m.answers, m.delivery, m.turnWait, m.firstToken, m.tokens, m.ticks, m.requests, m.throttled, m.failing, m.reloaded, m.reloadedAt, m.retained)
	m.Registry.MustRegister(m.store.writes, m.store.seconds)
	m.Registry.MustRegister(m.envelopes, m.ack, m.commit, m.runs, m.runSeconds, m.deliveries, m.rejected, m.inbound, m.workspaces,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Describe adds the figure that has the version of the program.
func (m *Metrics) Describe(version string) {
	number, commit, _ := strings.Cut(strings.TrimSuffix(version, ")"), " (")
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "parley_build_info", Help: "1, with the version of the program.", ConstLabels: prometheus.Labels{"version": number, "commit": commit, "go_version": runtime.Version()},
	})
	info.Set(1)
	m.Registry.MustRegister(info)
}

// Remembered adds the figures of the windows that the journal remembers.
func (m *Metrics) Remembered(j *journal.Journal) {
	m.Registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "parley_remembered_bytes", Help: "Memory of the remembered windows of threads."},
			func() float64 { return float64(j.Runs.Remembered().Bytes) }),
		windows("remembered", func() float64 { return float64(j.Runs.Remembered().Used) }),
		windows("read", func() float64 { return float64(j.Runs.Remembered().Read) }))
}

// Traced adds the figure of the lost spans; none if nothing is traced.
func (m *Metrics) Traced(t *traces.Traces) {
	if t == nil {
		return
	}
	m.Registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "parley_trace_spans_lost_total", Help: "Spans that the collector of traces did not take, or not in time.",
	}, func() float64 { return float64(t.Lost()) }))
}

// windows returns the figure of the windows from one source.
func windows(source string, count func() float64) prometheus.CounterFunc {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "parley_windows_total", Help: "Windows of threads for runs by source: remembered, or read from the store.", ConstLabels: prometheus.Labels{"source": source},
	}, count)
}

func (m *Metrics) attempted(run *runs.Run, r turn.Report) {
	m.runs.WithLabelValues(run.Agent, string(r.Outcome)).Inc()
	m.runSeconds.WithLabelValues(run.Agent).Observe(r.Took.Seconds())
	for direction, n := range map[string]int64{"in": r.Usage.TokensIn, "out": r.Usage.TokensOut} {
		if n > 0 {
			m.tokens.WithLabelValues(run.Workspace, run.Agent, direction).Add(float64(n))
		}
	}
	if r.FirstToken > 0 {
		m.firstToken.WithLabelValues(run.Agent).Observe(r.FirstToken.Seconds())
	}
	if run.Attempts == 0 {
		m.turnWait.WithLabelValues(run.Agent).Observe(wait(run).Seconds())
	}
}

// isFailing sets whether an agent fails.
func (m *Metrics) isFailing(agent string, fails bool) {
	value := 0.0
	if fails {
		value = 1
	}
	m.failing.WithLabelValues(agent).Set(value)
}

// Configured notes that a configuration is in use, or was refused.
func (m *Metrics) Configured(used bool) {
	m.reloaded.Set(0)
	if used {
		m.reloaded.Set(1)
		m.reloadedAt.SetToCurrentTime()
	}
}

func (m *Metrics) delivered(workspace string, state outbox.State, took time.Duration) {
	m.deliveries.WithLabelValues(workspace, string(state)).Inc()
	if state == outbox.Sent {
		m.delivery.WithLabelValues(workspace).Observe(max(0, took.Seconds()))
	}
}

// Acknowledged measures the durable accept of an envelope.
func (m *Metrics) Acknowledged(workspace string, begun time.Time) {
	m.ack.Observe(time.Since(begun).Seconds())
	m.inbound.WithLabelValues(workspace).SetToCurrentTime()
}

// Reject counts a refused request.
func (m *Metrics) Reject(reason string) { m.rejected.WithLabelValues(reason).Inc() }

// Up sets whether events of a workspace can arrive on this node.
func (m *Metrics) Up(workspace string, up bool) {
	value := 0.0
	if up {
		value = 1
	}
	m.workspaces.WithLabelValues(workspace).Set(value)
}

// Forget removes the figures of workspaces and agents that a reload has removed.
func (m *Metrics) Forget(workspaces, agents []string) {
	for _, id := range workspaces {
		m.workspaces.DeleteLabelValues(id)
		m.inbound.DeleteLabelValues(id)
		m.throttled.DeleteLabelValues(id)
		m.ticks.DeletePartialMatch(prometheus.Labels{"workspace": id})
		m.tokens.DeletePartialMatch(prometheus.Labels{"workspace": id})
		m.requests.DeletePartialMatch(prometheus.Labels{"workspace": id})
	}
	for _, id := range agents {
		m.failing.DeleteLabelValues(id)
	}
}

// Retained notes that old rows were removed.
func (m *Metrics) Retained() { m.retained.SetToCurrentTime() }

// ServeHTTP answers a scrape with all figures.
func (m *Metrics) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	promhttp.HandlerFor(m.Registry, promhttp.HandlerOpts{}).ServeHTTP(w, r)
}
