// Package guest has the tests that run inside of the machine of package
// machine, as root under its systemd. TestGuest of package vm boots it and
// reports them; on any other machine they do not run.
package guest
