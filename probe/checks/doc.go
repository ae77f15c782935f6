// Package checks is the default set of checks: what each handler of a pod's
// probe means (core/v1 ProbeHandler), for the packages that check.
//
//	probeConfig.Checks = checks.Default(checks.Config{Exec: runtime})
package checks
