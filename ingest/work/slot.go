package work

// Slot holds one payload of a type in each claim, in memory, until the claim ends. Slots are the
// same if their types and their keys are equal.
type Slot[T any] struct{ Key any }

// Payload holds what Accepted puts into a claim.
var Payload = Slot[any]{Intake}

// Put stores a payload in a claim. The store must hold all that is needed to work without the
// payload.
func (s Slot[T]) Put(c *Claim, payload T) { c.payloads.Store(s, payload) }

// PutNew is Put if the claim has no payload. It reports whether there was none.
func (s Slot[T]) PutNew(c *Claim, payload T) bool {
	_, loaded := c.payloads.LoadOrStore(s, payload)
	return !loaded
}

// Get returns the claim's payload; the zero value if there is none.
func (s Slot[T]) Get(c *Claim) T {
	payload, _ := c.payloads.Load(s)
	value, _ := payload.(T)
	return value
}

// Take is Get, and removes the payload.
func (s Slot[T]) Take(c *Claim) T {
	payload, _ := c.payloads.LoadAndDelete(s)
	value, _ := payload.(T)
	return value
}
