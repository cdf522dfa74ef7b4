package console

import (
	"fmt"
	"math"
	"slices"
	"time"

	"parley/cmd/parley/internal/operator"
	"parley/ingest/journal/listing"
)

func runList(s *operator.Service, r request) (string, any, error) {
	f := filterOf(s, r)
	f.States = listing.RunStates()
	query := listing.RunFilter{State: f.State, Workspace: f.Workspace, Channel: f.Channel, Agent: f.Agent, Text: f.Text, After: r.query("before"), Limit: rows}
	var err error
	if query.Since, query.Until, err = s.Times(f.Since, f.Until); err != nil {
		return "", nil, err
	}
	list, err := s.Runs(r.Context(), r.by, query)
	return "Runs", struct {
		Items  []operator.Run
		Filter filter
		Next   neighbours
	}{list.Items, f, r.beside(list.Next)}, err
}

// waterfall is the picture of a run's attempts. Places and widths are in percent of its own width, heights in pixels.
type waterfall struct {
	Height int
	Ticks  []tick
	Bars   []attemptBar
}

// tick is a time on the axis of a waterfall.
type tick struct {
	X      float64
	Words  string
	Anchor string // of the words: start, middle or end
}

// attemptBar is the time of an attempt.
type attemptBar struct {
	N          int64
	Y          int
	From, Wait float64 // until the first token
	Answer     float64
	Write      float64
	Failed     bool
	Words      string // of a pointer that rests on it
}

const (
	// barsFrom and barsTo are the left and the right end of the waterfall's bars.
	barsFrom, barsTo = 5.0, 99.0
	// leastBar is the width of the shortest bar.
	leastBar = 0.6
	// axisHeight is the height of the axis above the bars, and barHeight that of a row.
	axisHeight, barHeight = 22, 22
	// tickCount is the number of equal parts of the axis.
	tickCount = 4
)

// waterfallOf returns the waterfall of a run's attempts; nil if none has times. A lost one has no bar.
func waterfallOf(attempts []listing.Attempt) *waterfall {
	attempts = slices.DeleteFunc(slices.Clone(attempts), listing.Attempt.Lost)
	if len(attempts) == 0 {
		return nil
	}
	begun, ended := attempts[0].BegunAt, attempts[len(attempts)-1].EndedAt
	all := max(ended.Sub(begun), time.Millisecond)
	at := func(moment time.Time) float64 {
		return round(barsFrom + (barsTo-barsFrom)*float64(moment.Sub(begun))/float64(all))
	}
	w := &waterfall{Height: axisHeight + len(attempts)*barHeight}
	for i := range tickCount + 1 {
		after := all * time.Duration(i) / tickCount
		anchor := "middle"
		switch i {
		case 0:
			anchor = "start"
		case tickCount:
			anchor = "end"
		}
		w.Ticks = append(w.Ticks, tick{at(begun.Add(after)), ms(begun, begun.Add(after)), anchor})
	}
	for i, a := range attempts {
		first := a.FirstAt
		if first.IsZero() {
			first = a.BegunAt
		}
		words := fmt.Sprintf("attempt %d: %s", a.N, ms(a.BegunAt, a.EndedAt))
		if !a.FirstAt.IsZero() {
			words += ", first token after " + ms(a.BegunAt, a.FirstAt)
		}
		w.Bars = append(w.Bars, attemptBar{
			N: a.N, Y: axisHeight + i*barHeight, From: at(a.BegunAt), Wait: round(at(first) - at(a.BegunAt)), Answer: at(first), Write: max(leastBar, round(at(a.EndedAt)-at(first))),
			Failed: a.Error != "", Words: words,
		})
	}
	return w
}

// round returns a place in tenths of a percent.
func round(x float64) float64 { return math.Round(10*x) / 10 }

func run(s *operator.Service, r request) (string, any, error) {
	one, err := s.Run(r.Context(), r.by, r.PathValue("id"))
	if err != nil {
		return "", nil, err
	}
	return "Run of " + one.Agent, struct {
		Run       operator.Run
		Waterfall *waterfall
		May       bool
	}{one, waterfallOf(one.Attempts), r.isOperator()}, nil
}

func retryRun(s *operator.Service, f form) (string, error) {
	_, err := s.RetryRun(f.Context(), f.write(), f.PathValue("id"))
	return "The agent is asked again.", err
}

func stopRun(s *operator.Service, f form) (string, error) {
	one, err := s.StopRun(f.Context(), f.write(), f.PathValue("id"))
	return "The run is " + one.State + ".", err
}

func why(s *operator.Service, r request) (string, any, error) {
	ref := r.query("ref")
	if ref == "" {
		return "Why?", operator.Why{}, nil
	}
	life, err := s.Why(r.Context(), r.by, ref)
	return "Why?", life, err
}
