// Package doctor looks for what keeps hotsniff from capturing, from seeing
// requests, or from publishing, and says how to mend each.
//
//	r := &doctor.Report{}
//	r.Add(doctor.Capability("/proc"))
//	r.Add(doctor.Kernel())
//	r.Add(doctor.Metrics("/proc", "127.0.0.1:9379")...)
//	r.WriteText(os.Stdout) // ok    capability  CAP_NET_RAW is effective, uid 0
//
// One check is one Finding. Checks read /proc, open sockets that they close
// again, capture for a few seconds, and send Redis a few commands that change
// nothing; they never change the machine.
//
// # Ownership and concurrency
//
// A Report belongs to one goroutine. All else are functions without state.
//
// # Limits
//
// What is read from /proc is bounded by maxProcBytes a file, and at most maxPIDs
// processes are looked at for the owner of a socket. No key, password or value
// is ever part of a Finding; what others chose (names of processes, sockets and
// devices, error replies of a server) is printed as a key is: nothing in it can
// reach a terminal unescaped.
package doctor
