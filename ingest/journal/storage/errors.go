package storage

import "errors"

// ErrFenced means that another claim of the thread exists, or that the work is done already.
// Nothing was written; the caller must read the thread's work again.
var ErrFenced = errors.New("another claim of the thread exists")

// ErrNotFound means that the requested row does not exist.
var ErrNotFound = errors.New("not found")
