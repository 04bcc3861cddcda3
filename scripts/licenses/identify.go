package main

import (
	"errors"
	"strings"
)

// known are the permissive licenses by words that only they have, spaces and
// case folded. A text must have all of them.
var known = []struct {
	id    string
	words []string
}{
	{"Apache-2.0", []string{"apache license", "version 2.0", "grant of patent license"}},
	{"MIT", []string{"permission is hereby granted, free of charge, to any person obtaining a copy", "without restriction"}},
	{"BSD-3-Clause", []string{"redistribution and use in source and binary forms", "this list of conditions", "endorse or promote products"}},
	{"BSD-2-Clause", []string{"redistribution and use in source and binary forms", "this list of conditions"}},
	{"ISC", []string{"permission to use, copy, modify, and/or distribute this software for any purpose"}},
	{"CC0-1.0", []string{"cc0 1.0 universal"}},
	{"Unlicense", []string{"this is free and unencumbered software released into the public domain"}},
}

// refused are words of licenses that ask for more than a notice.
var refused = []string{"gnu general public license", "gnu lesser general public", "gnu affero", "mozilla public license",
	"eclipse public license", "server side public license", "business source license", "commons clause", "elastic license"}

// identify names the licenses of the files of one part. It is an error when
// there is none that it knows, or one that is not permissive.
func identify(texts []string) ([]string, error) {
	var ids []string
	for _, text := range texts {
		folded := strings.ToLower(strings.Join(strings.Fields(text), " "))
		for _, word := range refused {
			if strings.Contains(folded, word) {
				return ids, errors.New("not permissive: " + word)
			}
		}
		if id := match(folded); id != "" {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return nil, errors.New("no license that is known")
	}
	return ids, nil
}

func match(folded string) string {
	for _, k := range known {
		all := true
		for _, word := range k.words {
			all = all && strings.Contains(folded, word)
		}
		if all {
			return k.id
		}
	}
	return ""
}
