package emoji_test

import (
	"testing"

	"parley/adapters/emoji"
)

// TestNamesAndPictures checks each direction, with colons, and without the variant selector.
func TestNamesAndPictures(t *testing.T) {
	for given, want := range map[string][2]string{
		"👍": {"+1", "👍"}, "+1": {"+1", "👍"}, ":thumbsup:": {"+1", "👍"}, "❤": {"heart", "❤️"}, "❤️": {"heart", "❤️"}, ":heart:": {"heart", "❤️"},
		"party_parrot": {"party_parrot", ""}, "🦦": {"otter", "🦦"}, "1️⃣": {"one", "1️⃣"}, "": {}, "a word": {}, ":": {":", ""}, "ä": {},
		"🫠": {"melting_face", "🫠"}, "☺": {"relaxed", "☺️"}, "ℹ️": {"information_source", "ℹ️"}, "🇩🇪": {"de", "🇩🇪"}, ":flag-de:": {"de", "🇩🇪"},
		"🏳️‍🌈": {"rainbow-flag", "🏳️‍🌈"}, "#️⃣": {"hash", "#️⃣"}, "🩷": {"pink_heart", "🩷"}, "🐦‍🔥": {"phoenix", "🐦‍🔥"},
		"👍🏽": {"+1::skin-tone-4", "👍🏽"}, "+1::skin-tone-4": {"+1::skin-tone-4", "👍🏽"}, ":thumbsup::skin-tone-6:": {"+1::skin-tone-6", "👍🏿"},
		"👩🏽‍💻": {"female-technologist::skin-tone-4", "👩🏽‍💻"}, "woman_technologist::skin-tone-4": {"female-technologist::skin-tone-4", "👩🏽‍💻"},
		"☝🏻": {"point_up::skin-tone-2", "☝🏻"}, "🏽": {"skin-tone-4", "🏽"}, "👍👍": {"", ""}, "🦦🦦": {"", ""}, "frowning": {"frowning", "😦"},
	} {
		var got [2]string
		if name, ok := emoji.Name(given); ok {
			got[0] = name
		}
		if picture, ok := emoji.Picture(given); ok {
			got[1] = picture
		}
		if got != want {
			t.Errorf("%q: %q, want %q", given, got, want)
		}
	}
}
