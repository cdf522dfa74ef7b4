package journal

import (
	"parley/ingest/journal/budgets"
	"parley/ingest/journal/files"
	"parley/ingest/journal/places"
	"parley/ingest/journal/storage"
)

// The names of the parts, until their users name the parts themselves.
type (
	Engine          = storage.Engine
	Tx              = storage.Tx
	WriteOptions    = storage.WriteOptions
	Recorder        = storage.Recorder
	Eraser          = storage.Eraser
	Clock           = storage.Clock
	Notifier        = storage.Notifier
	Claim           = places.Claim
	Thread          = places.Thread
	ThreadMode      = places.ThreadMode
	Ticket          = places.Ticket
	AdapterState    = places.AdapterState
	Attachment      = files.Attachment
	AttachmentState = files.State
	Budget          = budgets.Budget
)

const (
	PageBytes             = storage.PageBytes
	ModeOpen              = places.ModeOpen
	ModeInvocationOnly    = places.ModeInvocationOnly
	AttachmentPending     = files.Pending
	AttachmentStored      = files.Stored
	AttachmentUnavailable = files.Unavailable
)

var (
	ErrLocked       = storage.ErrLocked
	ErrUnclear      = storage.ErrUnclear
	ErrClosed       = storage.ErrClosed
	ErrUnavailable  = storage.ErrUnavailable
	ErrNotFound     = storage.ErrNotFound
	ErrFenced       = storage.ErrFenced
	ErrUnfinished   = storage.ErrUnfinished
	ErrAdapterState = places.ErrAdapterState
	Unavailable     = storage.Unavailable
	NewSteadyClock  = storage.NewSteadyClock
	Instant         = storage.Instant
	Whole           = storage.Whole
	LeasesEnded     = places.LeasesEnded
	IsDerived       = places.IsDerived
)
