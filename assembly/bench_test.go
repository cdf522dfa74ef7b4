package assembly_test

import (
	"strings"
	"testing"

	"parley/assembly"
)

// fullWindow returns fifty turns of about two thousand bytes each.
func fullWindow() []assembly.Turn {
	turns := make([]assembly.Turn, 50)
	for i := range turns {
		n := int64(i) * 10
		turns[i] = assembly.Turn{
			Context:  []assembly.Line{said(n, ash, strings.Repeat("fine by me\n", 30)), said(n+1, olivia, "👩‍💻 on it")},
			Messages: []assembly.Line{said(n+2, olivia, "<@UBOT> "+strings.Repeat("and tomorrow? ", 50))},
			Reply:    ptr(own(n+3, strings.Repeat("Yes. ", 150))),
		}
	}
	return turns
}

func BenchmarkAssemble(b *testing.B) {
	turns := fullWindow()
	b.ReportAllocs()
	for b.Loop() {
		assembly.Assemble("echo", turns, wide, mentions)
	}
}

// BenchmarkAssembleLongThread shows that the cost depends on the window, not on the thread.
func BenchmarkAssembleLongThread(b *testing.B) {
	var turns []assembly.Turn
	for range 100 {
		turns = append(turns, fullWindow()...)
	}
	b.ReportAllocs()
	for b.Loop() {
		assembly.Assemble("echo", turns, wide, mentions)
	}
}

func BenchmarkJoin(b *testing.B) {
	messages := assembly.Assemble("echo", fullWindow(), wide, mentions)
	b.ReportAllocs()
	for b.Loop() {
		assembly.Join(messages)
	}
}
