// Package browsertest drives a real browser in the tests of pages: it opens tabs, acts as a person
// does, and fails a test whose page has an error.
package browsertest

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// The environment variables of the package.
const (
	// Address is the path of the browser's program. Without it, chromium is searched in PATH.
	Address = "PARLEY_TEST_CHROMIUM"
	// Required makes a missing browser a failure if it is not empty.
	Required = "PARLEY_TEST_CHROMIUM_REQUIRED"
	// Pictures is the folder that gets the screenshots. Without it, none are taken.
	Pictures = "PARLEY_TEST_SCREENSHOTS"
)

// startWithin bounds the start of the browser, on a busy machine too.
const startWithin = time.Minute

// flags are added to chromedp's own. The browser starts few processes, reaches this machine alone, and takes keys and
// clicks also before it has painted a page. Otherwise it drops them, which a busy machine makes likely.
var flags = map[string]any{
	"disable-gpu": true, "in-process-gpu": true, "disable-site-isolation-trials": true, "disable-software-rasterizer": true, "disable-quic": true, "disable-component-update": true, "no-sandbox": true, "allow-pre-commit-input": true,
	"host-resolver-rules": "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
}

// browser is the browser of a test process. It starts with the first tab.
var browser struct {
	start   sync.Once
	managed bool
	ctx     context.Context
	stop    context.CancelFunc
	err     error
}

// Main runs the tests of a package, stops the browser that they share, and exits. It is called by
// TestMain of each package that opens tabs.
func Main(m *testing.M) {
	browser.managed = true
	status := m.Run()
	if browser.stop != nil {
		browser.stop()
	}
	os.Exit(status)
}

// errUnmanaged is the fault of a package that would leave its browser running.
var errUnmanaged = errors.New("the package has no TestMain that calls browsertest.Main")

// start starts the browser, and waits until it answers.
func start() error {
	if !browser.managed {
		return errUnmanaged
	}
	browser.start.Do(func() {
		path := os.Getenv(Address)
		if path == "" {
			path = "chromium"
		}
		if path, browser.err = exec.LookPath(path); browser.err != nil {
			return
		}
		options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.WSURLReadTimeout(startWithin))
		for name, value := range flags {
			options = append(options, chromedp.Flag(name, value))
		}
		ctx, stopProcess := chromedp.NewExecAllocator(context.Background(), options...)
		ctx, stopBrowser := chromedp.NewContext(ctx)
		browser.ctx, browser.stop = ctx, func() { stopBrowser(); stopProcess() }
		browser.err = chromedp.Do(ctx)
	})
	return browser.err
}
