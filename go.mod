module parley

go 1.26.0

toolchain go1.26.9

require (
	charm.land/huh/v2 v2.0.3 // the questions of init: lists, hidden input and checks on a terminal, also for screen readers
	github.com/bwmarrin/discordgo v0.29.0 // Discord's REST API and its types
	github.com/chromedp/cdproto v0.159.0 // tests: the types of chromedp
	github.com/chromedp/chromedp v0.23.0 // tests: pages in a browser
	github.com/dustin/go-humanize v1.0.1 // sizes and numbers for people
	github.com/evanw/esbuild v0.28.2 // tests: the scripts of pages, minified
	github.com/go-jose/go-jose/v4 v4.1.9 // signed tokens of users, and the keys of their issuers
	github.com/go-logr/logr v1.4.4 // traces: turns off the log of the SDK, which would print headers that it cannot read
	github.com/go-viper/mapstructure/v2 v2.5.0 // the options of viper's decoder: strict types, and the tags of YAML
	github.com/google/go-cmp v0.7.0 // tests: differences
	github.com/google/jsonschema-go v0.4.3 // the schemas of our tools' arguments; the Model Context Protocol's library has it
	github.com/google/uuid v1.6.0 // thread and message ids
	github.com/gorilla/websocket v1.5.3 // Slack's Socket Mode, Discord's gateway; slack-go and discordgo need it too, so another one would be a second
	github.com/jackc/pgx/v5 v5.12.0 // the store that several daemons share
	github.com/jackc/puddle/v2 v2.2.3 // the reading connections of the embedded store; pgx brings it for its own
	github.com/klauspost/compress v1.20.1 // gzip for clients that accept it, zstd for backups
	github.com/lmittmann/tint v1.2.1 // logs on a terminal
	github.com/mattn/go-isatty v0.0.24 // whether people read the output
	github.com/microcosm-cc/bluemonday v1.0.27 // what may be in the HTML of an answer
	github.com/minio/minio-go/v7 v7.4.1 // attachments in a bucket: signatures, regions, retries and the dialects of S3-compatible servers
	github.com/modelcontextprotocol/go-sdk v1.8.0 // the Model Context Protocol
	github.com/prometheus/client_golang v1.25.0 // metrics
	github.com/prometheus/procfs v0.22.0 // the benchmark: CPU time and memory of processes
	github.com/rivo/uniseg v0.4.7 // graphemes, for cutting text
	github.com/robfig/cron/v3 v3.0.1 // the expressions of schedules
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.3 // tests: the schema of the configuration
	github.com/slack-go/slack v0.34.0 // Slack's Web API
	github.com/spf13/cobra v1.10.2 // the command line
	github.com/spf13/pflag v1.0.10 // the flags of commands, for their manual pages; cobra's own
	github.com/spf13/viper v1.21.0 // configuration
	github.com/subosito/gotenv v1.6.0 // files with environment variables; viper's own
	github.com/yuin/goldmark v1.8.7 // CommonMark, for the dialects of chats
	go.opentelemetry.io/otel v1.47.0 // traces: attributes and states of spans; with the three below 143 packages and 5.3 MB of the binary
	go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp v1.47.0 // traces: the exporter, with retries, compression, TLS and the standard variables
	go.opentelemetry.io/otel/sdk v1.47.0 // traces: batches with a bounded queue, limits and the resource of the standard variables
	go.opentelemetry.io/otel/trace v1.47.0 // traces: spans
	go.opentelemetry.io/proto/otlp v1.11.0 // tests: a collector of traces; the exporter has it
	go.yaml.in/yaml/v3 v3.0.6 // line numbers of faults in configuration
	golang.org/x/net v0.60.0 // the elements of a page that change
	golang.org/x/term v0.46.0 // the width of a terminal, and lines that a person edits
	golang.org/x/text v0.43.0 // the form in which people see a text
	google.golang.org/protobuf v1.36.12 // tests: a collector of traces; the exporter has it
	modernc.org/libc v1.77.1 // tests: a faulty file system under SQLite
	modernc.org/sqlite v1.60.1 // the embedded store, without cgo
	pgregory.net/rapid v1.3.0 // tests: properties
)

