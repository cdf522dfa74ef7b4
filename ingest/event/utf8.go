package event

import (
	"bytes"
	"errors"
	"fmt"
	"unicode/utf8"
)

// byteOrderMark begins a file that some editors write.
var byteOrderMark = []byte("\xef\xbb\xbf")

// CheckUTF8 returns an error, whose words follow the name of the text, if a text from outside is not
// UTF-8 or begins with a byte order mark. Such a text could not be stored as its author typed it.
func CheckUTF8(text []byte) error {
	if bytes.HasPrefix(text, byteOrderMark) {
		return errors.New("begins with a byte order mark (the bytes EF BB BF): remove it")
	}
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRune(text[at:])
		if r == utf8.RuneError && size == 1 {
			return fmt.Errorf("is not UTF-8: byte %d is %02X; convert it, for example with iconv", at+1, text[at])
		}
		at += size
	}
	return nil
}
