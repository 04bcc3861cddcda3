package capture

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"
)

// MaxFiles bounds the files that one source merges: all of them are open at
// once, and 256 stays far below the usual limit of 1024 descriptors.
const MaxFiles = 256

// OpenFiles returns a Source over capture files in pcap or pcapng format, of
// either byte order and resolution; "-" is stdin. Several files are merged by
// packet time. Their Packet.Interface is the index into paths and their
// interface name the path.
//
// OpenFiles fails only when a file cannot be opened. Damage shows up later: Next
// delivers everything before it, then one *FileError, then, if the caller goes
// on, the packets of the other files. Packet.Data is valid until the next Next.
func OpenFiles(paths []string, stdin io.Reader) (Source, error) {
	if len(paths) == 0 {
		return nil, errors.New("read: no file given")
	}
	if len(paths) > MaxFiles {
		return nil, fmt.Errorf("read: %d files, at most %d can be merged", len(paths), MaxFiles)
	}
	bufferBytes := oneFileBuffer
	if len(paths) > 1 {
		bufferBytes = manyFilesBuffer
	}
	m := &merger{sizeKnown: true}
	for _, path := range paths {
		f, size, err := openFile(path, stdin, bufferBytes)
		if err != nil {
			m.Close()
			return nil, err
		}
		f.stopped = &m.stopped
		m.files = append(m.files, f)
		m.size += size
		m.sizeKnown = m.sizeKnown && size > 0
	}
	if len(m.files) > 1 {
		m.heads = make([]Packet, len(m.files))
		m.pending = make([]int, len(m.files))
		for i := range m.pending {
			m.pending[i] = i
		}
	}
	return m, nil
}

// merger is the Source over files. With one file it passes packets through;
// with several it keeps the next packet of each in heads and hands out the
// earliest, by a binary heap of file indexes.
type merger struct {
	files     []*fileReader
	heads     []Packet
	heap      []int // files with a packet in heads, earliest first
	pending   []int // files whose next packet must be read before the heap decides
	size      int64
	sizeKnown bool
	done      bool // the single file has ended

	stopped atomic.Bool // looked at by the readers when they fetch more bytes
	closed  atomic.Bool // Close was called, or the end was reached
}

func (m *merger) Next(p *Packet) error {
	if m.closed.Load() { // an ordinary load while nobody writes it
		return io.EOF
	}
	if m.heads == nil {
		return m.nextOfOne(p)
	}
	for len(m.pending) > 0 {
		i := m.pending[len(m.pending)-1]
		m.pending = m.pending[:len(m.pending)-1]
		err := m.read(m.files[i], &m.heads[i])
		if err == nil {
			m.heads[i].Interface = i
			m.push(i)
		} else if err != io.EOF {
			return err
		}
	}
	if len(m.heap) == 0 {
		m.Close()
		return io.EOF
	}
	first := m.pop()
	*p = m.heads[first]
	m.pending = append(m.pending, first)
	return nil
}

func (m *merger) nextOfOne(p *Packet) error {
	if m.done {
		m.Close()
		return io.EOF
	}
	p.Interface, p.SampleEvery = 0, 0
	err := m.read(m.files[0], p)
	m.done = err != nil
	return err
}

// read reads the next packet of f. After Stop or Close whatever goes wrong is
// the end.
func (m *merger) read(f *fileReader, p *Packet) error {
	err := f.next(p)
	if err != nil && m.stopped.Load() {
		return io.EOF
	}
	return err
}

// before orders files by the time of their next packet, then as given.
func (m *merger) before(i, j int) bool {
	if m.heads[i].T != m.heads[j].T {
		return m.heads[i].T < m.heads[j].T
	}
	return i < j
}

func (m *merger) push(i int) {
	m.heap = append(m.heap, i)
	for at := len(m.heap) - 1; at > 0; {
		parent := (at - 1) / 2
		if !m.before(m.heap[at], m.heap[parent]) {
			return
		}
		m.heap[at], m.heap[parent] = m.heap[parent], m.heap[at]
		at = parent
	}
}

func (m *merger) pop() int {
	first := m.heap[0]
	last := len(m.heap) - 1
	m.heap[0] = m.heap[last]
	m.heap = m.heap[:last]
	for at := 0; ; {
		child := 2*at + 1
		if child >= last {
			return first
		}
		if child+1 < last && m.before(m.heap[child+1], m.heap[child]) {
			child++
		}
		if !m.before(m.heap[child], m.heap[at]) {
			return first
		}
		m.heap[at], m.heap[child] = m.heap[child], m.heap[at]
		at = child
	}
}

func (m *merger) Stats() Stats {
	s := Stats{Interfaces: make([]InterfaceStats, len(m.files))}
	if m.sizeKnown {
		s.FileSize = m.size
	}
	for i, f := range m.files {
		s.Interfaces[i] = f.stats
		if format, ok := f.format.(*pcapngFormat); ok {
			for _, it := range format.interfaces {
				s.Interfaces[i].Dropped += it.dropped
				s.Interfaces[i].InterfaceDropped += it.ifDrop
			}
		}
		s.FileBytes += f.offset()
	}
	return s
}

// Stop ends the source: files hold nothing that would be lost. A read from a
// pipe that has no writer activity cannot be interrupted.
func (m *merger) Stop() { m.stopped.Store(true) }

// Close closes the files, which the operating system allows during a read.
func (m *merger) Close() error {
	m.Stop()
	if m.closed.Swap(true) {
		return nil
	}
	for _, f := range m.files {
		if f.close != nil {
			f.close.Close()
		}
	}
	return nil
}
