package journal

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRetentionFaults holds that a payload is known again for as long as it is kept.
func TestRetentionFaults(t *testing.T) {
	for name, c := range map[string]struct {
		change func(c *Retention)
		want   []string
	}{
		"the defaults":                        {func(c *Retention) {}, nil},
		"nothing":                             {func(c *Retention) { *c = Retention{} }, []string{"envelopes", "runs", "run_events"}},
		"keys that go before their envelopes": {func(c *Retention) { c.Keys = c.Envelopes - 1 }, []string{"keys"}},
	} {
		settings := DefaultRetention()
		c.change(&settings)
		var got []string
		for _, fault := range settings.Validate() {
			got = append(got, fault.Field)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
