package doctor

import (
	"context"

	"parley/cmd/parley/internal/traces"
)

// traces asks the collector of traces whether it takes spans; nothing without one.
func (v *visit) traces(ctx context.Context) []Check {
	settings, on := v.config.Traces()
	if !on {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	if err := traces.Ask(ctx, settings); err != nil {
		return []Check{v.at("traces", Warning, "", "tracing.otlp", "the collector does not take spans: "+err.Error())}
	}
	return []Check{v.at("traces", OK, "", "tracing.otlp", "the collector takes spans")}
}
