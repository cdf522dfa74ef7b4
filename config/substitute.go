package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// maxIncluded is the maximum size in bytes of a file that ${file:…} names.
const maxIncluded = 1 << 20

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// substitute replaces ${NAME} with the value of the environment variable, and ${file:path}
// with the file's content without its last line end. It replaces $${ with a plain ${, and
// nothing within replaced text. It returns whether it replaced a reference, and the errors of
// all references.
func (f *file) substitute(text string) (out string, replaced bool, faults []error) {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(text, "${")
		if !found {
			b.WriteString(text)
			return b.String(), replaced, faults
		}
		if plain, escaped := strings.CutSuffix(before, "$"); escaped {
			b.WriteString(plain + "${")
			text = after
			continue
		}
		name, rest, closed := strings.Cut(after, "}")
		if !closed {
			return "", false, append(faults, errors.New("has a ${ without a }; write $${ for a plain ${"))
		}
		value, err := f.reference(name)
		if err != nil {
			faults = append(faults, err)
		}
		b.WriteString(before + value)
		text, replaced = rest, true
	}
}

// reference returns the value of a reference: the name is the text between ${ and }.
func (f *file) reference(name string) (string, error) {
	if path, ok := strings.CutPrefix(name, "file:"); ok {
		f.included = append(f.included, f.resolve(path))
		return include(f.resolve(path))
	}
	if !variable.MatchString(name) {
		return "", errors.New("has a ${…} that is neither ${NAME} nor ${file:path}; write $${ for a plain ${")
	}
	value, ok := os.LookupEnv(name)
	if !ok {
		return "", fmt.Errorf("needs the environment variable %s, which is not set", name)
	}
	return value, nil
}

// resolve makes a relative path start at the folder of the configuration file.
func (f *file) resolve(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(f.name), path)
}

// include reads a file that a value refers to.
func include(path string) (string, error) {
	in, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("needs the file %s: %w", path, cause(err))
	}
	defer in.Close()
	content, err := io.ReadAll(io.LimitReader(in, maxIncluded+1))
	if err != nil {
		return "", fmt.Errorf("needs the file %s: %w", path, cause(err))
	}
	if len(content) > maxIncluded {
		return "", fmt.Errorf("needs the file %s: it is larger than 1 MiB", path)
	}
	text := strings.TrimSuffix(string(content), "\n")
	return strings.TrimSuffix(text, "\r"), nil
}

// cause returns the operating system's error without the path.
func cause(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	return err
}
