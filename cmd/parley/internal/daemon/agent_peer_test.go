package daemon_test

import (
	"encoding/base64"
	"testing"
)

// TestDaemonServesAnAgentOfAnother has a daemon whose agent is another daemon's run API.
func TestDaemonServesAnAgentOfAnother(t *testing.T) {
	t.Parallel()
	everyStore(t, func(t *testing.T, server *harness) {
		h := open(t, plan{files: map[string]string{"parley.yaml": "listen: 127.0.0.1:0\nshutdown: 30s\n" +
			"agents: [{id: helper, kind: run-api, base_url: " + server.url + ", token: " + ownToken + "}, {id: echo, kind: echo}]\n"}})
		h.postWeb("what is it?", `"attachments":[{"name":"cat.png","mime_type":"image/png","data":"`+base64.StdEncoding.EncodeToString([]byte(catPNG))+`"}]`)
		asked := server.answerNext(replyWith("A cat."))
		if last := asked.messages[len(asked.messages)-1].Content; asked.images() != 1 {
			t.Errorf("%d images: %s", asked.images(), last)
		}
		h.awaitReply("A cat.")
		h.postWeb("sure?")
		server.answerNext(replyWith("Yes."))
		h.awaitReply("Yes.")
	})
}
