package hotlist

import (
	"encoding/json"
)

// DropSchema is the schema of the note that an application sends on the
// channel when it wrote hot keys, so that others drop their copies.
const DropSchema = "hotsniff.drop/v1"

const (
	// maxDropKeys: beyond that many keys a note says that all are meant.
	maxDropKeys = 256
	// maxDropBytes bounds a note: keys at their longest, with both forms.
	maxDropBytes = MaxListBytes
)

type wireDrop struct {
	Schema string    `json:"schema"`
	From   string    `json:"from"`
	Keys   []dropKey `json:"keys,omitempty"`
	All    bool      `json:"all,omitempty"`
}

type dropKey struct {
	Key       string `json:"key"`
	KeyBase64 string `json:"key_base64,omitempty"`
}

// encodeDrop writes a note. from is the sender, who ignores its own notes.
func encodeDrop(from string, keys []string, all bool) ([]byte, error) {
	w := wireDrop{Schema: DropSchema, From: from, All: all}
	if !w.All {
		for _, k := range keys {
			text, b64 := EncodeKey(k)
			w.Keys = append(w.Keys, dropKey{text, b64})
		}
	}
	return json.Marshal(&w)
}

// drop carries a note out and reports whether it was one.
func (w *Watcher) drop(payload string) bool {
	if len(payload) > maxDropBytes {
		return false
	}
	var d wireDrop
	if json.Unmarshal([]byte(payload), &d) != nil || d.Schema != DropSchema {
		return false
	}
	if d.From == w.id {
		return true // its copies were dropped before the note was sent
	}
	if d.All {
		w.DropAll()
		return true
	}
	for _, k := range d.Keys {
		if key, ok := DecodeKey(k.Key, k.KeyBase64); ok {
			w.Drop(key)
		}
	}
	return true
}
