package attach

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path"
)

// draft is a copy that is being written under a temporary name.
type draft struct {
	root *os.Root
	name string
	file *os.File
}

func newDraft(root *os.Root) (*draft, error) {
	if err := makeDir(root, incoming); err != nil {
		return nil, err
	}
	name := path.Join(incoming, rand.Text())
	file, err := root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return &draft{root: root, name: name, file: file}, nil
}

// keep makes the draft the copy at name. A copy that is there already has the
// same bytes, or was damaged and is made good.
func (d *draft) keep(name string) error {
	if err := d.file.Sync(); err != nil {
		return err
	}
	if err := d.file.Close(); err != nil {
		return err
	}
	dir := path.Dir(name)
	if err := makeDir(d.root, dir); err != nil {
		return err
	}
	if err := d.root.Rename(d.name, name); err != nil {
		return err
	}
	d.name = ""
	return errors.Join(syncDir(d.root, dir), syncDir(d.root, "."))
}

// discard removes what keep has not taken over.
func (d *draft) discard() {
	if d.name != "" {
		d.file.Close()
		d.root.Remove(d.name)
	}
}

func makeDir(root *os.Root, name string) error {
	if err := root.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// syncDir makes the names in a directory as durable as the files they name.
func syncDir(root *os.Root, name string) error {
	dir, err := root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
