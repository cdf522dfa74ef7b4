package console_test

import (
	"io"
	"strings"
	"testing"
)

// TestPagesLinkToTraces checks that the pages of a run and of a message lead to its trace, and that no link leaves the attribute.
func TestPagesLinkToTraces(t *testing.T) {
	s := filled(t, goldenTime)
	s.config.Tracing.OTLP, s.config.Tracing.Link = "http://127.0.0.1:4318", `https://jaeger.example.com/trace/{trace}?"><script>`
	client := s.browser(t, viewerToken+"-long-enough")
	for _, path := range []string{"/runs/" + doneRun, "/why?ref=" + doneRun} {
		response, err := client.Do(s.get(path))
		if err != nil {
			t.Fatal(err)
		}
		page, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || !strings.Contains(string(page), `href="https://jaeger.example.com/trace/0190a1b2`) || strings.Contains(string(page), `{trace}?"><script>`) {
			t.Errorf("%s: %v\n%s", path, err, page)
		}
	}
}
