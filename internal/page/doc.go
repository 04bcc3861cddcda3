// Package page is the page at / and the file of `hotsniff read --html`: one
// HTML document over reports, without a build step and without anything from
// elsewhere.
//
//	Snapshot -> report.Report -> page.html (html/template)   readable without JavaScript
//	                          -> GET /api/v1/events          the same as JSON, pushed
//	                          -> WriteFile                   both in one file
//
// The document is complete as it is served. Where JavaScript runs, assets/js
// takes it over and draws the same from the same JSON: a browser test holds
// the two to the same text. format.go and format.js are that pair.
//
// # Streams
//
// Every stream asks for the newest frame four times a second and sends it when
// it is another one. A frame is encoded once, by whoever asks first, and shared
// by all; it is a second old at most, or as old as the last change of the hot
// list. So a slow reader misses frames instead of queueing them, nothing runs
// while nobody looks, and the engine is never waited for nor made to wait.
//
// # Limits
//
//   - maxStreams streams; the next one gets 503, and its page polls.
//   - writeTimeout for one frame; who takes longer is cut off and counted.
//     A slow reader holds on to one frame, so there are never more old frames
//     than fit writeTimeout.
//   - maxFileKeys keys in a file; the rest is left out, and the page says so.
//
// # Keys
//
// A key is whatever someone wrote on the wire. It only ever becomes text: in
// the template by html/template, in the script by textContent, in JSON with
// <, > and & escaped; and it is shown with everything escaped that could hide
// or reorder what stands around it. The Content-Security-Policy allows no
// script but ours, and no string to become markup.
package page
