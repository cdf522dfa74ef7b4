package console

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"parley/cmd/parley/internal/operator"
	"parley/ingest/journal/usage"
)

// usePage is the data of the page about use.
type usePage struct {
	By, Since, Workspace    string
	Bys, Sinces, Workspaces []string
	Sum                     operator.Used
	Bars                    []useBar // the earliest day first, in a picture of len(Bars) by sparkHeight
	First, Last             string   // their days
	Of                      string   // the unit of the bars: tokens, or questions without any tokens
	Items                   []useRow
	Next                    neighbours
}

// useBar is the bar of a day.
type useBar struct {
	bar
	Words string
}

// useRow is a row with its part of the largest one, in percent.
type useRow struct {
	operator.Used
	Part float64
}

// mostDays bounds the bars. The sums of earlier days have left the store.
const mostDays = 400

// use shows what agents have done and used.
func use(s *operator.Service, r request) (string, any, error) {
	const title = "Use"
	v := usePage{By: r.query("by"), Since: r.query("since"), Workspace: r.query("workspace"), Bys: []string{"agent", "day", "workspace"}, Sinces: []string{"7d", "30d", "90d", "365d"}}
	if r.by.ReadsAll() {
		v.Bys = operator.UsageBys()
	}
	for _, w := range s.Config().Workspaces {
		v.Workspaces = append(v.Workspaces, w.ID)
	}
	q, err := s.UsageQuery(v.By, v.Since, v.Workspace)
	if err != nil {
		return title, nil, err
	}
	if v.By = string(q.By); !slices.Contains(v.Sinces, v.Since) && v.Since != "" {
		v.Sinces = append(v.Sinces, v.Since)
	}
	list, err := s.Usage(r.Context(), r.by, q, r.page())
	if err != nil {
		return title, nil, err
	}
	q.By = usage.ByDay
	days, err := s.Usage(r.Context(), r.by, q, operator.Page{Limit: mostDays})
	v.draw(days.Items, q.Since, s.Now())
	most := int64(0)
	for _, u := range list.Items {
		most = max(most, v.amount(&u))
	}
	for _, u := range list.Items {
		v.Items = append(v.Items, useRow{u, 100 * float64(v.amount(&u)) / float64(max(1, most))})
	}
	v.Next = r.beside(list.Next)
	return title, v, err
}

// draw sums the days and makes their bars, from the day of a time to that of another one.
func (v *usePage) draw(days []operator.Used, from, to time.Time) {
	byDay := map[string]operator.Used{}
	for _, u := range days {
		byDay[u.Key] = u
		v.Sum.Questions += u.Questions
		v.Sum.Answers += u.Answers
		v.Sum.Failures += u.Failures
		v.Sum.Minutes += u.Minutes
		if u.TokensIn == nil {
			continue
		}
		if v.Sum.TokensIn == nil {
			v.Sum.TokensIn, v.Sum.TokensOut = new(int64), new(int64)
		}
		*v.Sum.TokensIn += *u.TokensIn
		*v.Sum.TokensOut += *u.TokensOut
	}
	v.Of = "questions"
	if v.Sum.TokensIn != nil {
		v.Of = "tokens"
	}
	// A day in the east or in the west of us may be another one.
	v.First, v.Last = from.UTC().Format(time.DateOnly), to.UTC().Format(time.DateOnly)
	for day := range byDay {
		v.First, v.Last = min(v.First, day), max(v.Last, day)
	}
	last, _ := time.Parse(time.DateOnly, v.Last) // a date
	v.First = max(v.First, last.AddDate(0, 0, 1-mostDays).Format(time.DateOnly))
	most := int64(1)
	for _, u := range byDay {
		most = max(most, v.amount(&u))
	}
	first, _ := time.Parse(time.DateOnly, v.First) // a date
	for i := range mostDays {
		day := first.AddDate(0, 0, i).Format(time.DateOnly)
		if day > v.Last {
			break
		}
		u := byDay[day]
		high := float64(sparkHeight) * float64(v.amount(&u)) / float64(most)
		if v.amount(&u) > 0 {
			high = max(0.5, high)
		}
		v.Bars = append(v.Bars, useBar{bar{X: float64(i), Y: sparkHeight - high, Width: 0.8, Height: high}, fmt.Sprintf("%s: %s %s", day, humanize.Comma(v.amount(&u)), v.Of)})
	}
}

// amount returns what the bar of a row shows.
func (v *usePage) amount(u *operator.Used) int64 {
	if v.Of == "tokens" {
		return u.Tokens()
	}
	return u.Questions
}

// Head returns the header of the first column.
func (v usePage) Head() string { return strings.ToUpper(v.By[:1]) + v.By[1:] }

// tokens returns a number of tokens in words; a dash if no agent has reported it.
func tokens(n *int64) string {
	if n == nil {
		return "–"
	}
	return humanize.Comma(*n)
}
