package commands

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"parley/config"
)

// deployed is the folder of the files to install.
const deployed = "../../deploy"

// text returns a file to install.
func text(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(deployed, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// decode reads a YAML document of the files to install.
func decode(t *testing.T, content string, into any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(content), into); err != nil {
		t.Fatalf("%v\n%s", err, content)
	}
}

// soundAt checks a configuration as parley check --offline does, with its environment, and returns it.
func soundAt(t *testing.T, file string, environment map[string]string) *config.Config {
	t.Helper()
	for name, value := range environment {
		t.Setenv(name, value)
	}
	file, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	if got := parley(t, t.TempDir(), "check", "--offline", "--config", file); got.status != 0 {
		t.Fatalf("%s: %+v", file, got)
	}
	c, err := config.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	if host, port, _ := strings.Cut(c.Listen, ":"); host != "0.0.0.0" || port != "8484" {
		t.Errorf("%s listens on %s", file, c.Listen)
	}
	return c
}

// filled reads an example of an environment, and gives each empty variable a value.
func filled(t *testing.T, name string) map[string]string {
	t.Helper()
	environment := map[string]string{}
	for line := range strings.Lines(text(t, name)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(line, "#") {
			switch {
			case value != "", strings.HasSuffix(key, "_KEY"): // a model may need no key
			case strings.HasSuffix(key, "_URL"):
				value = "https://models.example.com/v1"
			default:
				value = "canary-7f3a9c51d2e84b60a1c35e97"
			}
			environment[key] = value
		}
	}
	return environment
}

// composed is a service of a compose file.
type composed struct {
	Image, Command        any
	Build                 struct{ Context, Dockerfile string }
	Volumes, Tmpfs, Ports []string
	EnvFile               string `yaml:"env_file"`
	Environment           map[string]string
	ReadOnly              bool     `yaml:"read_only"`
	CapDrop               []string `yaml:"cap_drop"`
	StopGracePeriod       string   `yaml:"stop_grace_period"`
}

// TestDeployedCompose: the nodes of each compose file have a sound configuration at the places and the port that the
// image uses, and more time to stop than the daemon takes. Every image has a version.
func TestDeployedCompose(t *testing.T) {
	for folder, nodes := range map[string]int{"one": 1, "two": 2} {
		dir := filepath.Join("docker", folder)
		var file struct{ Services map[string]composed }
		decode(t, text(t, filepath.Join(dir, "compose.yaml")), &file)
		environment := filled(t, filepath.Join(dir, "env.example"))
		c := soundAt(t, filepath.Join(deployed, dir, "parley.yaml"), environment)
		for _, name := range regexp.MustCompile(`\$\{(\w+)`).FindAllStringSubmatch(text(t, filepath.Join(dir, "compose.yaml")), -1) {
			if _, known := environment[name[1]]; !known {
				t.Errorf("%s: env.example has no %s", folder, name[1])
			}
		}
		found := 0
		for name, s := range file.Services {
			image := fmt.Sprint(s.Image)
			if _, tag, ok := strings.Cut(image, ":"); !ok || tag == "latest" {
				t.Errorf("%s: %s has the image %s without a version", folder, name, image)
			}
			for _, mount := range s.Volumes {
				if from, _, _ := strings.Cut(mount, ":"); strings.HasPrefix(from, ".") {
					if _, err := os.Stat(filepath.Join(deployed, dir, from)); err != nil {
						t.Errorf("%s: %s mounts %v", folder, name, err)
					}
				}
			}
			if image != "parley:"+version {
				continue
			}
			found++
			if _, err := os.Stat(filepath.Join(deployed, dir, s.Build.Context, s.Build.Dockerfile)); err != nil {
				t.Error(err)
			}
			grace, err := time.ParseDuration(s.StopGracePeriod)
			if err != nil || grace <= c.Shutdown || !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || s.EnvFile != ".env" {
				t.Errorf("%s: %s: %v, %+v", folder, name, err, s)
			}
		}
		if found != nodes {
			t.Errorf("%s: %d nodes", folder, found)
		}
		if nodes == 2 {
			for _, node := range strings.Fields(file.Services["caddy"].Environment["PARLEY_NODES"]) {
				if name, port, _ := strings.Cut(node, ":"); file.Services[name].Image == nil || port != "8484" {
					t.Errorf("caddy knows a node %s", node)
				}
			}
			if c.Store.Engine != config.Postgres {
				t.Error("two nodes need PostgreSQL")
			}
		}
	}
}

// takes checks that the program has the command of a line with its flags.
func takes(t *testing.T, line ...string) {
	t.Helper()
	if got := parley(t, t.TempDir(), append(slices.Clone(line[1:]), "--help")...); got.status != 0 || path.Base(line[0]) != "parley" {
		t.Errorf("%q: %+v", line, got)
	}
}

// TestDeployedUnits: the units name commands of the program, and systemd takes them and finds little that they could
// harm.
func TestDeployedUnits(t *testing.T) {
	dir := t.TempDir()
	files, _ := filepath.Glob(filepath.Join(deployed, "systemd/*"))
	for _, file := range files {
		unit := text(t, strings.TrimPrefix(file, deployed+"/"))
		for _, line := range regexp.MustCompile(`/usr/bin/parley( [a-z-]+| /\S+)+`).FindAllString(unit, -1) {
			takes(t, strings.Fields(line)...)
		}
		write(t, dir, filepath.Base(file), strings.ReplaceAll(unit, "/usr/bin/parley", os.Args[0]))
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil || len(files) != 3 {
		t.Skipf("%d units are not judged: systemd-analyze is not here", len(files))
	}
	for _, line := range []string{
		"verify --man=no parley.service parley-backup.service parley-backup.timer",
		"security --offline=true --threshold=25 parley.service", "security --offline=true --threshold=25 parley-backup.service",
	} {
		command := exec.CommandContext(t.Context(), analyze, strings.Fields(line)...)
		command.Dir = dir
		if out, err := command.CombinedOutput(); err != nil || strings.HasPrefix(line, "verify") && len(out) > 0 {
			t.Errorf("systemd-analyze %s: %v\n%s", line, err, out)
		}
	}
}

// TestDeployedImage: the image is made with the Go of this module, runs as a user without rights, and its commands
// are those of the program.
func TestDeployedImage(t *testing.T) {
	file := text(t, "Dockerfile")
	module, err := os.ReadFile(filepath.Join(repository, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	toolchain := regexp.MustCompile(`(?m)^toolchain go(\S+)$`).FindStringSubmatch(string(module))[1]
	for _, part := range []string{"FROM golang:" + toolchain + "-", "FROM scratch\n", "USER 65532:65532\n", "EXPOSE 8484\n", "ARG VERSION=" + version + "\n", "PARLEY_CONFIG=/etc/parley/parley.yaml\n", "prepare.sh /image/usr/share/doc/parley && cp --parents LICENSE README.md "} {
		if !strings.Contains(file, part) {
			t.Errorf("the Dockerfile has no %q", part)
		}
	}
	words := func(instruction string) (list []string) {
		decode(t, regexp.MustCompile(`(?m)^` + instruction + `.*?(\[.*\])$`).FindStringSubmatch(file)[1], &list)
		return list
	}
	takes(t, append(words("ENTRYPOINT"), words("CMD")...)...)
	takes(t, words("HEALTHCHECK")...)
}

// TestDeployedRelease: the files of the packages are there, and no other but what prepare.sh makes.
func TestDeployedRelease(t *testing.T) {
	var release struct {
		Nfpms []struct {
			Contents []struct{ Src, Dst, Type string }
			Scripts  map[string]string
		}
	}
	decode(t, text(t, ".goreleaser.yaml"), &release)
	const made = "cmd/parley/deploy/made/"
	prepared := 0
	for _, c := range release.Nfpms[0].Contents {
		switch _, err := os.Stat(filepath.Join(repository, c.Src)); {
		case c.Type == "dir", err == nil && !strings.HasPrefix(c.Src, made):
		case strings.HasPrefix(c.Src, made):
			prepared++
		default:
			t.Errorf("%+v: %v", c, err)
		}
		if strings.HasPrefix(c.Dst, "/etc/") && c.Type != "dir" && c.Type != "config|noreplace" {
			t.Errorf("an upgrade would replace %s", c.Dst)
		}
	}
	for _, script := range release.Nfpms[0].Scripts {
		if out, err := exec.CommandContext(t.Context(), "sh", "-n", filepath.Join(repository, script)).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", script, err, out)
		}
	}
	if prepared != 6 || len(release.Nfpms[0].Scripts) != 3 {
		t.Errorf("%d made files, %d scripts", prepared, len(release.Nfpms[0].Scripts))
	}
}

// TestAnInstallationFollowsNoLink runs the script of the packages in a folder, as root, with the user nobody for parley: the
// file of secrets cannot be replaced by the daemon's user, and one that leads to another file gets no new rights.
func TestAnInstallationFollowsNoLink(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("skipped: only root may give files to others")
	}
	dir, err := os.MkdirTemp("", "parley-install-") // the folder of the test is root's alone
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	run := func(command string) error {
		out, err := exec.CommandContext(t.Context(), "sh", "-ec", "cd "+dir+"; "+command).CombinedOutput()
		if err != nil {
			t.Logf("%s: %v %s", command, err, out)
		}
		return err
	}
	group, err := exec.CommandContext(t.Context(), "id", "-gn", "nobody").Output()
	if err != nil {
		t.Skip("skipped: there is no user nobody")
	}
	script := strings.NewReplacer("root:parley", "root:"+strings.TrimSpace(string(group)), "parley:parley", "nobody:"+strings.TrimSpace(string(group)), "passwd parley", "passwd nobody",
		"/etc/parley", dir+"/etc", "/var/lib/parley", dir+"/lib", "/var/backups/parley", dir+"/backups", "/run/systemd/system", dir+"/no").Replace(text(t, "packages/postinstall.sh"))
	if err := os.WriteFile(filepath.Join(dir, "script"), []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	const install, as = "sh ./script configure 0.1.0", "setpriv --reuid nobody --clear-groups --regid nogroup "
	if err := run("chmod 755 .; mkdir etc lib backups; echo A=1 >etc/env; chmod 640 etc/env; echo secret >shadow; chmod 600 shadow; " + install); err != nil {
		t.Fatal(err)
	}
	if run(as+"touch etc/parley.yaml") != nil || run(as+"mv etc/env etc/other") == nil || run(as+"rm -f etc/env") == nil || run(as+"ln -sf ../shadow etc/env") == nil {
		t.Error("the daemon's user adds no file to its folder, or replaces that of root")
	}
	if err := run("rm etc/env; " + as + "ln -s ../shadow etc/env"); err != nil {
		t.Fatal(err)
	}
	if run(install) == nil {
		t.Error("an installation goes on with a link")
	}
	if run(`test "$(stat -c "%U %G %a" shadow)" = "root root 600"`) != nil {
		t.Error("the file behind the link has other rights")
	}
}
