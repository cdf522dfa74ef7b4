package main

import (
	"context"
	"net/http"
	"net/url"
	"testing"
	"time"

	"parley/adapters/slack/slacktest"
)

func TestATalkOwesWhatNobodyHeard(t *testing.T) {
	api := startTestAPI(t)
	talk := &talk{api: api, ledger: newLedger(echoed)}
	c := room(0, 3)
	early := talk.put(c, "1700000000.000100")
	said, deliveries := talk.say(c, false)
	talk.await(t.Context(), said, deliveries)
	if talk.unread != 1 || talk.ledger.owed() != 1 || api.Missed() != 2 { // the message and the mention
		t.Errorf("%d unread, %d owed, %d missed", talk.unread, talk.ledger.owed(), api.Missed())
	}
	talk.edit(said)
	thread := api.Thread(c.place.channel, early.ts)
	if len(thread) != 2 || thread[1].TS != said.ts || thread[1].Text != said.text(1) || said.place != c.place || c.place.root != early.ts {
		t.Errorf("%+v", thread)
	}
}

func TestATalkGivesUpWithItsContext(t *testing.T) {
	api := startTestAPI(t)
	api.SetHook(slacktest.Hook{URL: "http://127.0.0.1:1/"})
	talk := &talk{api: api, ledger: newLedger(echoed)}
	ctx, cancel := context.WithCancel(t.Context())
	said, deliveries := talk.say(room(3, 1), true)
	cancel()
	talk.await(ctx, said, deliveries)
	if said.unaddressed || talk.unread != 0 || talk.ledger.owed() != 1 {
		t.Errorf("%+v, %d unread", said, talk.unread)
	}
}

func TestAnAnswersTimeIsThatOfItsFirstPost(t *testing.T) {
	s := newStory(echoed)
	s.reply(1, 0, at(2))
	s.reply(2, 0, at(3))
	s.reply(2, 0, at(5))
	if got := s.answered(s.posts, 2); len(got) != 1 || got[0] != 3*time.Second {
		t.Errorf("%v", got)
	}
}

func TestTheDarknessIsTheTimeWithoutASocket(t *testing.T) {
	api, stop := startTestAPI(t), make(chan struct{})
	close(stop)
	if d := watchSockets(api, stop); d.times != 1 || d.sum == 0 || d.sum != d.longest {
		t.Errorf("%v", d)
	}
}

func TestNothingFailsWhereNothingWasCut(t *testing.T) {
	api := startTestAPI(t)
	for _, way := range disconnects() {
		if n := way.do(api); n != 0 {
			t.Errorf("%s took %d", way.name, n)
		}
	}
	response, err := http.PostForm(api.URL()+opening, url.Values{"token": {slacktest.AppToken}})
	if err != nil {
		t.Fatal(err)
	}
	if response.Body.Close(); response.StatusCode != http.StatusOK {
		t.Errorf("status %d", response.StatusCode)
	}
}
