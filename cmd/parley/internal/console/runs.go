package console

import (
	"slices"
	"time"

	"parley/cmd/parley/internal/operator"
	"parley/ingest/journal/listing"
)

func runList(s *operator.Service, r request) (string, any, error) {
	f := listing.RunFilter{After: r.query("before"), Limit: rows}
	failed := r.query("failed") == "true"
	if failed {
		f.State = "failed"
	}
	list, err := s.Runs(r.Context(), r.by, f)
	return "Runs", struct {
		Items  []operator.Run
		Failed bool
		Next   string
	}{list.Items, failed, r.next(list.Next)}, err
}

// bar is the time of an attempt in the waterfall, in units of the picture.
type bar struct {
	N, Top, Text int64
	From, Wait   int64 // until the first token
	Answer       int64
	Write        int64
	Failed       bool
}

const (
	// barsFrom and barsTo are the left and the right end of the waterfall's bars.
	barsFrom, barsTo = 30, 600
	barHeight        = 20
)

// barsOf returns the waterfall of a run's attempts. A lost one has a line without a bar.
func barsOf(attempts []listing.Attempt) (bars []bar) {
	attempts = slices.DeleteFunc(slices.Clone(attempts), listing.Attempt.Lost) // it has no times
	if len(attempts) == 0 {
		return nil
	}
	begun, ended := attempts[0].BegunAt, attempts[len(attempts)-1].EndedAt
	all := max(ended.Sub(begun), time.Millisecond)
	at := func(moment time.Time) int64 {
		return barsFrom + int64(float64(barsTo-barsFrom)*float64(moment.Sub(begun))/float64(all))
	}
	for i, a := range attempts {
		first := a.FirstAt
		if first.IsZero() {
			first = a.BegunAt
		}
		top := int64(i) * barHeight
		bars = append(bars, bar{
			N: a.N, Top: top + 4, Text: top + 14, From: at(a.BegunAt), Wait: at(first) - at(a.BegunAt), Answer: at(first), Write: max(1, at(a.EndedAt)-at(first)),
			Failed: a.Error != "",
		})
	}
	return bars
}

func run(s *operator.Service, r request) (string, any, error) {
	one, err := s.Run(r.Context(), r.by, r.PathValue("id"))
	if err != nil {
		return "", nil, err
	}
	bars := barsOf(one.Attempts)
	return "Run of " + one.Agent, struct {
		Run    operator.Run
		Bars   []bar
		Height int
		May    bool
	}{one, bars, barHeight * max(1, len(bars)), r.isOperator()}, nil
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
