package commands

import (
	"os"
	"regexp"
	"testing"
)

// TestUsageCommand lists what the runs of a daemon have used, while it runs and after its end.
func TestUsageCommand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	serveOperators(t, dir)
	p := start(t, dir, os.Args[0], "run")
	ours := conversation{t, p.address()}
	ours.say("hi")
	ours.await("hi", "hi")
	check := func(when string) {
		t.Helper()
		for _, c := range []struct {
			args   []string
			status int
			want   string // of the output, a pattern
		}{
			{[]string{"usage"}, 0, `AGENT  QUESTIONS  ANSWERS  FAILED  MINUTES  TOKENS IN  TOKENS OUT\necho   1          1        0       0\.0      -          -\n`},
			{[]string{"usage", "--by", "person", "--workspace", "ours"}, 0, `PERSON +NAME +QUESTIONS [^\n]*\nweb:a +[^\n]* 1 +1 +0 [^\n]*\n`},
			{[]string{"usage", "--by", "channel"}, 0, `CHANNEL +WORKSPACE [^\n]*\n- +ours +1 [^\n]*\n`},
			{[]string{"usage", "--by", "day", "--json"}, 0, `\{"key":"[0-9-]{10}","questions":1,"answers":1,"failures":0,"minutes":[0-9.]+,"tokens_in":null,"tokens_out":null\}\n`},
			{[]string{"usage", "--workspace", "none"}, 2, ``},
			{[]string{"usage", "--by", "mood"}, 2, ``},
			{[]string{"usage", "--since", "never"}, 2, ``},
		} {
			got := parley(t, dir, c.args...)
			if got.status != c.status || !regexp.MustCompile(`^`+c.want+`$`).MatchString(got.stdout) {
				t.Errorf("%s: %s: %d\n%s%s", when, c.args, got.status, got.stdout, got.stderr)
			}
		}
	}
	check("with a daemon")
	p.signal(os.Interrupt)
	p.end()
	check("without one")
}
