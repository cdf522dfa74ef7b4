package turn

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/assembly/runinput"
	"parley/ingest/stream"
	"parley/ingest/trace"
)

// Tool is a call of a tool in an attempt: one that Parley has made for the agent, or one that the agent has told of.
type Tool struct {
	Name string
	// ID is the agent's id of the call; empty for none. Some agents give each call the same.
	ID             string
	BegunAt        time.Time
	EndedAt        time.Time
	Failed         bool
	Arguments      string // of a call that Parley has made
	Result, Reason string // of a call that Parley has made; of one that has failed
}

// ToolPlace returns the place of the nth call of Report.Tools in an attempt.
func ToolPlace(attempt trace.Place, n int) trace.Place { return attempt.Below("tool", strconv.Itoa(n)) }

// traced makes a call of Parley's tools, and notes it for the trace of the attempt, if it has one.
func (a *attempt) traced(ctx context.Context, c runinput.Call, call func(context.Context) (string, error)) (result string, err error) {
	if trace.From(ctx).IsZero() {
		return call(ctx)
	}
	made := Tool{Name: c.Name, ID: c.ID, Arguments: c.Arguments, BegunAt: a.Now()}
	result, err = call(trace.With(ctx, ToolPlace(trace.From(ctx), len(a.report.Tools))))
	made.EndedAt, made.Result, made.Failed = a.Now(), result, err != nil || strings.HasPrefix(result, `{"error"`)
	a.report.Tools = append(a.report.Tools, made)
	return result, err
}

// toldTools adds the calls that the agent itself has made, as far as it has told of them.
func (a *attempt) toldTools() {
	for _, f := range stream.FinishedOf(a.asked.BegunAt, a.Now(), a.said.told) {
		own := func(t Tool) bool { return t.ID != "" && t.ID == f.ID }
		if f.Tool != "" && !slices.ContainsFunc(a.report.Tools, own) {
			a.report.Tools = append(a.report.Tools, Tool{Name: f.Tool, ID: f.ID, BegunAt: f.At.Add(-f.Latency), EndedAt: f.At, Failed: f.Failed, Reason: f.Error})
		}
	}
}
