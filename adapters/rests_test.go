package adapters_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"parley/adapters"
)

// TestAMethodRests proves that a method rests for the whole wait and no longer, and that no
// other method does.
func TestAMethodRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rests adapters.Rests
		if err := rests.Refusal("edit"); err != nil {
			t.Errorf("before a rate limit: %v", err)
		}
		rests.Rest("edit", time.Minute)
		<-time.After(45 * time.Second)
		var refused *adapters.SendError
		if err := rests.Refusal("edit"); !errors.As(err, &refused) || refused.Failure != adapters.RateLimited ||
			refused.Scope != adapters.ScopeMethod || refused.RetryAfter != 15*time.Second {
			t.Errorf("during the wait: %+v", err)
		}
		if err := rests.Refusal("delete"); err != nil {
			t.Errorf("another method: %v", err)
		}
		<-time.After(15 * time.Second)
		if err := rests.Refusal("edit"); err != nil {
			t.Errorf("after the wait: %v", err)
		}
	})
}
