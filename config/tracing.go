package config

import (
	"cmp"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"

	"parley/adapters"
	"parley/config/secret"
	"parley/ingest/event"
)

// Tracing names the collector of traces. The environment, with the variables of OpenTelemetry, completes the settings of a file; see
// Config.Traces.
type Tracing struct {
	// OTLP is the base address of a collector that speaks OTLP over HTTP; empty for that of the environment.
	OTLP string `yaml:"otlp"`
	// Headers are those of each request to the collector.
	Headers map[string]secret.Value `yaml:"headers"`
	// Sample is the part of the traces that is recorded, from 0 to 1.
	Sample float64 `yaml:"sample"`
	// Content adds the words of messages, of answers and of calls of tools.
	Content bool `yaml:"content"`
	// Link is the address at which people see a trace, with TraceMark for its id; empty for none.
	Link string `yaml:"link"`
}

// TraceMark is the place of the id of a trace in Tracing.Link.
const TraceMark = "{trace}"

// headerName is the form of the name of a header.
var headerName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,100}$`)

// faults returns the faults of the settings by key.
func (t Tracing) faults() (faults event.FieldErrors) {
	faults.Check(t.OTLP == "" || adapters.IsBase(t.OTLP), "otlp", "must be the http or https address of a collector without credentials, such as http://127.0.0.1:4318, or empty")
	for name, value := range t.Headers { // a name may be a secret by mistake
		faults.Check(headerName.MatchString(name), "headers", "must have names of letters, digits, - and _")
		faults.Check(!strings.ContainsAny(value.Reveal(), "\r\n\x00"), "headers", "must have no line end in a value")
	}
	faults.Check(t.Sample >= 0 && t.Sample <= 1, "sample", "must be a number from 0 to 1")
	faults.Check(t.Link == "" || strings.Contains(t.Link, TraceMark), "link", "must contain "+TraceMark+" for the id of a trace")
	link, err := url.Parse(strings.ReplaceAll(t.Link, TraceMark, "0"))
	isPage := err == nil && (link.Scheme == "https" || link.Scheme == "http") && link.Host != "" && link.User == nil && link.Host != "0"
	faults.Check(t.Link == "" || isPage, "link", "must be an http or https address without credentials, such as https://jaeger.example.com/trace/"+TraceMark)
	return faults
}

// Traces are the settings of traces that are recorded.
type Traces struct {
	Tracing
	// URL is the address to which the spans are posted.
	URL string
}

// Traces returns the settings of traces, with those of the environment. It returns false if no traces are recorded: neither the file nor
// the environment names a collector, the environment names none that can be one, or OTEL_SDK_DISABLED is true.
func (c *Config) Traces() (t Traces, on bool) {
	t = Traces{Tracing: c.Tracing}
	isOfFile := t.OTLP != ""
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") || !isOfFile && os.Getenv("OTEL_TRACES_EXPORTER") == "none" {
		return Traces{}, false
	}
	base := cmp.Or(t.OTLP, os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT"))
	if own := os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"); own != "" && !isOfFile {
		t.URL = own
	} else if base != "" {
		t.URL = strings.TrimRight(base, "/") + "/v1/traces"
	}
	if len(t.Headers) == 0 {
		t.Headers, _ = headersOf(headersVariable())
	}
	if !c.places.file("").has("tracing.sample") {
		t.Sample = sampleOf(os.Getenv("OTEL_TRACES_SAMPLER"), os.Getenv("OTEL_TRACES_SAMPLER_ARG"), t.Sample)
	}
	return t, adapters.IsBase(t.URL)
}

func headersVariable() string {
	return cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_HEADERS"), os.Getenv("OTEL_EXPORTER_OTLP_HEADERS"))
}

// environmentFaults returns the faults of the standard variables of traces. It names no value, because a value may be a secret.
func (c *Config) environmentFaults() (faults []string) {
	t, on := c.Traces()
	if t.URL != "" && !on {
		name := "OTEL_EXPORTER_OTLP_ENDPOINT"
		if os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != "" {
			name = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
		}
		return []string{name + " is no http or https address without credentials and query, so nothing is traced: name an address such as http://127.0.0.1:4318"}
	}
	if !on {
		return nil
	}
	if cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"), os.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL")) == "grpc" {
		faults = append(faults, "OTEL_EXPORTER_OTLP_PROTOCOL is grpc, but Parley speaks OTLP over HTTP: name the address for that, which often has the port 4318")
	}
	if _, whole := headersOf(headersVariable()); !whole && len(c.Tracing.Headers) == 0 {
		faults = append(faults, "OTEL_EXPORTER_OTLP_HEADERS has a part that is not name=value, and the collector does not get that part: write name=value with commas between")
	}
	for _, name := range []string{"CERTIFICATE", "CLIENT_CERTIFICATE", "CLIENT_KEY", "TRACES_CERTIFICATE", "TRACES_CLIENT_CERTIFICATE", "TRACES_CLIENT_KEY"} {
		name = "OTEL_EXPORTER_OTLP_" + name
		if path := os.Getenv(name); path != "" {
			if _, err := os.ReadFile(path); err != nil {
				faults = append(faults, name+" names a file that Parley cannot read, and the connection to the collector goes without it")
			}
		}
	}
	return faults
}

// headersOf reads the value of OTEL_EXPORTER_OTLP_HEADERS: name=value pairs with commas between, whose values are escaped as in an
// address. It leaves out a pair that it cannot read; whole says that there is none.
func headersOf(text string) (headers map[string]secret.Value, whole bool) {
	headers, whole = map[string]secret.Value{}, true
	for pair := range strings.SplitSeq(text, ",") {
		name, value, isPair := strings.Cut(pair, "=")
		name = strings.TrimSpace(name)
		value, err := url.PathUnescape(strings.TrimSpace(value))
		switch {
		case isPair && err == nil && headerName.MatchString(name):
			headers[strings.ToLower(name)] = secret.New(value)
		case strings.TrimSpace(pair) != "":
			whole = false
		}
	}
	return headers, whole
}

// sampleOf reads the values of OTEL_TRACES_SAMPLER and OTEL_TRACES_SAMPLER_ARG. For other samplers, it returns otherwise. Callers always
// decide about their traces, as the samplers that begin with parentbased_ have it.
func sampleOf(sampler, arg string, otherwise float64) float64 {
	switch name := strings.TrimPrefix(sampler, "parentbased_"); name {
	case "always_on":
		return 1
	case "always_off":
		return 0
	case "traceidratio":
		part, err := strconv.ParseFloat(arg, 64)
		if err != nil || part < 0 || part > 1 {
			return 1
		}
		return part
	}
	return otherwise
}

// LinkTo returns the address at which people see a trace; empty for none.
func (t Tracing) LinkTo(id string) string {
	if id == "" {
		return ""
	}
	return strings.ReplaceAll(t.Link, TraceMark, id)
}
