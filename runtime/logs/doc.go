// Package logs reads and rotates container logs in the format of the CRI: one
// entry per line, "<RFC3339Nano> <stdout|stderr> <P|F> <text>", where P marks
// a part of a line that goes on in the next entry of its stream.
//
// [Copy] reads a log back, once or following it across rotations:
//
//	err := logs.Copy(ctx, logs.Request{
//		Path: "/var/log/pods/ns_pod_uid/web/0.log", Stdout: w, Stderr: w,
//		Options: logs.Options{Tail: logs.Last(100), Follow: true}, Ended: containerEnded,
//	})
//
// [Rotator] renames a log that has grown too large, has the runtime open a new
// one and compresses older ones:
//
//	0.log                        the runtime writes here
//	0.log.20260501-101500        the newest rotated log, not compressed
//	0.log.20260501-093000.gz     older ones
//	0.log.20260501-093000.tmp    a compression under way (or interrupted)
//
// A line is in one file as a whole, in no two and never in none: renaming moves
// what the runtime still writes along, a failed reopening is undone without
// touching a file that the runtime made meanwhile, and a compressed log takes
// the place of its original only when it is complete on disk.
//
// Rules for callers: one Rotator per log directory; Copy and the Rotator may
// work on the same log at the same time.
package logs
