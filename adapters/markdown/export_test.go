package markdown

// GrowParts is Grow with its result taken apart: what stands for the first used
// bytes of the text, and the fence lines that were added.
func GrowParts(text string, how Growing) (body, closing, reopen string, used int, full bool) {
	g := grow(text, how)
	return string(g.out), g.close, g.reopen, g.at, g.full
}
