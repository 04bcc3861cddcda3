package topk

// Places by which DefaultMaxDetails are given and kept, fewer in proportion; the gap
// keeps keys of about equal size from passing details to and fro.
const (
	accessEnter = 140
	accessKeep  = 160
	heatEnter   = 30
	heatKeep    = 40 // accessKeep + heatKeep = DefaultMaxDetails
)

// rankDetails moves details to the keys that lead the window by accesses or by
// bytes. Once a second; about 30 us.
func (d *Detector) rankDetails() {
	t := d.t
	var byCount, byHeat rankHistogram
	for e := range t.total {
		if own := t.own(e); own > 0 {
			byCount.add(own)
		}
		if heat := t.heat[e]; heat > 0 {
			heat -= heat>>heatDecayLog + 1
			t.heat[e] = heat
			byHeat.add(heat)
		}
	}
	place := func(of int) int { return of * d.cfg.MaxDetails / DefaultMaxDetails }
	d.releaseDetails(byCount.cut(place(accessKeep)), byHeat.cut(place(heatKeep)))
	enter, hot := max(byCount.cut(place(accessEnter)), 1), max(byHeat.cut(place(heatEnter)), 1)
	for e := range t.total {
		if t.meta[e].detail == 0 && (t.own(e) >= enter || t.heat[e] >= hot) {
			if !d.takeDetail(e) {
				return
			}
		}
	}
}

// releaseDetails frees the details of keys below both ranks. While there are
// enough for all, none is freed.
func (d *Detector) releaseDetails(count, heat uint32) {
	if len(d.idle) > 0 || len(d.details) < d.cfg.MaxDetails {
		return
	}
	for _, x := range d.details {
		e := int(x.entry) - 1
		if e < 0 || d.t.own(e) >= count && d.t.own(e) > 0 || d.t.heat[e] >= heat && heat > 0 {
			continue
		}
		if d.findListed(d.t.hash[e]) == nil {
			d.dropDetail(e)
		}
	}
}

// stealDetail gives entry e the detail of the least key that is not listed, if
// that one is smaller.
func (d *Detector) stealDetail(e int) bool {
	least, at := d.t.own(e), -1
	for _, x := range d.details {
		o := int(x.entry) - 1
		if o < 0 || d.t.own(o) >= least || d.findListed(d.t.hash[o]) != nil {
			continue
		}
		least, at = d.t.own(o), o
	}
	if at < 0 {
		return false
	}
	d.dropDetail(at)
	return d.takeDetail(e)
}
