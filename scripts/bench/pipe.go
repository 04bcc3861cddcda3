package main

import (
	"context"
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// pipeBytes is the size of the pipe between writer and reader: fewer, larger
// reads, as from a file.
const pipeBytes = 1 << 20

// readPipe runs a program whose standard input is what write writes.
func readPipe(ctx context.Context, args []string, write func(io.Writer) error) (cost, []byte, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return cost{}, nil, err
	}
	unix.FcntlInt(w.Fd(), unix.F_SETPIPE_SZ, pipeBytes)
	cmd, cancel := command(ctx, args[0], args[1:]...)
	defer cancel()
	cmd.Stdin = r
	wrote := make(chan error, 1)
	go func() {
		err := write(w)
		wrote <- errors.Join(err, w.Close())
	}()
	c, out, err := run(cmd)
	r.Close() // a writer whose reader has died gets an error
	if werr := <-wrote; err == nil {
		err = werr
	}
	return c, out, err
}
