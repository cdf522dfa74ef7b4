package journaltest

import (
	"errors"
	"strconv"
	"strings"
	"sync"

	"parley/ingest/journal/threads"
)

func adapterStatePromises() []promise {
	return []promise{
		{"a value is stored by workspace and name, and survives a restart", stateStored},
		{"a name without a value has the empty value", stateEmpty},
		{"concurrent updates of a value lose nothing", stateUpdatedConcurrently},
		{"names and values are bounded", stateBounded},
		{"every store replaces U+0000 and invalid UTF-8 in a text", textsReplaced},
	}
}

// state returns a value of an adapter's state.
func (f *fixture) state(workspace, name string) string {
	f.Helper()
	value, err := f.Threads.AdapterState(workspace).Get(f.ctx, name)
	f.must(err)
	return value
}

func stateStored(f *fixture) {
	state := f.Threads.AdapterState(workspace)
	f.must(state.Put(f.ctx, "row", "1"))
	f.must(state.Put(f.ctx, "row", "2"))
	f.must(state.Put(f.ctx, "guid", "a \"guid\""))
	f.must(f.Threads.AdapterState("other").Put(f.ctx, "row", "3"))
	f.must(state.Update(f.ctx, "row", func(value string) string { return value + "!" }))
	later := f.successor("second")
	same(f, "value", later.state(workspace, "row"), "2!")
	same(f, "another name", later.state(workspace, "guid"), `a "guid"`)
	same(f, "another workspace", later.state("other", "row"), "3")
}

func stateEmpty(f *fixture) {
	same(f, "before", f.state(workspace, "row"), "")
	f.must(f.Threads.AdapterState(workspace).Update(f.ctx, "row", func(value string) string { return "was " + strconv.Quote(value) }))
	same(f, "first update", f.state(workspace, "row"), `was ""`)
	f.must(f.Threads.AdapterState(workspace).Put(f.ctx, "row", ""))
	same(f, "emptied", f.state(workspace, "row"), "")
}

func stateUpdatedConcurrently(f *fixture) {
	var errs [20]error
	var updating sync.WaitGroup
	for i := range errs {
		updating.Go(func() {
			errs[i] = f.Threads.AdapterState(workspace).Update(f.ctx, "count", func(value string) string { return value + "+" })
		})
	}
	updating.Wait()
	f.must(errors.Join(errs[:]...))
	same(f, "updates", f.state(workspace, "count"), strings.Repeat("+", len(errs)))
}

func stateBounded(f *fixture) {
	state := f.Threads.AdapterState(workspace)
	longest, largest := strings.Repeat("n", 100), strings.Repeat("v", 64<<10)
	f.must(state.Put(f.ctx, longest, largest))
	f.fails("a longer name", state.Put(f.ctx, longest+"n", "v"), threads.ErrAdapterState)
	f.fails("no name", state.Put(f.ctx, "", "v"), threads.ErrAdapterState)
	f.fails("a larger value", state.Put(f.ctx, longest, largest+"v"), threads.ErrAdapterState)
	same(f, "value", f.state(workspace, longest) == largest, true)
}

func textsReplaced(f *fixture) {
	f.must(f.Threads.AdapterState(workspace).Put(f.ctx, "a\x00b\xff", "\xe9\x00\U0001F600"))
	same(f, "value", f.state(workspace, "a\uFFFDb\uFFFD"), "\uFFFD\uFFFD\U0001F600")
	same(f, "by its first name", f.state(workspace, "a\x00b\xff"), "\uFFFD\uFFFD\U0001F600")
}
