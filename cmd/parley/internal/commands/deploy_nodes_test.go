package commands

import (
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"parley/config"
)

// manifest has the members of a Kubernetes object that the tests read.
type manifest struct {
	Kind     string
	Metadata struct {
		Name   string
		Labels map[string]string
	}
	Data       map[string]string
	StringData map[string]string `yaml:"stringData"`
	Spec       yaml.Node
}

// labelled is a selector.
type labelled struct {
	MatchLabels map[string]string `yaml:"matchLabels"`
}

// httpGet is a probe of a container.
type httpGet struct {
	HTTPGet struct{ Path, Port string } `yaml:"httpGet"`
}

// pods is the specification of the Deployment.
type pods struct {
	Replicas int
	Selector labelled
	Template struct {
		Metadata struct{ Labels map[string]string }
		Spec     struct {
			Grace      int `yaml:"terminationGracePeriodSeconds"`
			Containers []struct {
				Image     string
				Args      []string
				Startup   httpGet `yaml:"startupProbe"`
				Liveness  httpGet `yaml:"livenessProbe"`
				Readiness httpGet `yaml:"readinessProbe"`
				Ports     []struct {
					Name string
					Port int `yaml:"containerPort"`
				}
				Lifecycle struct {
					PreStop struct{ Sleep struct{ Seconds int } } `yaml:"preStop"`
				}
				Mounts []struct{ Name, MountPath string } `yaml:"volumeMounts"`
			}
			Volumes []struct {
				Name      string
				ConfigMap struct {
					Name  string
					Items []struct{ Key, Path string }
				} `yaml:"configMap"`
			}
		}
	}
}

// TestDeployedKubernetes: the files fit together, the configuration in them is sound, and the daemon serves what the
// probes ask.
func TestDeployedKubernetes(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join(deployed, "kubernetes/*.yaml"))
	objects := map[string]manifest{}
	for _, name := range files {
		var m manifest
		decode(t, text(t, strings.TrimPrefix(name, deployed+"/")), &m)
		if m.Metadata.Name != "parley" {
			t.Errorf("%s: %+v", name, m.Metadata)
		}
		objects[m.Kind] = m
	}
	if kinds := slices.Sorted(maps.Keys(objects)); !slices.Equal(kinds, []string{"ConfigMap", "Deployment", "Ingress", "PodDisruptionBudget", "Secret", "Service", "ServiceMonitor"}) {
		t.Fatalf("%q", kinds)
	}
	var d pods
	node := objects["Deployment"].Spec
	if err := node.Decode(&d); err != nil {
		t.Fatal(err)
	}
	container, dir := d.Template.Spec.Containers[0], t.TempDir()
	for _, item := range d.Template.Spec.Volumes[0].ConfigMap.Items {
		content, known := objects["ConfigMap"].Data[item.Key]
		if !known {
			t.Errorf("the ConfigMap has no %s", item.Key)
		}
		write(t, dir, "etc/"+item.Path, strings.ReplaceAll(content, "/etc/parley-secrets", filepath.Join(dir, "secrets")))
	}
	for key, value := range objects["Secret"].StringData {
		write(t, dir, "secrets/"+key, value+"\n")
	}
	c := soundAt(t, filepath.Join(dir, "etc/parley.yaml"), nil)
	drain := time.Duration(container.Lifecycle.PreStop.Sleep.Seconds)*time.Second + c.Shutdown
	if grace := time.Duration(d.Template.Spec.Grace) * time.Second; grace <= drain || d.Replicas < 2 || c.Store.Engine != config.Postgres {
		t.Errorf("%v to stop, of %v; %d replicas on %s", grace, drain, d.Replicas, c.Store.Engine)
	}
	if container.Image != "parley:"+version || container.Ports[0].Port != 8484 || !slices.Equal(container.Args, []string{"run"}) {
		t.Errorf("%+v", container)
	}
	for _, kind := range []string{"Service", "PodDisruptionBudget", "ServiceMonitor"} {
		var s struct {
			Selector labelled
			Ports    []struct {
				TargetPort string `yaml:"targetPort"`
			}
		}
		spec := objects[kind].Spec
		if kind == "Service" {
			var flat struct{ Selector map[string]string }
			if err := spec.Decode(&flat); err != nil {
				t.Fatal(err)
			}
			s.Selector.MatchLabels = flat.Selector
		} else if err := spec.Decode(&s); err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(s.Selector.MatchLabels, d.Template.Metadata.Labels) || !maps.Equal(objects[kind].Metadata.Labels, d.Selector.MatchLabels) {
			t.Errorf("%s selects %v", kind, s.Selector.MatchLabels)
		}
	}
	base := serving(t)
	for _, probe := range []httpGet{container.Startup, container.Liveness, container.Readiness} {
		if status, _ := fetch(t, base+probe.HTTPGet.Path); status != http.StatusOK || probe.HTTPGet.Port != container.Ports[0].Name {
			t.Errorf("%+v: %d", probe, status)
		}
	}
}

