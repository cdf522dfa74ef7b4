package envelopes

import "errors"

// ErrSettled means that the envelope is settled already.
var ErrSettled = errors.New("the envelope is settled already")
