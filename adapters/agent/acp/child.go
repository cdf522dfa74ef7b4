package acp

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"parley/ingest/event"
)

const (
	// maxWord bounds a line of the program's standard error, and maxWords the lines that the log gets of a process, each minute.
	maxWord  = 1 << 10
	maxWords = 60
	// lastWords bounds the end of its standard error that is an error's text, in bytes.
	lastWords = 500
	// restTime is the time after the end of a process for which its output is read.
	restTime = time.Second
	// promptTime bounds the writing of a request, which may have files, and replyTime that of any other message.
	promptTime = time.Minute
	replyTime  = 5 * time.Second
)

// child is a process with its own process group. If it ends, the group is killed.
type child struct {
	in      *os.File
	out     *os.File
	done    chan struct{} // closed when the process has ended and has been waited for
	end     error         // of the process; read it after done
	group   int
	words   words
	killing sync.Once
}

// start starts a program. Only env is in its environment, beside PATH, HOME and LANG.
//
// The process gets a signal when the operating system's thread that has started it ends, as that of a daemon that was killed does. So a
// goroutine that is locked to its thread starts it, and lives as long as the process.
func start(command []string, dir string, env []string, heard func(line string)) (*child, error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir, cmd.Env, cmd.SysProcAttr = dir, env, ownGroup()
	var files []*os.File
	closeAll := func() {
		for _, f := range files {
			_ = f.Close()
		}
	}
	pipe := func() (r, w *os.File, err error) {
		if r, w, err = os.Pipe(); err == nil {
			files = append(files, r, w)
		}
		return r, w, err
	}
	stdin, in, err1 := pipe()
	out, stdout, err2 := pipe()
	said, stderr, err3 := pipe()
	if err := errors.Join(err1, err2, err3); err != nil {
		closeAll()
		return nil, err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, stderr
	c := &child{in: in, out: out, done: make(chan struct{})}
	c.words.ended = make(chan struct{})
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // its thread ends with it
		err := cmd.Start()
		if err == nil {
			c.group = cmd.Process.Pid
		}
		started <- err
		if err != nil {
			return
		}
		err = cmd.Wait()
		c.kill() // the processes that it has started
		late := time.Now().Add(restTime)
		_ = out.SetReadDeadline(late) // one of another group may keep the pipes open
		_ = said.SetReadDeadline(late)
		<-c.words.ended
		c.end = err
		_ = in.Close()
		close(c.done)
	}()
	if err := <-started; err != nil {
		closeAll()
		return nil, err
	}
	for _, f := range []*os.File{stdin, stdout, stderr} { // the process has them
		_ = f.Close()
	}
	go c.words.read(said, heard)
	return c, nil
}

// kill ends the process and those of its group.
func (c *child) kill() {
	c.killing.Do(func() { _ = syscall.Kill(-c.group, syscall.SIGKILL) })
}

// ended says how the process has ended, with its last words.
func (c *child) ended() string {
	text := "the agent's program ended"
	if c.end != nil {
		text += ": " + c.end.Error()
	}
	if last := c.words.last(); last != "" {
		text += ": " + last
	}
	return text
}

// environment returns the variables of a program, as NAME=value.
func environment(own map[string]string) (env []string) {
	for _, name := range []string{"PATH", "HOME", "LANG"} {
		if _, given := own[name]; given {
			continue
		}
		if value, set := os.LookupEnv(name); set {
			env = append(env, name+"="+value)
		}
	}
	for name, value := range own {
		env = append(env, name+"="+value)
	}
	slices.Sort(env)
	return env
}

// words is the standard error of a program.
type words struct {
	ended chan struct{} // closed when nothing more is read

	mu   sync.Mutex
	tail []byte
}

// read reads the words. heard gets the first lines of each minute.
func (w *words) read(from *os.File, heard func(line string)) {
	defer close(w.ended)
	defer from.Close()
	lines, left, since := bufio.NewReaderSize(from, maxWord), maxWords, time.Now()
	for {
		line, isPrefix, err := lines.ReadLine()
		if err != nil {
			return
		}
		w.add(line)
		if time.Since(since) > time.Minute {
			left, since = maxWords, time.Now()
		}
		if left > 0 {
			left--
			heard(string(line))
		}
		for isPrefix && err == nil { // the rest of a long line
			_, isPrefix, err = lines.ReadLine()
		}
	}
}

func (w *words) add(line []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.tail) > 0 {
		w.tail = append(w.tail, ' ')
	}
	w.tail = append(w.tail, line...)
	if more := len(w.tail) - lastWords; more > 0 {
		w.tail = slices.Clone(w.tail[more:])
	}
}

// last returns the end of the words, on one line.
func (w *words) last() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(strings.Fields(event.Text(string(w.tail))), " ")
}

// errLong is the error of a line that is longer than the bound, and errMany that of too many bytes since the last prompt.
var (
	errLong = errors.New("the agent's program wrote a line that is longer than max_bytes allows")
	errMany = errors.New("the agent's program wrote more than max_bytes allows")
)

// lineReader reads lines of a bounded length.
type lineReader struct {
	in   *bufio.Reader
	most int // bytes of a line
}

// next returns the next line, without its line break. The bytes are the caller's.
func (l *lineReader) next() ([]byte, error) {
	var line []byte
	for {
		part, err := l.in.ReadSlice('\n')
		if len(line)+len(part) > l.most {
			return nil, errLong
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return line[:len(line)-1], nil
		case errors.Is(err, bufio.ErrBufferFull):
		case len(line) > 0 && errors.Is(err, io.EOF):
			return line, nil // a last line without an end
		default:
			return nil, err
		}
	}
}

// write writes to the process, within a time. Concurrent calls write one after the other.
func (c *child) write(line []byte, most time.Duration) error {
	_ = c.in.SetWriteDeadline(time.Now().Add(most)) // a pipe takes one
	if _, err := c.in.Write(line); err != nil {
		return fmt.Errorf("write to the agent's program: %w", err)
	}
	return nil
}
