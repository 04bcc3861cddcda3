package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"

	"github.com/hotsniff/hotsniff/scripts/lab"
)

// parkArgument makes a process hold a namespace until its input ends.
const parkArgument = "park"

// pair is a veth device here whose other end is in another namespace.
type pair struct {
	name string
	park *exec.Cmd // holds the other namespace
	in   io.Closer
}

// newPair makes a pair of devices name+"0" here and name+"1" elsewhere.
func newPair(name string) (*pair, error) {
	park, err := lab.Other(parkArgument)
	if err != nil {
		return nil, err
	}
	out, err := park.StdoutPipe()
	if err != nil {
		return nil, err
	}
	in, err := park.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := park.Start(); err != nil {
		return nil, err
	}
	p := &pair{name: name + "0", park: park, in: in}
	err = lab.IP("link add " + p.name + " type veth peer name " + name + "1 netns " + strconv.Itoa(park.Process.Pid))
	if err == nil {
		err = lab.IP("link set " + p.name + " up")
	}
	if err == nil { // the other side says when its end is up
		fmt.Fprintln(in, name+"1")
		var ok string
		if _, scanErr := fmt.Fscan(out, &ok); scanErr != nil {
			err = errors.New("the other end of " + p.name + " does not come up")
		}
	}
	if err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// close removes the pair and the other namespace.
func (p *pair) close() {
	lab.IP("link del " + p.name)
	p.in.Close()
	p.park.Process.Kill()
	p.park.Wait()
}

// parkHere is the process in the other namespace: it brings the device up whose
// name it reads, and then waits for the end of its input.
func parkHere() {
	var name string
	if _, err := fmt.Scan(&name); err != nil {
		return
	}
	if err := lab.IP("link set " + name + " up"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	fmt.Println("up")
	io.Copy(io.Discard, os.Stdin)
}
