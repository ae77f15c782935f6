// Package volume makes a pod's volumes usable on the host and takes them away
// again: the [Plugin] seam, the [Manager] that mounts one volume at a time for
// whoever asks, and subPath resolution that no symlink escapes from.
//
// What is mounted is read from the host (directories and mountinfo), not from
// memory, so the call after a crash is the same call as the first one.
// Plugins stand in volume/plugins.
package volume
