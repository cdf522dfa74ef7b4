package faultfs

import (
	"errors"
	"fmt"
	"os"
	"runtime/cgo"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// The signatures of the replaced C functions. https://www.sqlite.org/c3ref/vfs.html,
// https://www.sqlite.org/c3ref/io_methods.html
type (
	openFunc     = func(tls *libc.TLS, vfs, name, file uintptr, flags int32, outFlags uintptr) int32
	deleteFunc   = func(tls *libc.TLS, vfs, name uintptr, syncDir int32) int32
	closeFunc    = func(tls *libc.TLS, file uintptr) int32
	writeFunc    = func(tls *libc.TLS, file, data uintptr, n int32, offset int64) int32
	truncateFunc = func(tls *libc.TLS, file uintptr, size int64) int32
	syncFunc     = func(tls *libc.TLS, file uintptr, flags int32) int32
)

// methods is the method table of an open file: SQLite's table, and behind it the handle
// of the FS and the system's functions.
type methods struct {
	table  lib.Tsqlite3_io_methods
	handle uintptr
	system lib.Tsqlite3_io_methods
}

// at returns the object at an address of C memory.
func at[T any](address uintptr) *T { return *(**T)(unsafe.Pointer(&address)) }

// pointer returns a top-level function as C code calls it: the address that a Go func
// value points to, which never moves for these functions.
func pointer[F any](f F) uintptr { return *(*uintptr)(unsafe.Pointer(&f)) }

// function returns the Go function of a pointer that pointer made.
func function[F any](p uintptr) F { return *(*F)(unsafe.Pointer(&p)) }

// register copies the system's VFS, and replaces its functions that open and delete
// files.
func (f *FS) register(tls *libc.TLS) error {
	name, err := libc.CString(f.Name)
	if err != nil {
		return err
	}
	f.vfs = libc.Xmalloc(tls, lib.Tsize_t(unsafe.Sizeof(lib.Tsqlite3_vfs{})))
	if f.vfs == 0 {
		return errors.New("out of memory")
	}
	// All but the copy's place in SQLite's list of VFSs, which other goroutines may be
	// changing.
	system := at[lib.Tsqlite3_vfs](f.system)
	*at[lib.Tsqlite3_vfs](f.vfs) = lib.Tsqlite3_vfs{
		FiVersion:          system.FiVersion,
		FszOsFile:          system.FszOsFile,
		FmxPathname:        system.FmxPathname,
		FzName:             name,
		FpAppData:          uintptr(f.handle),
		FxOpen:             pointer[openFunc](xOpen),
		FxDelete:           pointer[deleteFunc](xDelete),
		FxAccess:           system.FxAccess,
		FxFullPathname:     system.FxFullPathname,
		FxDlOpen:           system.FxDlOpen,
		FxDlError:          system.FxDlError,
		FxDlSym:            system.FxDlSym,
		FxDlClose:          system.FxDlClose,
		FxRandomness:       system.FxRandomness,
		FxSleep:            system.FxSleep,
		FxCurrentTime:      system.FxCurrentTime,
		FxGetLastError:     system.FxGetLastError,
		FxCurrentTimeInt64: system.FxCurrentTimeInt64,
		FxSetSystemCall:    system.FxSetSystemCall,
		FxGetSystemCall:    system.FxGetSystemCall,
		FxNextSystemCall:   system.FxNextSystemCall,
	}
	if rc := lib.Xsqlite3_vfs_register(tls, f.vfs, 0); rc != lib.SQLITE_OK {
		return fmt.Errorf("register: result code %d", rc)
	}
	return nil
}

func (f *FS) unregister(tls *libc.TLS) {
	lib.Xsqlite3_vfs_unregister(tls, f.vfs)
	libc.Xfree(tls, at[lib.Tsqlite3_vfs](f.vfs).FzName)
	libc.Xfree(tls, f.vfs)
	for _, m := range f.methods {
		libc.Xfree(tls, m)
	}
}

// of returns the FS and the method table of an open file.
func of(file uintptr) (*FS, *methods) {
	m := at[methods](at[lib.Tsqlite3_file](file).FpMethods)
	return cgo.Handle(m.handle).Value().(*FS), m
}

func ofVFS(vfs uintptr) *FS {
	return cgo.Handle(at[lib.Tsqlite3_vfs](vfs).FpAppData).Value().(*FS)
}

// watch replaces the system's methods of a file by ours. The system has several tables:
// databases have locks, logs and journals have none.
func (f *FS) watch(tls *libc.TLS, file uintptr, path string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	system := at[lib.Tsqlite3_file](file).FpMethods
	if f.methods[system] == 0 {
		p := libc.Xmalloc(tls, lib.Tsize_t(unsafe.Sizeof(methods{})))
		if p == 0 {
			return false
		}
		m := at[methods](p)
		*m = methods{handle: uintptr(f.handle), system: *at[lib.Tsqlite3_io_methods](system)}
		m.table = m.system
		m.table.FxClose = pointer[closeFunc](xClose)
		m.table.FxWrite = pointer[writeFunc](xWrite)
		m.table.FxTruncate = pointer[truncateFunc](xTruncate)
		m.table.FxSync = pointer[syncFunc](xSync)
		f.methods[system] = p
	}
	f.paths[file] = path
	at[lib.Tsqlite3_file](file).FpMethods = f.methods[system]
	return true
}

func xOpen(tls *libc.TLS, vfs, name, file uintptr, flags int32, outFlags uintptr) int32 {
	f, path := ofVFS(vfs), libc.GoString(name)
	f.meet(path)
	rc := function[openFunc](at[lib.Tsqlite3_vfs](f.system).FxOpen)(tls, f.system, name, file, flags, outFlags)
	if rc == lib.SQLITE_OK && !f.watch(tls, file, path) {
		return lib.SQLITE_NOMEM
	}
	return rc
}

func xDelete(tls *libc.TLS, vfs, name uintptr, syncDir int32) int32 {
	f := ofVFS(vfs)
	rc := function[deleteFunc](at[lib.Tsqlite3_vfs](f.system).FxDelete)(tls, f.system, name, syncDir)
	if rc == lib.SQLITE_OK {
		f.note(operation{kind: remove, path: libc.GoString(name)})
	}
	return rc
}

func xClose(tls *libc.TLS, file uintptr) int32 {
	f, m := of(file)
	f.mu.Lock()
	delete(f.paths, file)
	f.mu.Unlock()
	return function[closeFunc](m.system.FxClose)(tls, file)
}

func xWrite(tls *libc.TLS, file, data uintptr, n int32, offset int64) int32 {
	f, m := of(file)
	if rc := f.before(Write); rc != lib.SQLITE_OK {
		return rc
	}
	rc := function[writeFunc](m.system.FxWrite)(tls, file, data, n, offset)
	if rc == lib.SQLITE_OK {
		bytes := append([]byte(nil), unsafe.Slice(at[byte](data), n)...)
		f.note(operation{kind: write, path: f.path(file), offset: offset, data: bytes})
	}
	return rc
}

func xTruncate(tls *libc.TLS, file uintptr, size int64) int32 {
	f, m := of(file)
	if rc := f.before(Truncate); rc != lib.SQLITE_OK {
		return rc
	}
	rc := function[truncateFunc](m.system.FxTruncate)(tls, file, size)
	if rc == lib.SQLITE_OK {
		f.note(operation{kind: truncate, path: f.path(file), offset: size})
	}
	return rc
}

func xSync(tls *libc.TLS, file uintptr, flags int32) int32 {
	f, m := of(file)
	// Another connection's writes from here on are not part of this sync.
	position := f.Position()
	if rc := f.before(Sync); rc != lib.SQLITE_OK {
		return rc
	}
	rc := function[syncFunc](m.system.FxSync)(tls, file, flags)
	if rc == lib.SQLITE_OK {
		f.note(operation{kind: synced, path: f.path(file), offset: int64(position)})
	}
	return rc
}

func (f *FS) path(file uintptr) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.paths[file]
}

// meet records the contents of a file that existed before the FS.
func (f *FS) meet(path string) {
	f.mu.Lock()
	known := path == ""
	for _, op := range f.record {
		known = known || op.path == path
	}
	f.mu.Unlock()
	if known {
		return
	}
	// No connection has the file open yet, so reading it drops no locks.
	if content, err := os.ReadFile(path); err == nil {
		f.note(operation{kind: found, path: path, data: content})
	}
}
