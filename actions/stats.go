package actions

import "time"

// DurationBuckets are the upper bounds, in seconds, of Stats.DurationCounts.
var DurationBuckets = [...]float64{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5}

// Stats is a copy of the publisher's counters, as of its last attempt.
type Stats struct {
	Results  [NumResults]uint64 // attempts to publish, by how they ended
	Retained [NumResults]uint64 // attempts to retain

	Replaced  uint64 // lists that a newer one replaced before they were looked at
	Truncated uint64 // times that a list was halved to fit the format
	Seq       uint64 // number of the last list

	Receivers   int64     // subscribers that the last PUBLISH reached (cluster: on that node)
	Bytes       uint64    // of lists that were published
	LastSuccess time.Time // zero: none yet
	Failing     int       // failures in a row, 0 when all is well
	LastError   Result    // ResultOK when all is well

	// How long PUBLISH took, successful or not: counts by upper bound
	// (cumulative, as in Prometheus), their number and their sum.
	DurationCounts [len(DurationBuckets)]uint64
	DurationCount  uint64
	DurationSum    float64 // seconds

	Manual ManualStats
}

// Stats returns the counters. Safe for any goroutine.
func (p *Publisher) Stats() Stats {
	s := *p.stats.Load()
	s.Replaced = p.replaced.Load()
	s.Manual = p.manual.stats()
	return s
}

func (s *Stats) observe(res Result, took time.Duration, receivers, bytes int64) {
	s.Results[res]++
	sec := took.Seconds()
	s.DurationCount++
	s.DurationSum += sec
	for i, le := range DurationBuckets {
		if sec <= le {
			s.DurationCounts[i]++
		}
	}
	if res == ResultOK {
		s.Receivers = receivers
		s.Bytes += uint64(bytes)
		s.LastSuccess = time.Now()
	}
}
