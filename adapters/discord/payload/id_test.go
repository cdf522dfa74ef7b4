package payload

import "testing"

func TestMessageOf(t *testing.T) {
	const id = "1267190211223752704"
	for ref, channel := range map[string]string{
		id: "",
		"https://discord.com/channels/41771983423143937/127121515262115840/" + id: "127121515262115840",
		"https://ptb.discord.com/channels/@me/127121515262115840/" + id:           "127121515262115840",
	} {
		if m, ok := MessageOf(ref); !ok || m.ID != id || m.Channel != channel || m.SentAt.Year() != 2024 {
			t.Errorf("MessageOf(%q) = %+v, %t", ref, m, ok)
		}
	}
	for _, ref := range []string{"", "12", "abc", "https://discord.com/channels/1/2", "https://example.com/channels/1/2/" + id, "https://discord.com/channels/1/2/3"} {
		if m, ok := MessageOf(ref); ok {
			t.Errorf("MessageOf(%q) = %+v", ref, m)
		}
	}
}
