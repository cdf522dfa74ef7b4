package config_test

import (
	"strings"
	"testing"

	"parley/config"
)

// TestTracesOfTheEnvironment checks that the standard variables turn traces on and off, and that a key of the file wins.
func TestTracesOfTheEnvironment(t *testing.T) {
	type want struct {
		on     bool
		url    string
		sample float64
		header string
	}
	for name, test := range map[string]struct {
		file string
		env  map[string]string
		want want
	}{
		"nothing":      {want: want{sample: 1}},
		"the endpoint": {env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a:4318/"}, want: want{on: true, url: "http://a:4318/v1/traces", sample: 1}},
		"its own endpoint": {
			env:  map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a:4318", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://b/x"},
			want: want{on: true, url: "http://b/x", sample: 1},
		},
		"a key wins": {
			file: "tracing: {otlp: 'http://c/otel/', sample: 0.5, headers: {x-key: file}}",
			env: map[string]string{
				"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a:4318", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://b/x", "OTEL_EXPORTER_OTLP_HEADERS": "x-key=env",
				"OTEL_TRACES_SAMPLER": "always_off", "OTEL_TRACES_EXPORTER": "none",
			},
			want: want{on: true, url: "http://c/otel/v1/traces", sample: 0.5, header: "file"},
		},
		"the rest of the environment": {
			file: "tracing: {otlp: 'http://c'}",
			env:  map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "x-key=a%20b, y=z", "OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.25"},
			want: want{on: true, url: "http://c/v1/traces", sample: 0.25, header: "a b"},
		},
		"an endpoint for gRPC":         {env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "localhost:4317"}, want: want{url: "localhost:4317/v1/traces", sample: 1}},
		"an endpoint with credentials": {env: map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://me:x@b"}, want: want{url: "http://me:x@b", sample: 1}},
		"disabled":                     {file: "tracing: {otlp: 'http://c'}", env: map[string]string{"OTEL_SDK_DISABLED": "true"}, want: want{}},
		"no exporter": {
			env:  map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a:4318", "OTEL_TRACES_EXPORTER": "none"},
			want: want{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, variable := range []string{
				"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
				"OTEL_TRACES_SAMPLER", "OTEL_TRACES_SAMPLER_ARG", "OTEL_TRACES_EXPORTER", "OTEL_SDK_DISABLED",
			} {
				t.Setenv(variable, test.env[variable])
			}
			write(t, map[string]string{"parley.yaml": test.file + "\n", "workspaces/w.yaml": webWorkspace})
			c, err := config.Load("")
			if err != nil {
				t.Fatal(err)
			}
			traces, on := c.Traces()
			if got := (want{on, traces.URL, traces.Sample, traces.Headers["x-key"].Reveal()}); got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

// TestWarningsOfTracing checks that a variable that Parley cannot use is named, without its value, which may be a secret.
func TestWarningsOfTracing(t *testing.T) {
	const canary = "canary-8d1f"
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "")
	for variable, value := range map[string]string{
		"": "", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://me:" + canary + "@h", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": canary + ":4318",
		"OTEL_EXPORTER_OTLP_HEADERS": "a=b, Authorization: Bearer " + canary, "OTEL_EXPORTER_OTLP_CLIENT_KEY": "/" + canary, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
	} {
		t.Run(variable, func(t *testing.T) {
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318")
			if variable != "" {
				t.Setenv(variable, value)
			}
			write(t, map[string]string{"parley.yaml": "metrics: {token: a-token-of-metrics-for-tests}\n", "workspaces/w.yaml": webWorkspace})
			c, err := config.Load("")
			if err != nil {
				t.Fatal(err)
			}
			warnings := c.Warnings.Error()
			if strings.Contains(warnings, canary) || !strings.Contains(warnings, variable) || variable == "" && strings.Contains(warnings, "OTEL") {
				t.Errorf("%s", warnings)
			}
		})
	}
}

// TestTracingLinks checks the addresses of pages of traces.
func TestTracingLinks(t *testing.T) {
	for link, ok := range map[string]bool{
		"https://jaeger.example.com/trace/{trace}": true, "http://127.0.0.1:3000/?a={trace}#x": true,
		"https://jaeger.example.com/trace": false, "javascript:alert({trace})": false, "https://me:secret@h/{trace}": false, "//h/{trace}": false, "https://{trace}": false,
	} {
		write(t, map[string]string{"parley.yaml": "tracing: {link: '" + link + "'}\n", "workspaces/w.yaml": webWorkspace})
		c, err := config.Load("")
		if (err == nil) != ok {
			t.Errorf("%s: %v", link, err)
		}
		if err == nil && c.Tracing.LinkTo("ab") == link {
			t.Errorf("%s: no link", link)
		}
	}
}