// serving starts a daemon, and returns its address.
func serving(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "parley.yaml", "listen: 127.0.0.1:0\nconsole: {listen: \"\"}\n")
	return "http://" + start(t, dir, os.Args[0], "run").address()
}

// fetch returns the answer of an address.
func fetch(t *testing.T, address string) (status int, body string) {
	t.Helper()
	response, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(content)
}

// TestDeployedProxies: each proxy forwards every route of the API and of the hooks, and no route of operators.
func TestDeployedProxies(t *testing.T) {
	base := serving(t)
	status, body := fetch(t, base+"/openapi.json")
	var api struct{ Paths map[string]any }
	if decode(t, body, &api); status != http.StatusOK || len(api.Paths) < 20 {
		t.Fatalf("%d, %d paths", status, len(api.Paths))
	}
	routes := append(slices.Collect(maps.Keys(api.Paths)), "/sdk/parley.js", "/ui/conversation.js", "/chat", "/openapi.json")
	caddy := strings.Fields(regexp.MustCompile(`@parley path (.*)`).FindStringSubmatch(text(t, "proxy/Caddyfile"))[1])
	var nginx []*regexp.Regexp
	for _, location := range regexp.MustCompile(`location (~ )?(\S+)\s+\{[^}]*proxy_pass`).FindAllStringSubmatch(text(t, "proxy/nginx.conf"), -1) {
		form := location[2]
		if location[1] == "" {
			form = "^" + regexp.QuoteMeta(form)
		}
		nginx = append(nginx, regexp.MustCompile(form))
	}
	var ingress struct {
		Spec struct {
			Rules []struct {
				HTTP struct {
					Paths []struct {
						Path string
						Type string `yaml:"pathType"`
					}
				} `yaml:"http"`
			}
		}
	}
	decode(t, text(t, "kubernetes/ingress.yaml"), &ingress)
	for _, route := range routes {
		inside := slices.Contains([]string{"/", "/healthz", "/readyz", "/metrics"}, route)
		for name, forwards := range map[string]bool{
			"Caddyfile": slices.ContainsFunc(caddy, func(form string) bool {
				folder, below := strings.CutSuffix(form, "*")
				return route == form || below && strings.HasPrefix(route, folder)
			}),
			"nginx.conf": slices.ContainsFunc(nginx, func(form *regexp.Regexp) bool { return form.MatchString(route) }),
			"ingress.yaml": slices.ContainsFunc(ingress.Spec.Rules[0].HTTP.Paths, func(p struct {
				Path string
				Type string `yaml:"pathType"`
			}) bool {
				return route == p.Path || p.Type == "Prefix" && strings.HasPrefix(route, p.Path)
			}),
		} {
			if forwards == inside {
				t.Errorf("%s: %s is forwarded: %v", name, route, forwards)
			}
		}
	}
}
