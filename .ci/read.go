// Command read reads compose files and Kubernetes files as their programs do: an unknown key is a fault. .ci/packages runs it.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/compose-spec/compose-go/v2/cli"
	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

func main() {
	kinds := map[string]any{
		"ConfigMap": new(core.ConfigMap), "Secret": new(core.Secret), "Service": new(core.Service), "Deployment": new(apps.Deployment),
		"Ingress": new(networking.Ingress), "PodDisruptionBudget": new(policy.PodDisruptionBudget), "ServiceMonitor": new(monitoring.ServiceMonitor),
	}
	for _, file := range os.Args[1:] {
		if err := validate(file, kinds); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", file, err)
			os.Exit(1)
		}
	}
}

func validate(file string, kinds map[string]any) error {
	if filepath.Base(file) == "compose.yaml" {
		options, err := cli.NewProjectOptions([]string{file}, cli.WithEnvFiles(filepath.Join(filepath.Dir(file), ".env")), cli.WithDotEnv, cli.WithProfiles([]string{"*"}))
		if err == nil {
			_, err = options.LoadProject(context.Background())
		}
		return err
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var object struct{ Kind string }
	if err := yaml.Unmarshal(raw, &object); err != nil {
		return err
	}
	if kinds[object.Kind] == nil {
		return fmt.Errorf("the kind %q is not known", object.Kind)
	}
	return yaml.UnmarshalStrict(raw, kinds[object.Kind])
}
