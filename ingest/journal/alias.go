package journal

import (
	"parley/ingest/journal/budgets"
	"parley/ingest/journal/envelopes"
	"parley/ingest/journal/files"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/places"
	"parley/ingest/journal/record"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/storage"
)

// The names of the parts, until their users name the parts themselves.
type (
	AcceptRequest   = envelopes.AcceptRequest
	AcceptResult    = envelopes.AcceptResult
	AdapterState    = places.AdapterState
	Added           = runs.Added
	Answer          = runs.Answer
	Asked           = messages.Asked
	Attachment      = files.Attachment
	AttachmentState = files.State
	Author          = messages.Author
	Backlog         = envelopes.Backlog
	Budget          = budgets.Budget
	Claim           = places.Claim
	Clock           = storage.Clock
	Command         = record.Command
	Decision        = record.Decision
	Delivery        = outbox.Delivery
	DeliveryState   = outbox.State
	EndResult       = runs.EndResult
	Engine          = storage.Engine
	Entry           = record.Entry
	EnvelopeResult  = envelopes.Result
	File            = outbox.File
	Freshness       = messages.Freshness
	HistoryDay      = messages.HistoryDay
	ImportMessage   = record.ImportMessage
	ImportThread    = record.ImportThread
	LaterRun        = runs.LaterRun
	Listed          = messages.Listed
	Look            = record.Look
	Message         = messages.Message
	NamedRun        = runs.NamedRun
	News            = messages.News
	Notice          = outbox.Notice
	Notifier        = storage.Notifier
	Origin          = messages.Origin
	OtherAgentError = runs.OtherAgentError
	Page            = messages.Page
	Pending         = envelopes.Pending
	Post            = outbox.Post
	PostButton      = outbox.PostButton
	Question        = runs.Question
	Read            = record.Read
	RecordResult    = record.Result
	Recorder        = storage.Recorder
	Reply           = runs.Reply
	Run             = runs.Run
	RunEvent        = runs.RunEvent
	RunPage         = runs.RunPage
	RunState        = runs.State
	RunStatus       = runs.RunStatus
	Send            = outbox.Send
	Sender          = messages.Sender
	Slot            = outbox.Slot
	Thread          = places.Thread
	ThreadHistory   = runs.ThreadHistory
	ThreadMode      = places.ThreadMode
	ThreadState     = record.ThreadState
	ThreadSummary   = messages.ThreadSummary
	Ticket          = places.Ticket
	Trigger         = messages.Trigger
	Turn            = runs.Turn
	Tx              = storage.Tx
	Unanswered      = runs.Unanswered
	View            = messages.View
	Window          = runs.Window
	WriteOptions    = storage.WriteOptions
)

const (
	API                   = messages.API
	AttachmentPending     = files.Pending
	AttachmentStored      = files.Stored
	AttachmentUnavailable = files.Unavailable
	ByAgent               = messages.ByAgent
	ByHuman               = messages.ByHuman
	BySystem              = messages.BySystem
	CommandNew            = record.CommandNew
	CommandStatus         = record.CommandStatus
	CommandStop           = record.CommandStop
	DeadClaims            = envelopes.DeadClaims
	DeliveryClose         = outbox.KindClose
	DeliveryFailed        = outbox.Failed
	DeliveryPending       = outbox.Pending
	DeliveryPost          = outbox.KindPost
	DeliveryPreview       = outbox.KindPreview
	DeliveryRemove        = outbox.KindRemove
	DeliverySending       = outbox.Sending
	DeliverySent          = outbox.Sent
	DeliveryTell          = outbox.KindTell
	DeliveryUnknown       = outbox.Unknown
	DeliveryUnsign        = outbox.KindUnsign
	FilesWait             = record.FilesWait
	Late                  = messages.Late
	Live                  = messages.Live
	ModeInvocationOnly    = places.ModeInvocationOnly
	ModeOpen              = places.ModeOpen
	PageBytes             = storage.PageBytes
	RunCanceled           = runs.Canceled
	RunDone               = runs.Done
	RunDropped            = runs.Dropped
	RunFailed             = runs.Failed
	RunInterrupted        = runs.Interrupted
	RunQuiet              = runs.Quiet
	RunUnfinished         = runs.Unfinished
	SuspectClaims         = envelopes.SuspectClaims
	TriggerNone           = messages.TriggerNone
	TriggerPassive        = messages.TriggerPassive
	TriggerRun            = messages.TriggerRun
	WaitLimit             = envelopes.WaitLimit
)

var (
	AnswerActivity = runs.AnswerActivity
	AreMoreThreads = messages.AreMoreThreads
	Button         = runs.Button
	ErrAnswered    = runs.ErrAnswered
	ErrClosed      = storage.ErrClosed
	ErrDelivered   = outbox.ErrDelivered
	ErrEnded       = runs.ErrEnded
	ErrFenced      = storage.ErrFenced
	ErrLocked      = storage.ErrLocked
	ErrManyEvents  = runs.ErrManyEvents
	ErrMissed      = runs.ErrMissed
	ErrNotFound    = storage.ErrNotFound
	ErrSettled     = envelopes.ErrSettled
	ErrUnavailable = storage.ErrUnavailable
	ErrUnclear     = storage.ErrUnclear
	IsDerived      = places.IsDerived
	IsFull         = messages.IsFull
	LeasesEnded    = places.LeasesEnded
	NewNotice      = outbox.NewNotice
	NewSteadyClock = storage.NewSteadyClock
	Unavailable    = storage.Unavailable
	Whole          = storage.Whole
)
