package console

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

const shownPage = `<h1 id="t">Runs</h1><p id="sum" data-live>2 <b>runs</b><br></p>
<table><tbody id="rows" data-list><tr id="r2" data-live><td>two &lt;b&gt;</td></tr><tr id="r1" data-live><td>one</td></tr></tbody></table>`

func TestFragmentsKeepTheirPlaces(t *testing.T) {
	want := []fragment{
		{ID: "sum", HTML: `<p id="sum" data-live>2 <b>runs</b><br></p>`},
		{ID: "r2", HTML: `<tr id="r2" data-live><td>two &lt;b&gt;</td></tr>`, List: "rows"},
		{ID: "r1", HTML: `<tr id="r1" data-live><td>one</td></tr>`, List: "rows", After: "r2"},
	}
	if diff := cmp.Diff(want, fragmentsOf([]byte(shownPage))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestChangesAreTheDifference(t *testing.T) {
	a, b, b2, c := fragment{ID: "a", HTML: "1"}, fragment{ID: "b", HTML: "1"}, fragment{ID: "b", HTML: "2"}, fragment{ID: "c", HTML: "1", After: "a"}
	for name, row := range map[string]struct{ before, now, want []fragment }{
		"nothing":     {[]fragment{a, b}, []fragment{a, b}, nil},
		"other words": {[]fragment{a, b}, []fragment{a, b2}, []fragment{b2}},
		"a new one":   {[]fragment{a, b}, []fragment{a, c, b}, []fragment{c}},
		"one is gone": {[]fragment{a, b}, []fragment{b}, []fragment{{ID: "a"}}},
	} {
		if diff := cmp.Diff(row.want, changes(row.before, row.now)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
