package resp_test

import (
	"fmt"

	"github.com/hotsniff/hotsniff/resp"
)

func Example() {
	d := resp.NewDecoder(resp.Config{})
	var c resp.Conn
	var r resp.Request
	d.Open(&c, true)
	for _, segment := range []string{
		"*3\r\n$4\r\nMGET\r\n$1\r\na\r\n$1\r\nb\r\n*2\r\n$3\r\nGET\r\n$6\r\nuser",
		":1\r\n",
	} {
		d.Feed(&c, []byte(segment), true)
		for d.Next(&r) {
			for _, k := range r.Keys {
				fmt.Printf("%s %s (%d bytes)\n", d.CommandName(r.Command), k.Bytes, r.Bytes)
			}
		}
	}
	// Output:
	// MGET a (28 bytes)
	// MGET b (28 bytes)
	// GET user:1 (25 bytes)
}
