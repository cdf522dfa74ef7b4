package payload

import "testing"

func TestMessageOf(t *testing.T) {
	const id = "C06RY3YBSLE/1700000000.000100"
	for ref, want := range map[string]string{
		id: id,
		"https://acme.slack.com/archives/C06RY3YBSLE/p1700000000000100":                                                        id,
		"https://acme.enterprise.slack.com/archives/C06RY3YBSLE/p1700000000000100?thread_ts=1699999999.000100&cid=C06RY3YBSLE": id,
		"http://127.0.0.1:9998/archives/C06RY3YBSLE/p1700000000000100":                                                         id,
		"https://acme.slack.com/archives/C06RY3YBSLE":                                                                          "",
		"https://acme.slack.com/archives/C06RY3YBSLE/1700000000000100":                                                         "",
		"https://example.com/archives/C06RY3YBSLE/p1700000000000100":                                                           "",
		"general/1700000000.000100":                                                                                            "", "1700000000.000100": "", "p1": "", "": "",
	} {
		m, ok := MessageOf(ref)
		if m.ID != want || ok != (want != "") || ok && (m.Channel != "C06RY3YBSLE" || m.SentAt.Unix() != 1700000000) {
			t.Errorf("MessageOf(%q) = %+v, %t", ref, m, ok)
		}
	}
}
