// Package kubelint decodes the Kubernetes examples into the types of the API,
// strictly, and checks what they promise. It is a module of its own, so that
// these types stay out of hotsniff's go.mod.
package kubelint

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// objects decodes every document of a file. Unknown fields, fields given twice
// and values of the wrong type are errors.
func objects(t *testing.T, path string) []any {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all []any
	for i, doc := range bytes.Split(data, []byte("\n---\n")) {
		obj, err := decode(doc)
		if err != nil {
			t.Errorf("%s, document %d: %v", path, i+1, err)
			continue
		}
		all = append(all, obj)
	}
	return all
}

func decode(doc []byte) (any, error) {
	var kind struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := yaml.Unmarshal(doc, &kind); err != nil {
		return nil, err
	}
	var obj any
	switch kind.APIVersion + " " + kind.Kind {
	case "v1 Namespace":
		obj = &corev1.Namespace{}
	case "v1 ConfigMap":
		obj = &corev1.ConfigMap{}
	case "apps/v1 StatefulSet":
		obj = &appsv1.StatefulSet{}
	case "apps/v1 DaemonSet":
		obj = &appsv1.DaemonSet{}
	default:
		return nil, fmt.Errorf("%s %s: a kind that is not expected here", kind.APIVersion, kind.Kind)
	}
	return obj, yaml.UnmarshalStrict(doc, obj)
}

// podSpec returns the pod of a workload.
func podSpec(obj any) (*corev1.PodTemplateSpec, map[string]string) {
	switch o := obj.(type) {
	case *appsv1.StatefulSet:
		return &o.Spec.Template, o.Spec.Selector.MatchLabels
	case *appsv1.DaemonSet:
		return &o.Spec.Template, o.Spec.Selector.MatchLabels
	}
	return nil, nil
}

func TestExamples(t *testing.T) {
	files, err := filepath.Glob("../../packaging/kubernetes/*.yml")
	if err != nil || len(files) < 2 {
		t.Fatalf("got %v, %v; want the examples", files, err)
	}
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			found := 0
			for _, obj := range objects(t, path) {
				pod, selector := podSpec(obj)
				if pod == nil {
					continue
				}
				for k, v := range selector {
					if pod.Labels[k] != v {
						t.Errorf("the selector %s=%s does not match the pod's labels %v", k, v, pod.Labels)
					}
				}
				checkPod(t, &pod.Spec, strings.HasPrefix(filepath.Base(path), "daemonset"))
				found++
			}
			if found != 1 {
				t.Errorf("got %d workloads; want one", found)
			}
		})
	}
}

// checkPod holds what the examples say of themselves.
func checkPod(t *testing.T, pod *corev1.PodSpec, host bool) {
	t.Helper()
	if pod.HostNetwork != host {
		t.Errorf("hostNetwork: got %v; want %v", pod.HostNetwork, host)
	}
	if host && pod.DNSPolicy != corev1.DNSClusterFirstWithHostNet {
		t.Errorf("dnsPolicy: got %q", pod.DNSPolicy)
	}
	i := slices.IndexFunc(pod.Containers, func(c corev1.Container) bool { return c.Name == "hotsniff" })
	if i < 0 {
		t.Fatal("there is no container hotsniff")
	}
	c := &pod.Containers[i]
	s := c.SecurityContext
	if s == nil || s.Capabilities == nil {
		t.Fatal("there is no securityContext")
	}
	if !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) || !slices.Equal(s.Capabilities.Add, []corev1.Capability{"NET_RAW"}) {
		t.Errorf("capabilities: got %+v; want NET_RAW alone", s.Capabilities)
	}
	isTrue := func(b *bool) bool { return b != nil && *b }
	if !isTrue(s.ReadOnlyRootFilesystem) || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || isTrue(s.Privileged) {
		t.Error("the root filesystem can be written, or privileges can grow")
	}
	if s.SeccompProfile == nil || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Error("seccompProfile: want RuntimeDefault")
	}
	probe(t, "livenessProbe", c.LivenessProbe, "/-/healthy")
	probe(t, "readinessProbe", c.ReadinessProbe, "/-/ready")
	for _, list := range []corev1.ResourceList{c.Resources.Requests, c.Resources.Limits} {
		if list.Cpu().IsZero() || list.Memory().IsZero() {
			t.Errorf("resources: got %v; want CPU and memory", list)
		}
	}
	named := map[string]bool{}
	for _, v := range pod.Volumes {
		named[v.Name] = true
	}
	for _, m := range c.VolumeMounts {
		if !named[m.Name] {
			t.Errorf("volume %s is mounted but not there", m.Name)
		}
	}
}

func probe(t *testing.T, name string, p *corev1.Probe, path string) {
	t.Helper()
	if p == nil || p.HTTPGet == nil || p.HTTPGet.Path != path || p.HTTPGet.Port.String() != "metrics" {
		t.Errorf("%s: want GET %s at the port metrics", name, path)
	}
}

// TestStrictness: the check would see a field that is misspelt.
func TestStrictness(t *testing.T) {
	for _, doc := range []string{
		"apiVersion: apps/v1\nkind: DaemonSet\nspec:\n  templte: {}\n",
		"apiVersion: apps/v1\nkind: DaemonSet\nspec:\n  minReadySeconds: soon\n",
		"apiVersion: apps/v1\nkind: DaemonSet\nkind: DaemonSet\n",
		"apiVersion: apps/v2\nkind: DaemonSet\n",
	} {
		if _, err := decode([]byte(doc)); err == nil {
			t.Errorf("no error for\n%s", doc)
		}
	}
}
