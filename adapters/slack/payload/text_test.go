package payload

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestDecode(t *testing.T) {
	for _, tt := range []struct{ encoded, want string }{
		{"", ""},
		{"  kept \n as typed\t ", "  kept \n as typed\t "},
		{"1 &lt; 2 &amp;&amp; 3 &gt; 2", "1 < 2 && 3 > 2"},
		{"&amp;lt; was typed as an entity, &quot; and &#39; too", "&lt; was typed as an entity, &quot; and &#39; too"},

		{"<https://a.example/?x=1&amp;y=2>", "https://a.example/?x=1&y=2"},
		{"<http://a.example|a.example>", "a.example"},
		{"<http://A.example/|a.EXAMPLE>", "a.EXAMPLE"},
		{"<http://a.example|a.example/>", "a.example/"},
		{"<https://a.example/x|https://a.example/x>", "https://a.example/x"},
		{"<https://a.example/?x=1&amp;y=2|a.example/?x=1&amp;y=2>", "a.example/?x=1&y=2"},
		{"<mailto:m@a.example|m@a.example>", "m@a.example"},
		{"<tel:+15550100|+1 555-0100>", "+1 555-0100"},
		{"<https://a.example|the site>", "[the site](https://a.example)"},
		{"<https://a.example|b.example>", "[b.example](https://a.example)"},
		{"<https://a.example|>", "https://a.example"},

		{"<!date^1750000000^{date} at {time}|15 June>", "15 June"},
		{"<!date^1750000000^{date}^https://a.example|15 &lt; 16>", "15 < 16"},
		{"<!date^1750000000^{date}>", "<!date^1750000000^{date}>"},

		{"<@U1> <@W2|mara> <#C1|> <#C2|garden>", "<@U1> <@W2|mara> <#C1|> <#C2|garden>"},
		{"<!here> <!channel> <!everyone> <!subteam^S1|@all>", "<!here> <!channel> <!everyone> <!subteam^S1|@all>"},
		{"&lt;@U1&gt;", "<@U1>"},

		{"a < b", "a < b"},
		{"<", "<"},
		{"<<https://a.example>>", "<https://a.example>"},
		{"nul\x00", "nul\uFFFD"},
	} {
		if got := decode(tt.encoded); got != tt.want {
			t.Errorf("decode(%q) = %q, want %q", tt.encoded, got, tt.want)
		}
	}
}

// encode encodes plain text as Slack does.
func encode(typed string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(typed)
}

func TestDecodeRestoresTypedText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typed := rapid.StringOf(rapid.OneOf(
			rapid.SampledFrom([]rune("<>&;@#!|^ltgamp U1")),
			rapid.Rune().Filter(func(r rune) bool { return r != 0 }),
		)).Draw(t, "typed")
		if got := decode(encode(typed)); got != typed {
			t.Errorf("got %q, want %q", got, typed)
		}
	})
}

func TestMentions(t *testing.T) {
	for _, tt := range []struct {
		encoded string
		want    bool
	}{
		{"<@U1>", true},
		{"hey <@U1>, look", true},
		{"<@U1|parley>", true},
		{"<@U12> and <@U1>", true},
		{"<@U12>", false},
		{"&lt;@U1&gt;", false},
		{"@U1", false},
		{"<@U1", false},
		{"<#U1>", false},
		{"", false},
	} {
		if got := mentions(tt.encoded, "U1"); got != tt.want {
			t.Errorf("mentions(%q) = %t, want %t", tt.encoded, got, tt.want)
		}
	}
	if mentions("<@>", "") {
		t.Error("an unknown user is mentioned")
	}
}

func TestTypedTextIsNoMention(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typed := rapid.StringOf(rapid.SampledFrom([]rune("<@U1>|& "))).Draw(t, "typed")
		if mentions(encode(typed), "U1") {
			t.Errorf("the typed text %q mentions a user", typed)
		}
	})
}
