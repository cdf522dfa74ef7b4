package attach

import (
	"time"

	"parley/ingest/event"
)

// Config says where copies are kept. Start from DefaultConfig.
type Config struct {
	// Dir is the folder of the copies; it is made when the first one comes.
	Dir string `yaml:"dir"`
	// MaxBytes is the size in bytes above which a file is not copied.
	MaxBytes int64 `yaml:"max_bytes"`
	// TTL is how long a link to a copy is good for.
	TTL time.Duration `yaml:"ttl"`
}

// DefaultConfig is what holds where the configuration says nothing.
func DefaultConfig() Config {
	return Config{Dir: "data/attachments", MaxBytes: 20 << 20, TTL: time.Hour}
}

// Validate returns every fault, by key, without any value.
func (c Config) Validate() event.FieldErrors {
	var faults event.FieldErrors
	check := func(ok bool, field, words string) {
		if !ok {
			faults = append(faults, event.FieldError{Field: field, Message: words})
		}
	}
	check(c.Dir != "", "dir", "must be a folder")
	check(c.MaxBytes > 0, "max_bytes", "must be more than 0")
	check(c.TTL > 0, "ttl", "must be more than 0s")
	return faults
}
