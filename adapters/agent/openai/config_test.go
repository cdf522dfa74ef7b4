package openai

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestConfigFaults checks the keys of the faults. Package config checks their texts.
func TestConfigFaults(t *testing.T) {
	for name, c := range map[string]struct {
		change func(c *Config)
		want   []string
	}{
		"the defaults with a model": {func(c *Config) {}, nil},
		"nothing":                   {func(c *Config) { *c = Config{} }, []string{"base_url", "model", "max_image_bytes", "messages", "timeout", "first_byte", "max_bytes", "max_concurrent", "answer_within", "thinking", "images", "max_file_bytes", "client_tools"}},
		"a key in the address":      {func(c *Config) { c.BaseURL = "https://api.example.org/v1?key=1" }, []string{"base_url"}},
	} {
		settings := DefaultConfig()
		settings.Model = "llama3.2"
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
