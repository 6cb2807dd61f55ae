package main

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const chart = "../../../manifests/ferromesh"

// with renders the chart with values, written as YAML.
func with(t *testing.T, values string) (string, error) {
	t.Helper()
	wanted := release{name: "ferromesh", namespace: "gloo-mesh"}
	if err := yaml.Unmarshal([]byte(values), &wanted.values); err != nil {
		t.Fatal(err)
	}
	return render(chart, wanted)
}

// kinds parses what was rendered and counts objects by kind.
func kinds(t *testing.T, rendered string) map[string]int {
	t.Helper()
	found := map[string]int{}
	for document := range strings.SplitSeq(rendered, "---\n") {
		var object map[string]any
		if err := yaml.UnmarshalStrict([]byte(document), &object); err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		if kind, is := object["kind"].(string); is {
			found[kind]++
		}
	}
	return found
}

func TestTheChartHasEverythingThatAServerNeeds(t *testing.T) {
	rendered, err := with(t, "")
	if err != nil {
		t.Fatal(err)
	}
	found := kinds(t, rendered)
	for _, kind := range []string{
		"ClusterRole", "ClusterRoleBinding", "Deployment", "NetworkPolicy", "PodDisruptionBudget",
		"Role", "RoleBinding", "Service", "ServiceAccount",
	} {
		if found[kind] != 1 {
			t.Errorf("%d objects of kind %s", found[kind], kind)
		}
	}
	if found["CustomResourceDefinition"] < 11 {
		t.Errorf("%d definitions", found["CustomResourceDefinition"])
	}
}

func TestEveryValueMatters(t *testing.T) {
	for values, wanted := range map[string]string{
		"replicas: 3": "replicas: 3",
		"image: {repository: registry.example/f, tag: v1}":              `image: "registry.example/f:v1"`,
		"image: {digest: sha256:" + strings.Repeat("0", 64) + "}":       "ferromesh@sha256:0000",
		"image: {pullPolicy: Always}":                                   "imagePullPolicy: Always",
		"image: {pullSecrets: [key]}":                                   "imagePullSecrets:\n  - name: key",
		"settingsName: other":                                           `value: "other"`,
		"log: {level: debug}":                                           `value: "debug"`,
		"log: {format: text}":                                           `value: "text"`,
		"webhook: {deadline: 50}":                                       `value: "50"`,
		"resources: {limits: {memory: 9Gi}}":                            "memory: 9Gi",
		"networkPolicy: {metricsFrom: [{podSelector: {}}]}":             "- podSelector: {}",
		"networkPolicy: {egress: [{ports: [{port: 6443}]}]}":            "- Egress",
		"priorityClassName: system-cluster-critical":                    "priorityClassName: system-cluster-critical",
		"nodeSelector: {disk: fast}":                                    "disk: fast",
		"tolerations: [{key: a, operator: Exists, effect: NoSchedule}]": "operator: Exists",
		"podAnnotations: {note: x}":                                     "note: x",
		"podLabels: {team: mesh}":                                       "team: mesh",
	} {
		rendered, err := with(t, values)
		if err != nil {
			t.Errorf("%s: %v", values, err)
			continue
		}
		kinds(t, rendered)
		if !strings.Contains(rendered, wanted) {
			t.Errorf("%s: nothing says %q", values, wanted)
		}
	}
	for values, kind := range map[string]string{
		"replicas: 1":                     "PodDisruptionBudget",
		"networkPolicy: {enabled: false}": "NetworkPolicy",
	} {
		rendered, err := with(t, values)
		if err != nil {
			t.Fatal(err)
		}
		if kinds(t, rendered)[kind] != 0 {
			t.Errorf("%s: there is a %s", values, kind)
		}
	}
}

func TestWhatTheSchemaDoesNotKnowIsRefused(t *testing.T) {
	for _, values := range []string{
		"replica: 2",
		"replicas: 0",
		"replicas: two",
		"image: {name: f}",
		"image: {digest: sha256:short}",
		"image: {pullPolicy: Sometimes}",
		"log: {lvl: debug}",
		"log: {format: xml}",
		"webhook: {port: 1}",
		"webhook: {deadline: 5000}",
		"resources: {memory: 1Gi}",
		"networkPolicy: {metricsFrom: [{}]}",
		"networkPolicy: {from: []}",
		"nodeSelector: {a: 1}",
		"tolerations: [{effect: Never}]",
	} {
		if _, err := with(t, values); err == nil || !strings.Contains(err.Error(), "schema") {
			t.Errorf("%s: %v", values, err)
		}
	}
}

func TestAReleaseOfAnotherNameSharesNothing(t *testing.T) {
	rendered, err := render(chart, release{name: "second", namespace: "other"})
	if err != nil {
		t.Fatal(err)
	}
	for document := range strings.SplitSeq(rendered, "---\n") {
		var object struct {
			Kind     string
			Metadata struct{ Name, Namespace string }
		}
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			t.Fatal(err)
		}
		switch object.Kind {
		case "", "CustomResourceDefinition":
		default:
			if object.Metadata.Name != "second" {
				t.Errorf("%s %s", object.Kind, object.Metadata.Name)
			}
		}
	}
}
