package remote

// Members passes the members of a JSON object to take, in their order, with the bytes of each value. It returns false if the
// text is not one valid object, if a key has an escape, or if take returns false.
//
// It is for the events that an answer has by the thousand, such as its tokens: in one pass and without an allocation it finds
// the few members that matter. A caller whose events have another form leaves them to package json, whose rules about
// keys are wider: see IsPlain.
func Members(raw []byte, take func(key, value []byte) bool) bool {
	at := space(raw, 0)
	if at == len(raw) || raw[at] != '{' {
		return false
	}
	end := object(raw, at, 0, take)
	return end > 0 && space(raw, end) == len(raw)
}

// Elements passes the elements of a JSON list to take, as Members does.
func Elements(raw []byte, take func(value []byte) bool) bool {
	at := space(raw, 0)
	if at == len(raw) || raw[at] != '[' {
		return false
	}
	end := list(raw, at, 0, take)
	return end > 0 && space(raw, end) == len(raw)
}

// IsPlain reports whether a key consists of small letters, digits and low lines. Package json finds a member under any case of
// its key, but two different plain keys are never one.
func IsPlain(key []byte) bool {
	for _, b := range key {
		if (b < 'a' || b > 'z') && (b < '0' || b > '9') && b != '_' {
			return false
		}
	}
	return true
}

// maxNested bounds the objects and lists inside each other that Members reads.
const maxNested = 32

// The functions below return the end of what begins at a place; 0 if it is not valid.

func object(raw []byte, at, depth int, take func(key, value []byte) bool) int {
	at = space(raw, at+1)
	if at < len(raw) && raw[at] == '}' {
		return at + 1
	}
	for {
		key := at
		if at = quoted(raw, at); at == 0 {
			return 0
		}
		name := raw[key+1 : at-1]
		if at = space(raw, at); at == len(raw) || raw[at] != ':' {
			return 0
		}
		begin := space(raw, at+1)
		if at = value(raw, begin, depth); at == 0 {
			return 0
		}
		if take != nil {
			for _, b := range name {
				if b == '\\' {
					return 0
				}
			}
			if !take(name, raw[begin:at:at]) {
				return 0
			}
		}
		switch at = space(raw, at); {
		case at < len(raw) && raw[at] == '}':
			return at + 1
		case at == len(raw) || raw[at] != ',':
			return 0
		}
		at = space(raw, at+1)
	}
}

func list(raw []byte, at, depth int, take func(value []byte) bool) int {
	at = space(raw, at+1)
	if at < len(raw) && raw[at] == ']' {
		return at + 1
	}
	for {
		begin := at
		if at = value(raw, at, depth); at == 0 || take != nil && !take(raw[begin:at:at]) {
			return 0
		}
		switch at = space(raw, at); {
		case at < len(raw) && raw[at] == ']':
			return at + 1
		case at == len(raw) || raw[at] != ',':
			return 0
		}
		at = space(raw, at+1)
	}
}

func value(raw []byte, at, depth int) int {
	if at == len(raw) || depth == maxNested {
		return 0
	}
	switch raw[at] {
	case '"':
		return quoted(raw, at)
	case '{':
		return object(raw, at, depth+1, nil)
	case '[':
		return list(raw, at, depth+1, nil)
	case 't':
		return literal(raw, at, "true")
	case 'f':
		return literal(raw, at, "false")
	case 'n':
		return literal(raw, at, "null")
	}
	return number(raw, at)
}

func literal(raw []byte, at int, word string) int {
	if len(raw)-at < len(word) || string(raw[at:at+len(word)]) != word {
		return 0
	}
	return at + len(word)
}

func quoted(raw []byte, at int) int {
	if at == len(raw) || raw[at] != '"' {
		return 0
	}
	for at++; at < len(raw); at++ {
		switch b := raw[at]; {
		case b == '"':
			return at + 1
		case b < ' ':
			return 0
		case b == '\\':
			if at++; at == len(raw) {
				return 0
			}
			switch raw[at] {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			case 'u':
				for range 4 {
					if at++; at == len(raw) || !isHex(raw[at]) {
						return 0
					}
				}
			default:
				return 0
			}
		}
	}
	return 0
}

func isHex(b byte) bool { return isDigit(b) || b >= 'a' && b <= 'f' || b >= 'A' && b <= 'F' }

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

func number(raw []byte, at int) int {
	if raw[at] == '-' {
		at++
	}
	whole := at
	if at = digits(raw, at); at == 0 || raw[whole] == '0' && at > whole+1 {
		return 0
	}
	if at < len(raw) && raw[at] == '.' {
		if at = digits(raw, at+1); at == 0 {
			return 0
		}
	}
	if at < len(raw) && (raw[at] == 'e' || raw[at] == 'E') {
		if at++; at < len(raw) && (raw[at] == '+' || raw[at] == '-') {
			at++
		}
		return digits(raw, at)
	}
	return at
}

// digits reads one or more.
func digits(raw []byte, at int) int {
	begin := at
	for at < len(raw) && isDigit(raw[at]) {
		at++
	}
	if at == begin {
		return 0
	}
	return at
}

// space returns the place behind white space.
func space(raw []byte, at int) int {
	for at < len(raw) && (raw[at] == ' ' || raw[at] == '\n' || raw[at] == '\t' || raw[at] == '\r') {
		at++
	}
	return at
}
