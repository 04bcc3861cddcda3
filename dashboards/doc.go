// Package dashboards has no code: its tests hold the dashboard, the rules and
// the sample configuration in this folder to what hotsniff exports.
package dashboards
