package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

func TestGrafanaAlertsAreCurrent(t *testing.T) {
	source, err := os.ReadFile("../../dashboards/rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	want, err := document(source)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../dashboards/grafana-alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("dashboards/grafana-alerts.yml is out of date: run make generate")
	}
	if strings.Contains(string(want), "instance:hotsniff") || strings.Contains(string(want), "$labels") {
		t.Error("a recorded series or a Prometheus variable is left")
	}
}
