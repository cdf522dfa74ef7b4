package adapters

// Switch is a setting that is on or off, or has another value that decides itself. A file may write it without quotes.
type Switch string

// The values that each Switch has.
const (
	On  Switch = "true"
	Off Switch = "false"
)
