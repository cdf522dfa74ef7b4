// Package faultfs is a SQLite VFS for tests that can make writes and syncs fail or hang,
// and records them. The record yields the files as a power loss would leave them.
//
// It wraps the system's unix VFS. Other operations (reads, locks, shared memory) pass
// unchanged, so other engines and processes see ordinary files.
package faultfs

import (
	"fmt"
	"runtime/cgo"
	"sync"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// Op is an operation that can fail or hang.
type Op int

// The operations. They are counted over all files of the FS together.
const (
	Write Op = iota
	Sync
	Truncate
)

// Fault is a planned failure.
type Fault struct {
	Op  Op
	Nth int // 1 is the next such operation
	// Code is SQLite's result code, such as SQLITE_FULL.
	Code int32
	// Lasting makes every later operation of the kind fail too.
	Lasting bool
}

// FS is a registered VFS. Its methods are safe for concurrent use.
type FS struct {
	// Name is the argument of the engine's option WithVFS.
	Name string

	handle cgo.Handle
	vfs    uintptr // our sqlite3_vfs
	system uintptr // the system's sqlite3_vfs

	mu      sync.Mutex
	methods map[uintptr]uintptr // our methods, by the system's
	paths   map[uintptr]string  // open files, by their sqlite3_file
	fault   *Fault
	fired   bool
	gate    *gate
	record  []operation
}

// gate blocks operations until it is opened.
type gate struct {
	op      Op
	reached chan struct{}
	opened  chan struct{}
	once    sync.Once
}

// New registers a VFS. The caller closes it after every database that it opened through
// the VFS.
func New() (*FS, error) {
	tls := libc.NewTLS()
	defer tls.Close()
	f := &FS{methods: map[uintptr]uintptr{}, paths: map[uintptr]string{}, system: lib.Xsqlite3_vfs_find(tls, 0)}
	if f.system == 0 {
		return nil, fmt.Errorf("faultfs: the system has no VFS")
	}
	f.handle = cgo.NewHandle(f)
	f.Name = fmt.Sprintf("fault%d", f.handle)
	if err := f.register(tls); err != nil {
		f.handle.Delete()
		return nil, fmt.Errorf("faultfs: %w", err)
	}
	return f, nil
}

// Close removes the VFS. It fails while a file is open.
func (f *FS) Close() error {
	f.mu.Lock()
	open := len(f.paths)
	f.mu.Unlock()
	if open > 0 {
		return fmt.Errorf("faultfs: %d files are open", open)
	}
	tls := libc.NewTLS()
	defer tls.Close()
	f.unregister(tls)
	f.handle.Delete()
	return nil
}

// Inject sets the planned failure and replaces the one before.
func (f *FS) Inject(fault Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault, f.fired = &fault, false
}

// Heal removes the failure. It returns whether the failure has occurred.
func (f *FS) Heal() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault = nil
	return f.fired
}

// Freeze makes every op hang. reached is closed when the first op hangs. thaw lets all
// continue and may be called more than once.
func (f *FS) Freeze(op Op) (reached <-chan struct{}, thaw func()) {
	g := &gate{op: op, reached: make(chan struct{}), opened: make(chan struct{})}
	f.mu.Lock()
	f.gate = g
	f.mu.Unlock()
	return g.reached, sync.OnceFunc(func() {
		f.mu.Lock()
		f.gate = nil
		f.mu.Unlock()
		close(g.opened)
	})
}

// before is called with every operation. It hangs while the FS is frozen. It returns the
// result code of a failure that is due, else SQLITE_OK.
func (f *FS) before(op Op) int32 {
	f.mu.Lock()
	g := f.gate
	f.mu.Unlock()
	if g != nil && g.op == op {
		g.once.Do(func() { close(g.reached) })
		<-g.opened
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fault == nil || f.fault.Op != op {
		return lib.SQLITE_OK
	}
	if f.fault.Nth--; f.fault.Nth > 0 || f.fired && !f.fault.Lasting {
		return lib.SQLITE_OK
	}
	f.fired = true
	return f.fault.Code
}
