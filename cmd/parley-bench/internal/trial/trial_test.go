package trial

import (
	"errors"
	"strings"
	"testing"
	"time"

	"parley/adapters/slack/slacktest"
	"parley/cmd/parley-bench/internal/ledger"
	"parley/cmd/parley-bench/internal/rig"
)

func TestLostMessageIsAViolation(t *testing.T) {
	trial := startFloor(t, slacktest.Options{})
	trial.Ledger.Say(ledger.NewRoom(0, ledger.DefaultChannels)).Revisions[0].Acked = time.Now()
	if err := trial.Finish(""); !errors.Is(err, rig.ErrViolated) {
		t.Errorf("error %v, want errViolated", err)
	}
}

func TestFaultsOfAScenarioAreViolations(t *testing.T) {
	if err := Violations([]string{"", ""}); err != nil {
		t.Errorf("without a fault: %v", err)
	}
	if err := Violations([]string{"", "too slow"}); !errors.Is(err, rig.ErrViolated) || !strings.Contains(err.Error(), "too slow") {
		t.Errorf("with a fault: %v", err)
	}
}
