package daemon

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"parley/adapters/web/access"
	"parley/config"
	"parley/config/secret"
)

// admitLocal gives the built-in workspace its token. It changes no other configuration.
func admitLocal(c *config.Config) error {
	for i, w := range c.Workspaces {
		if !config.IsLocal(w.Config) {
			continue
		}
		token, err := localToken(localTokenFile(c))
		if err != nil {
			return fmt.Errorf("token of workspace %s: %w", w.ID, err)
		}
		c.Workspaces[i].Config = access.LocalConfig(token)
	}
	return nil
}

// LocalToken returns the token of the built-in workspace, which the first start of the daemon makes.
func LocalToken(c *config.Config) (secret.Value, error) {
	content, err := os.ReadFile(localTokenFile(c))
	return secret.New(strings.TrimSpace(string(content))), err
}

// localTokenFile returns the file that holds the token of the built-in workspace: beside the store, or
// beside the folder of attachments if the store is no file.
func localTokenFile(c *config.Config) string {
	return filepath.Join(filepath.Dir(cmp.Or(c.Store.Path, c.Attachments.Dir)), "local.token")
}

// localToken returns the token in a file. It makes the file, which only its owner may read, if there
// is none.
func localToken(path string) (secret.Value, error) {
	made := rand.Text()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return secret.Value{}, err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case err == nil:
		_, err = file.WriteString(made + "\n")
		return secret.New(made), errors.Join(err, file.Close())
	case !errors.Is(err, fs.ErrExist):
		return secret.Value{}, err
	}
	content, err := os.ReadFile(path)
	token := secret.New(strings.TrimSpace(string(content)))
	if err == nil && token.IsWeak(secret.MinLength) {
		err = fmt.Errorf("%s holds no token of at least %d characters: remove it, and the next start makes another", path, secret.MinLength)
	}
	return token, err
}
