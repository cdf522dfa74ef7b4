package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/adapters/slack/slacktest"
)

// postsAt returns posts at these seconds.
func postsAt(seconds ...float64) (posts []slacktest.Post) {
	for _, s := range seconds {
		posts = append(posts, slacktest.Post{At: at(s)})
	}
	return posts
}

// steadyPosts returns n posts, one every so many seconds.
func steadyPosts(n int, every float64) (posts []slacktest.Post) {
	for i := range n {
		posts = append(posts, postsAt(float64(i)*every)...)
	}
	return posts
}

func TestMeasurePace(t *testing.T) {
	for name, c := range map[string]struct {
		posts []slacktest.Post
		want  paceFigures
	}{
		"none":                      {nil, paceFigures{}},
		"one":                       {postsAt(5), paceFigures{posts: 1, most: 1}},
		"a window is half open":     {steadyPosts(41, 1), paceFigures{posts: 41, took: 40 * time.Second, smallest: time.Second, most: 20}},
		"the busiest window":        {postsAt(0, 25, 26, 26.5, 44.5, 46), paceFigures{posts: 6, took: 46 * time.Second, smallest: 500 * time.Millisecond, most: 4}},
		"the first gap is smallest": {postsAt(0, 0.25, 9), paceFigures{posts: 3, took: 9 * time.Second, smallest: 250 * time.Millisecond, most: 3}},
		"the end of the window":     {postsAt(0, 20), paceFigures{posts: 2, took: 20 * time.Second, smallest: 20 * time.Second, most: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, measurePace(c.posts, 0), cmp.AllowUnexported(paceFigures{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPaceFaults(t *testing.T) {
	if f := measurePace(steadyPosts(60, 0.96), 0); len(f.faults()) != 0 {
		t.Errorf("%v: %v", f, f.faults())
	}
	if f := measurePace(steadyPosts(60, 0.9), 0); len(f.faults()) != 1 {
		t.Errorf("%v: %v", f, f.faults())
	}
	if f := measurePace(steadyPosts(60, 1), 1); len(f.faults()) != 1 {
		t.Errorf("%v: %v", f, f.faults())
	}
}

func TestPaceLimitRefusesPostsThatComeTooSoon(t *testing.T) {
	r := &paceLimit{gap: 900 * time.Millisecond, last: map[string]time.Time{}}
	for _, step := range []struct {
		channel  string
		at       float64
		accepted bool
	}{
		{"C1", 0, true}, {"C2", 0.1, true}, {"C1", 0.8, false},
		{"C1", 0.9, true}, // counted from the last accepted post
		{"C2", 0.95, false}, {"C1", 1.7, false}, {"C2", 1.1, true},
	} {
		if got := r.accept(step.channel, at(step.at)); got != step.accepted {
			t.Errorf("%s at %v s: accepted %v", step.channel, step.at, got)
		}
	}
	if r.refused != 3 {
		t.Errorf("%d posts were refused, want 3", r.refused)
	}
}

func TestPaceLimitRefusesOnlyPosts(t *testing.T) {
	r := &paceLimit{gap: time.Hour, last: map[string]time.Time{}}
	for want, method := range []string{"auth.test", "chat.postMessage", "chat.postMessage", "users.info"} {
		fault := r.plan(slacktest.Call{Method: method, Form: map[string][]string{"channel": {"C1"}}})
		if refused := fault.Status != 0; refused != (want == 2) || refused && fault.RetryAfter != "1" {
			t.Errorf("%s, call %d: %+v", method, want, fault)
		}
	}
}
