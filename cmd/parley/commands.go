package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"syscall"

	"github.com/lmittmann/tint"
	"github.com/spf13/cobra"

	"parley/adapters/replay"
	"parley/cmd/parley/internal/daemon"
	"parley/config"
	"parley/ingest/event"
)

// version is the release that this source makes.
const version = "0.1.0"

func configFlag(c *cobra.Command, path *string) {
	c.Flags().StringVar(path, "config", "", "the configuration (default parley.yaml, where there is one)")
}

func runCommand() *cobra.Command {
	var path string
	c := &cobra.Command{
		Use:   "run",
		Short: "Runs the daemon until SIGINT or SIGTERM; SIGHUP reloads the configuration",
		Args:  wrong(cobra.NoArgs),
		RunE:  func(c *cobra.Command, _ []string) error { return run(c, path) },
	}
	configFlag(c, &path)
	return c
}

func run(c *cobra.Command, path string) error {
	conf, err := config.Load(path)
	if err != nil {
		return faults(err)
	}
	level := new(slog.LevelVar)
	level.Set(conf.Log.Severity())
	d, err := daemon.New(c.Context(), daemon.Options{
		Config: conf, Log: newLogger(conf.Log.Format, os.Stderr, level), Level: level,
		Load: func() (*config.Config, error) { return config.Load(path) },
	})
	if err != nil {
		return err
	}
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
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

// faults gives each fault of a configuration a line of its own.
func faults(err error) error {
	var list config.Faults
	if errors.As(err, &list) {
		return fmt.Errorf("the configuration has faults:\n%w", err)
	}
	return err
}

// newLogger logs for people on a terminal, and for programs elsewhere.
func newLogger(format string, w *os.File, level slog.Leveler) *slog.Logger {
	if info, err := w.Stat(); format == "auto" && err == nil && info.Mode()&os.ModeCharDevice != 0 {
		format = "text"
	}
	if format == "text" {
		return slog.New(tint.NewHandler(w, &tint.Options{Level: level}))
	}
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level}))
}

func replayCommand() *cobra.Command {
	var path, platform, format string
	c := &cobra.Command{
		Use:   "replay FILE…",
		Short: "Feeds recorded envelopes through the real pipeline on a scratch store, and shows each one's fate",
		Args:  wrong(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, files []string) error {
			if !slices.Contains([]string{"text", "json"}, format) {
				return usageError{fmt.Errorf("--format is %q, must be text or json", format)}
			}
			if platform != "" && !slices.Contains(event.Platforms, event.Platform(platform)) {
				return usageError{fmt.Errorf("--platform is %q, must be one of %v", platform, event.Platforms)}
			}
			if i := slices.IndexFunc(files, replay.Raw); i >= 0 && platform == "" {
				return usageError{fmt.Errorf("%s holds one raw payload: say whose with --platform, one of %v", files[i], event.Platforms)}
			}
			return play(c, path, event.Platform(platform), format, files)
		},
	}
	configFlag(c, &path)
	c.Flags().StringVar(&platform, "platform", "", "whose payload a file that is no .jsonl recording holds: slack, discord, bluebubbles or web")
	c.Flags().StringVar(&format, "format", "text", "text or json")
	return c
}

func play(c *cobra.Command, path string, platform event.Platform, format string, files []string) error {
	var conf *config.Config // nil: the defaults of a recording
	if path != "" {
		var err error
		if conf, err = config.Load(path); err != nil {
			return faults(err)
		}
	}
	return daemon.Replay(c.Context(), daemon.Recording{
		Config: conf, Files: files, Platform: platform, JSON: format == "json", Out: c.OutOrStdout(),
		Log: newLogger("auto", os.Stderr, slog.LevelError),
	})
}

func checkCommand() *cobra.Command {
	var path string
	c := &cobra.Command{
		Use:   "check",
		Short: "Says whether the configuration is sound",
		Args:  wrong(cobra.NoArgs),
		RunE:  func(c *cobra.Command, _ []string) error { return check(c.OutOrStdout(), path) },
	}
	configFlag(c, &path)
	return c
}

func check(out io.Writer, path string) error {
	conf, err := config.Load(path)
	var list config.Faults
	if errors.As(err, &list) {
		fmt.Fprintln(out, list)
		return fmt.Errorf("the configuration has %d faults", len(list))
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "the configuration is sound: %d workspaces, %d agents\n", len(conf.Workspaces), len(conf.Agents))
	return nil
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Prints version, commit and Go version",
		Args:  wrong(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(c.OutOrStdout(), "parley %s, commit %s, %s\n", version, commit(), runtime.Version())
			return err
		},
	}
}

// commit is the revision that the binary was built from, as far as it is known.
func commit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return "unknown"
}
