package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// page is one scrape of /metrics.
type page string

var httpClient = &http.Client{Timeout: 10 * time.Second}

// scrapeLimit bounds what is read of one scrape.
const scrapeLimit = 256 << 20

// scrape reads the metrics of a daemon.
func scrape(url string) (page, error) {
	resp, err := httpClient.Get(url + "/metrics")
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", errors.New("GET /metrics: " + resp.Status)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, scrapeLimit))
	return page(body), err
}

// sum adds up the series of a name whose labels hold all the texts given.
func (p page) sum(name string, labels ...string) float64 {
	total := 0.0
next:
	for line := range strings.Lines(string(p)) {
		rest, ok := strings.CutPrefix(line, name)
		if !ok || rest[0] != ' ' && rest[0] != '{' {
			continue
		}
		for _, l := range labels {
			if !strings.Contains(rest, l) {
				continue next
			}
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(rest[strings.LastIndexByte(rest, ' ')+1:]), 64)
		if err == nil {
			total += v
		}
	}
	return total
}

// command sums the requests of a command.
func (p page) command(name string) float64 {
	return p.sum("hotsniff_commands_total", fmt.Sprintf("command=%q", name))
}

// settled scrapes until done says so or nothing changes any more for a second.
func settled(url string, done func(page) bool) (page, error) {
	var last page
	var since time.Time
	var value float64
	for {
		p, err := scrape(url)
		if err != nil || done(p) {
			return p, err
		}
		last = p
		if v := p.sum("hotsniff_requests_total"); v != value || since.IsZero() {
			value, since = v, time.Now()
		} else if time.Since(since) > time.Second {
			return last, nil
		}
		time.Sleep(100 * time.Millisecond)
	}
}
