package commands

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"parley/adapters/replay"
	"parley/cmd/internal/command"
	"parley/cmd/parley/internal/daemon"
	"parley/cmd/parley/internal/player"
	"parley/config"
	"parley/ingest/event"
)

func runCommand() *cobra.Command {
	var path string
	c := &cobra.Command{
		Use:   "run",
		Short: "Runs the daemon until SIGINT or SIGTERM; SIGHUP reloads the configuration",
		Example: `  parley run
  parley run --config /etc/parley/parley.yaml --env-file /etc/parley/env`,
		Args: wrong(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return run(c, path) },
	}
	configFlag(c, &path, ifExists)
	return c
}

// run starts the daemon and returns when it has stopped.
func run(c *cobra.Command, path string) error {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP) // during the start, it waits and does not end the process
	collectLess()
	conf, err := config.Load(path)
	if err != nil {
		return faults(err)
	}
	log, logging := liveLogger(os.Stderr, conf.Log)
	d, err := daemon.New(c.Context(), daemon.Options{
		Config: conf, Log: log, Logging: logging,
		Load:  func() (*config.Config, error) { return config.Load(path) },
		Hello: helloOn(os.Stdout), Chat: commandLine("chat", path), Console: commandLine("console", path), Version: release(),
		Notify: notifier(),
	})
	if err != nil {
		return err
	}
	var listening sync.WaitGroup
	listening.Go(func() {
		for range hangup {
			d.Reload()
		}
	})
	err = d.Run(c.Context())
	signal.Stop(hangup)
	close(hangup)
	listening.Wait()
	return err
}

// helloOn returns a function that prints lines for the operator to w; nil unless w is a
// terminal.
func helloOn(w *os.File) func(text string) {
	if !isatty.IsTerminal(w.Fd()) {
		return nil
	}
	return func(text string) { fmt.Fprintln(w, text) }
}

// commandLine returns the command line of a command for the daemon with this configuration.
func commandLine(command, path string) string {
	line := programName() + " " + command
	if path != "" && path != systemConfig {
		line += " --config " + path
	}
	return line
}

// programName returns how a person starts this program. The one that go run has built is gone afterwards.
func programName() string {
	built, err := os.Executable()
	switch _, missing := exec.LookPath("parley"); {
	case err == nil && strings.Contains(built, "go-build") && filepath.Base(built) == "parley":
		return "go run ./cmd/parley"
	case missing != nil && strings.ContainsRune(os.Args[0], filepath.Separator) && filepath.Base(os.Args[0]) == "parley":
		return os.Args[0]
	}
	return "parley"
}

func replayCommand() *cobra.Command {
	var path, platform, format string
	var asJSON, quiet bool
	names := strings.Join(config.PlatformNames(), ", ")
	c := &cobra.Command{
		Use:   "replay FILE…",
		Short: "Feeds recorded envelopes through the real pipeline on a scratch store, and prints the result of each",
		Example: `  parley replay --json recording.jsonl | jq -r .disposition
  parley replay --platform slack payload.json`,
		Args: wrong(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, files []string) error {
			if asJSON {
				format = "json"
			}
			if !slices.Contains([]string{"text", "json"}, format) {
				return command.UsageError{Err: fmt.Errorf("--format is %q, must be text or json", format)}
			}
			if platform != "" && !slices.Contains(config.PlatformNames(), platform) {
				return command.UsageError{Err: fmt.Errorf("--platform is %q, must be one of %s", platform, names)}
			}
			if i := slices.IndexFunc(files, replay.Raw); i >= 0 && platform == "" {
				return command.UsageError{Err: fmt.Errorf("%s is not a .jsonl recording, so it must contain one raw payload: name its platform with --platform, one of %s", files[i], names)}
			}
			return play(c, path, player.Recording{Files: files, Platform: event.Platform(platform), JSON: format == "json"}, newProgress(c, quiet))
		},
	}
	configFlag(c, &path, "none: the echo agent and the default policy")
	c.Flags().StringVar(&platform, "platform", "", "the platform of a file with one raw payload: "+names)
	c.Flags().StringVar(&format, "format", "text", "text or json")
	jsonFlag(c, &asJSON)
	quietFlag(c, &quiet)
	return c
}

// play replays the files of a recording. A terminal that shows the results needs no progress. If the reader of the
// output wants no more, as in "parley replay | head", the replay ends without an error.
func play(c *cobra.Command, path string, r player.Recording, shown *progress) (err error) {
	if path != "" { // else the defaults of a replay
		if r.Config, err = config.Load(path); err != nil {
			return faults(err)
		}
	}
	r.Out, r.Log = c.OutOrStdout(), newLogger("auto", os.Stderr, slog.LevelError)
	if out, ok := r.Out.(*os.File); !ok || !isatty.IsTerminal(out.Fd()) {
		shown.begin("replaying", countLines(r.Files), false)
		defer shown.end()
		r.Progress = shown.at
	}
	signal.Ignore(syscall.SIGPIPE) // so that the replay gets an error and removes its scratch store
	err = player.Replay(c.Context(), r)
	if errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return err
}

// countLines returns the number of lines of recordings, where a raw payload is one; -1 if a file, such as a pipe,
// can't be read twice or at all.
func countLines(files []string) (n int64) {
	for _, path := range files {
		info, err := os.Stat(path)
		switch {
		case err != nil || !info.Mode().IsRegular():
			return -1
		case replay.Raw(path):
			n++
		case replay.Lines(path, func(int, []byte, error) error { n++; return nil }) != nil:
			return -1
		}
	}
	return n
}
