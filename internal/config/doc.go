// Package config reads the YAML file that may stand beside the flags and the
// environment.
//
// Every flag of the command line is also a key of the file and a HOTSNIFF_*
// variable: the flag --web.listen-address is
//
//	web:
//	  listen-address: 127.0.0.1:9379
//
// and HOTSNIFF_WEB_LISTEN_ADDRESS. A flag beats the environment, the
// environment beats the file, the file beats the default. What has no flag,
// the rules and the lists of pinned and banned keys, stands in the file alone.
//
// The file is strict: a key that nobody reads is refused with its line and,
// where one is near, the name that was probably meant.
package config
