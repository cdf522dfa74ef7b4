package journal

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRetentionFaults also proves that keys must outlive their envelopes, so that a
// stored payload is always recognised.
func TestRetentionFaults(t *testing.T) {
	for name, c := range map[string]struct {
		change func(c *Retention)
		want   []string
	}{
		"the defaults": {func(c *Retention) {}, nil},
		"nothing":      {func(c *Retention) { *c = Retention{} }, []string{"envelopes", "runs", "run_events"}},
		"keys that expire before their envelopes": {func(c *Retention) { c.Keys = c.Envelopes - 1 }, []string{"keys"}},
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
