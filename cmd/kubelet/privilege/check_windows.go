package privilege

import "golang.org/x/sys/windows"

// Check wants the process to be elevated.
func Check() error { return checkToken(windows.GetCurrentProcessToken()) }
