// Package top is the terminal view of `hotsniff top`.
//
//	Sampler (engine, daemon) -> Sample -> Model.Update -> Render -> terminal
//
//	 hotsniff  redis-1  eth0                              60s window  12:03:44
//	 5012 req/s  5012 keys/s  ~4812 keys  every request  0 dropped  0% encrypted
//	 KEY                 SHARE▾ 0-50%     ACC/S R/W     B/S CLNT STATE  AGE 60s
//	 product:1           26.2%  ████▌     1.3k 99/1   34.1M    8 hot    12m ▁▃▇█
//
// Render is pure: the same Model and size give the same text. A Model is a
// bubbletea model and is used by one goroutine; Feed runs beside it and sends
// it what a Sampler gives. A Sample never changes.
//
// Whatever text comes from the wire or from a daemon passes cells before it is
// drawn: nothing in it controls the terminal, and its width is known.
//
// Limits: the history holds maxSeries keys, of which those seen longest ago
// give way, with maxPoints shares each; a frame is at most maxSide cells wide
// and high; the filter maxFilter characters; an answer of a daemon maxAnswer
// bytes.
package top
