package markdown_test

import (
	"strings"
	"testing"

	"parley/adapters/markdown"
)

func TestMention(t *testing.T) {
	people := markdown.NewPeople([]markdown.Person{{"<@U1>", "Mara"}, {"<@U2>", "Mara Lind"}, {"<@U5>", "Zoë"}})
	for text, want := range map[string]string{
		"@Mara, see":                        "<@U1>, see",
		"ask @mara lind now":                "ask <@U2> now",
		"@MARA LINDEN":                      "<@U1> LINDEN",
		"@Marain and a@Mara.example":        "@Marain and a@Mara.example",
		"(@Zoë) **@mara** _@Mara_":          "(<@U5>) **<@U1>** _<@U1>_",
		"@Mara's":                           "<@U1>'s",
		"`@Mara` and @Mara":                 "`@Mara` and <@U1>",
		"``a ` @Mara`` @Mara":               "``a ` @Mara`` <@U1>",
		"a ` is a tick\n\n@Mara":            "a ` is a tick\n\n<@U1>",
		"a ` is a tick, @Mara":              "a ` is a tick, <@U1>",
		"```\n@Mara\n```\n@Mara":            "```\n@Mara\n```\n<@U1>",
		"> ~~~ sh\n> @Mara\n> ~~~\n> @Mara": "> ~~~ sh\n> @Mara\n> ~~~\n> <@U1>",
		"````\n```\n@Mara\n````":            "````\n```\n@Mara\n````",
		`\@Mara <@Mara> https://x.y/@Mara`:  `\@Mara <@Mara> https://x.y/@Mara`,
		"@everyone @here <!here>":           "@everyone @here <!here>",
		"<@U1> stays":                       "<@U1> stays",
	} {
		got, held := people.Mention(text, true)
		if got != want || held != "" {
			t.Errorf("%q: %q and %q, want %q", text, got, held, want)
		}
		if again, _ := people.Mention(got, true); again != got {
			t.Errorf("%q changes again: %q", got, again)
		}
		for cut := range text { // a preview never takes back what it has shown
			shown, held := people.Mention(text[:cut], false)
			if !strings.HasPrefix(want, shown) || !strings.HasSuffix(text[:cut], held) {
				t.Errorf("%q shows %q, which is no beginning of %q; held %q", text[:cut], shown, want, held)
			}
		}
	}
}
