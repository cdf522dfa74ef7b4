package adapters_test

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"parley/adapters"
	"parley/ingest/event"
)

// TestInOrder checks that envelopes have their places in their order, and that their commits are
// waited for together.
func TestInOrder(t *testing.T) {
	const n = 100
	var order []int // each call appends before it has its place
	var all sync.WaitGroup
	all.Add(n)
	var series *event.Batch
	errs := adapters.InOrder(t.Context(), n, func(i int, placed func(), batch *event.Batch) error {
		if series = cmp.Or(series, batch); batch == nil || batch != series {
			t.Errorf("call %d has another batch", i)
		}
		order = append(order, i)
		placed()
		all.Done()
		all.Wait() // the commit ends when all calls are under way
		return nil
	})
	if err := errors.Join(errs...); err != nil || len(order) != n || !slices.IsSorted(order) {
		t.Errorf("the order is %v, the error %v", order, err)
	}
}

// TestInOrderEndsAtAnError checks that no envelope overtakes a failed one.
func TestInOrderEndsAtAnError(t *testing.T) {
	failure := errors.New("the store is full")
	var called []int
	errs := adapters.InOrder(t.Context(), 4, func(i int, _ func(), _ *event.Batch) error {
		called = append(called, i)
		if i == 1 {
			return failure
		}
		return nil
	})
	if diff := gocmp.Diff([]int{0, 1}, called); diff != "" {
		t.Error(diff)
	}
	for i, want := range []error{nil, failure, adapters.ErrBusy, adapters.ErrBusy} {
		if !errors.Is(errs[i], want) {
			t.Errorf("the error of envelope %d is %v, want %v", i, errs[i], want)
		}
	}
}
