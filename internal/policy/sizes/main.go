// Command sizes prints the longest files and functions, the biggest
// constructors and the widest interfaces of the tree it is run in: places to
// look at, not limits. What grew past the liking beside it is usually two
// things; what is one thing may stay long.
//
//	go run ./internal/policy/sizes [-n 10] [-tests] [folder]
package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
)

func main() {
	n := flag.Int("n", 10, "how many of each to print")
	tests := flag.Bool("tests", false, "count test files too")
	flag.Parse()
	folder := "."
	if flag.NArg() > 0 {
		folder = flag.Arg(0)
	}
	report, err := measure(os.DirFS(folder), *tests)
	if err != nil {
		fmt.Fprintln(os.Stderr, "sizes:", err)
		os.Exit(1)
	}
	report.print(os.Stdout, *n)
}

// print writes the n biggest of each kind.
func (r report) print(w io.Writer, n int) {
	for _, section := range []struct {
		title, unit string
		liking      int // from STYLE.md and DESIGN.md
		list        []size
	}{
		{"Longest files", "lines", 500, r.files},
		{"Longest functions", "lines", 70, r.functions},
		{"Longest constructors", "lines", 40, r.constructors},
		{"Constructors with the most parameters", "parameters", 4, r.params},
		{"Widest interfaces", "methods", 5, r.interfaces},
		{"Packages with the most imports of this module", "imports", 12, r.imports},
	} {
		over := 0
		for _, s := range section.list {
			if s.n > section.liking {
				over++
			}
		}
		fmt.Fprintf(w, "%s (liked: up to %d %s; %d of %d are above)\n", section.title, section.liking, section.unit, over, len(section.list))
		for _, s := range section.list[:min(n, len(section.list))] {
			mark := " "
			if s.n > section.liking {
				mark = ">"
			}
			fmt.Fprintf(w, "  %s %5d  %-44s %s\n", mark, s.n, s.what, s.where)
		}
		fmt.Fprintln(w)
	}
}

// size is one measured thing.
type size struct {
	n           int
	what, where string
}

// sortSizes puts the biggest first, and equal ones by place.
func sortSizes(list []size) {
	slices.SortFunc(list, func(a, b size) int {
		return cmp.Or(cmp.Compare(b.n, a.n), strings.Compare(a.where, b.where), strings.Compare(a.what, b.what))
	})
}

// goFiles lists the Go files worth a look, in order.
func goFiles(tree fs.FS, tests bool) (names []string, err error) {
	err = fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata"):
			return fs.SkipDir
		case strings.HasSuffix(name, ".go") && (tests || !strings.HasSuffix(name, "_test.go")):
			names = append(names, name)
		}
		return nil
	})
	return names, err
}
