// Package seams is the table behind docs/seams.md: one row for each place where
// the kubelet's forks patch today or where vendors ask for an interface, with
// the seam that stands for it here. Its test writes the page
//
//	make docs
//
// and fails when the page is stale, when a row names code or a test that does
// not exist, and when a row of finished work is still pending.
package seams