require (
	charm.land/bubbles/v2 v2.0.0 // indirect
	charm.land/bubbletea/v2 v2.0.2 // indirect
	charm.land/lipgloss/v2 v2.0.6 // indirect
	github.com/atotto/clipboard v0.1.4 // indirect
	github.com/aymerick/douceur v0.2.0 // indirect
	github.com/beorn7/perks v1.0.1 // indirect
	github.com/catppuccin/go v0.2.0 // indirect
	github.com/cenkalti/backoff/v5 v5.0.3 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/charmbracelet/colorprofile v0.4.3 // indirect
	github.com/charmbracelet/ultraviolet v0.0.0-20260811164956-006e29f97886 // indirect
	github.com/charmbracelet/x/ansi v0.11.8 // indirect
	github.com/charmbracelet/x/exp/ordered v0.1.0 // indirect
	github.com/charmbracelet/x/exp/strings v0.0.0-20240722160745-212f7b056ed0 // indirect
	github.com/charmbracelet/x/term v0.2.2 // indirect
	github.com/charmbracelet/x/termios v0.1.1 // indirect
	github.com/charmbracelet/x/windows v0.2.2 // indirect
	github.com/clipperhouse/displaywidth v0.11.0 // indirect
	github.com/clipperhouse/uax29/v2 v2.7.0 // indirect
	github.com/fsnotify/fsnotify v1.9.0 // indirect
	github.com/go-json-experiment/json v0.0.0-20260213210345-44df1a37e875 // indirect
	github.com/go-logr/stdr v1.2.2 // indirect
	github.com/gorilla/css v1.0.1 // indirect
	github.com/grpc-ecosystem/grpc-gateway/v2 v2.30.0 // indirect
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/klauspost/cpuid/v2 v2.4.0 // indirect
	github.com/klauspost/crc32 v1.3.0 // indirect
	github.com/lucasb-eyer/go-colorful v1.4.1 // indirect
	github.com/mattn/go-runewidth v0.0.24 // indirect
	github.com/minio/crc64nvme v1.1.1 // indirect
	github.com/minio/md5-simd v1.1.2 // indirect
	github.com/mitchellh/hashstructure/v2 v2.0.2 // indirect
	github.com/muesli/cancelreader v0.2.2 // indirect
	github.com/munnerz/goautoneg v0.0.0-20191010083416-a7dc8b61c822 // indirect
	github.com/ncruces/go-strftime v1.0.0 // indirect
	github.com/pelletier/go-toml/v2 v2.4.3 // indirect
	github.com/philhofer/fwd v1.2.0 // indirect
	github.com/prometheus/client_model v0.6.3 // indirect
	github.com/prometheus/common v0.72.0 // indirect
	github.com/remyoudompheng/bigfft v0.0.0-20230129092748-24d4a6f8daec // indirect
	github.com/rs/xid v1.6.0 // indirect
	github.com/sagikazarmark/locafero v0.11.0 // indirect
	github.com/segmentio/asm v1.1.3 // indirect
	github.com/segmentio/encoding v0.5.4 // indirect
	github.com/sourcegraph/conc v0.3.1-0.20240121214520-5f936abd7ae8 // indirect
	github.com/spf13/afero v1.15.0 // indirect
	github.com/spf13/cast v1.10.0 // indirect
	github.com/tinylib/msgp v1.6.4 // indirect
	github.com/xo/terminfo v1.0.0 // indirect
	github.com/yosida95/uritemplate/v3 v3.0.2 // indirect
	github.com/zeebo/xxh3 v1.1.0 // indirect
	go.opentelemetry.io/auto/sdk v1.2.1 // indirect
	go.opentelemetry.io/otel/exporters/otlp/otlptrace v1.47.0 // indirect
	go.opentelemetry.io/otel/log v1.47.0 // indirect
	go.opentelemetry.io/otel/metric v1.47.0 // indirect
	golang.org/x/crypto v0.57.0 // indirect
	golang.org/x/oauth2 v0.37.0 // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/time v0.15.0 // indirect
	google.golang.org/genproto/googleapis/api v0.0.0-20260928230214-8a89bd6388cc // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260928230214-8a89bd6388cc // indirect
	google.golang.org/grpc v1.83.2 // indirect
	gopkg.in/ini.v1 v1.67.3 // indirect
	modernc.org/mathutil v1.7.1 // indirect
	modernc.org/memory v1.12.1 // indirect
)
