package live_test

import (
	"bytes"
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/adapters"
	"parley/adapters/guard"
	"parley/adapters/slack/internal/testapp"
	"parley/adapters/slack/slacktest"
	"parley/ingest/event"
)

// withheldNotice is Slack's notice that it withholds events in a minute.
var withheldNotice = []byte(`{"token":"x","type":"app_rate_limited","team_id":"T1","minute_rate_limited":1700000000,"api_app_id":"A1"}`)

// TestWithheldEventsAreAGap lets Slack withhold events in two minutes. A gap is reported when
// both are over, too.
func TestWithheldEventsAreAGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := runAdapter(t, slacktest.Options{}, 1, testapp.FastTimes, &memoryInbox{})
		p.up()
		for range 2 {
			if result := p.resultOf(p.server.PushRaw(slacktest.EventsAPI, withheldNotice)); result.State != slacktest.Acked {
				t.Errorf("%+v", result)
			}
			<-time.After(time.Minute)
		}
		last := time.Now() // a minute after the second notice
		for range 2 {
			if channel := <-p.Missed; channel != "" {
				t.Errorf("only %s has a gap", channel)
			}
		}
		if time.Since(last) <= 0 {
			t.Error("the last gap was reported too early")
		}
	})
}

// TestWithheldEventsAreNoSignOfASocket: without a socket, no events can arrive.
func TestWithheldEventsAreNoSignOfASocket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		times := testapp.FastTimes
		times.BackoffMin, times.BackoffMax = time.Second, 10*time.Second
		var down atomic.Bool
		p := runAdapter(t, slacktest.Options{Plan: func(c slacktest.Call) slacktest.Fault {
			if down.Load() && c.Method == "apps.connections.open" {
				return slacktest.Fault{Status: http.StatusServiceUnavailable}
			}
			return slacktest.Fault{}
		}}, 1, times, &memoryInbox{})
		p.up()
		p.resultOf(p.server.PushRaw(slacktest.EventsAPI, withheldNotice))
		down.Store(true)
		p.server.Cut(slacktest.All)
		<-time.After(3 * time.Minute)
		if len(p.Ups) != 0 {
			t.Error("reported as up without a socket")
		}
		down.Store(false)
		p.up()
	})
}

func TestWithheldEventsOfAHookAreAGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := testapp.StartMemory(t, slacktest.Options{})
		adapter := testapp.New(server.URL())
		adapter.Client.Transport.DialContext = server.Listener.Dial
		adapter.Client.Now = func() time.Time { return testapp.Noon }
		ours := testapp.NewListener()
		hook := &http.Server{Handler: adapter.Handler(&memoryInbox{}, guard.New(func(string) {}))}
		go func() { _ = hook.Serve(ours) }()
		defer hook.Close()
		slackSide := &http.Client{Transport: &http.Transport{DialContext: ours.Dial, DisableKeepAlives: true}}
		ctx, cancel := context.WithTimeout(t.Context(), testapp.WaitLimit)
		defer cancel()
		var up time.Time
		var gaps []time.Duration // since up
		missed := func(channel string, since time.Time) {
			gaps = append(gaps, time.Since(up))
			if channel != "" || !since.Equal(testapp.Noon) { // the adapter's start
				t.Errorf("channel %q since %v", channel, since)
			}
		}
		_ = adapter.Run(ctx, nil, adapters.Link{Missed: missed, Wants: testapp.NoWants, Up: func(event.Self) {
			up = time.Now()
			for _, body := range [][]byte{withheldNotice, []byte(helloEvent), bytes.ReplaceAll([]byte(helloEvent), []byte("hi"), []byte("app_rate_limited"))} {
				request, err := slacktest.NewRequest(ctx, "http://parley/", testapp.Secret, testapp.Noon, body)
				if err != nil {
					t.Fatal(err)
				}
				answer, err := slackSide.Do(request)
				if err != nil || answer.StatusCode != http.StatusOK {
					t.Fatalf("%v, %v", answer, err)
				}
				_ = answer.Body.Close()
			}
		}})
		if len(gaps) != 1 || gaps[0] < time.Minute {
			t.Errorf("reported after %v", gaps)
		}
	})
}
