package lab

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Page is one scrape of /metrics.
type Page string

var httpClient = &http.Client{Timeout: 10 * time.Second}

// scrapeLimit bounds what is read of one scrape.
const scrapeLimit = 256 << 20

// Scrape reads the metrics of a daemon.
func Scrape(url string) (Page, error) {
	resp, err := httpClient.Get(url + "/metrics")
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", errors.New("GET /metrics: " + resp.Status)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, scrapeLimit))
	return Page(body), err
}

// Sum adds up the series of a name whose labels hold all the texts given.
func (p Page) Sum(name string, labels ...string) float64 {
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

// Command sums the requests of a command.
func (p Page) Command(name string) float64 {
	return p.Sum("hotsniff_commands_total", fmt.Sprintf("command=%q", name))
}

// Settled scrapes until done says so or nothing changes any more for a second.
func Settled(url string, done func(Page) bool) (Page, error) {
	var last Page
	var since time.Time
	var value float64
	for {
		p, err := Scrape(url)
		if err != nil || done(p) {
			return p, err
		}
		last = p
		if v := p.Sum("hotsniff_requests_total"); v != value || since.IsZero() {
			value, since = v, time.Now()
		} else if time.Since(since) > time.Second {
			return last, nil
		}
		time.Sleep(100 * time.Millisecond)
	}
}
