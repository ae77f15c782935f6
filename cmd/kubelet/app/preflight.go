package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/pflag"

	"nodekit.dev/cmd/kubelet/config"
)

// verdict is what this kubelet makes of something that a stock node has.
type verdict string

const (
	same        verdict = "same"
	different   verdict = "different"
	unsupported verdict = "unsupported"
)

// finding is one thing that preflight looked at.
type finding struct {
	kind, name string
	verdict    verdict
	note       string
}

// errUnsupported ends preflight with exit code 1; the list has told why.
var errUnsupported = errors.New("something is unsupported")

// isPreflight looks for the flag before any other is parsed, since the others
// may be unknown here.
func isPreflight(args []string) bool {
	return slices.ContainsFunc(args, func(arg string) bool {
		return arg == "--preflight" || arg == "-preflight" || arg == "--preflight=true"
	})
}

// preflight reads the flags and files of a node and lists what would become of
// each. It opens nothing for writing, no socket and no port.
func preflight(ctx context.Context, o *options, f *flags, set *pflag.FlagSet, args []string, stdout io.Writer) error {
	p := &preflighter{options: o, flags: f, set: set}
	p.flagRows(args)
	if loaded := p.configRows(); loaded != nil {
		p.podRows(ctx, loaded)
	}
	p.stateRows()
	if err := p.print(stdout); err != nil {
		return err
	}
	if slices.ContainsFunc(p.found, func(f finding) bool { return f.verdict == unsupported }) {
		return errUnsupported
	}
	return nil
}

type preflighter struct {
	*options

	flags *flags
	set   *pflag.FlagSet
	found []finding
}

func (p *preflighter) add(kind, name string, v verdict, note string) {
	p.found = append(p.found, finding{kind, name, v, note})
}

// ofState is the verdict on something that is set.
func ofState(state config.State, text string) (verdict, string) {
	switch state {
	case config.Acts, config.InCluster:
		return same, ""
	case config.Moot:
		return same, text
	case config.Differs:
		return different, text
	case config.Later:
		return unsupported, text + " does not do it yet"
	case config.Refused:
		return unsupported, text
	}
	return unsupported, "not known"
}

// flagRows parses what can be parsed and lists each flag.
func (p *preflighter) flagRows(args []string) {
	for _, one := range splitArgs(args, p.set) {
		err := p.set.Parse(one)
		var unknown *pflag.NotExistError
		switch {
		case errors.As(err, &unknown):
			name := strings.ReplaceAll(unknown.GetSpecifiedName(), "_", "-")
			p.add("flag", "--"+name, unsupported, strings.TrimPrefix(flagHint(name), "--"+name+": "))
		case err != nil:
			p.add("flag", one[0], unsupported, err.Error())
		case !strings.HasPrefix(one[0], "-"):
			p.add("flag", one[0], unsupported, "the kubelet takes no arguments")
		}
	}
	for _, v := range given(p.set) {
		verdict, note := ofState(v.flag.State, v.flag.Text)
		if v.flag.State == config.Refused && isZero(v.now) {
			verdict, note = same, ""
		}
		p.add("flag", "--"+v.flag.Name, verdict, note)
	}
	if err := p.flags.validate(p.labels); err != nil {
		p.add("flag", "flags", unsupported, err.Error())
	}
}

func isZero(v any) bool {
	return v == nil || v == "" || v == "0" || v == false
}

// splitArgs puts each flag with its value, so that one that is unknown does
// not hide the rest. After an unknown flag, what does not look like a flag is
// taken for its value.
func splitArgs(args []string, set *pflag.FlagSet) (out [][]string) {
	for i := 0; i < len(args); i++ {
		one := []string{args[i]}
		hasNext := i+1 < len(args) && !strings.HasPrefix(args[i+1], "-")
		if hasNext && takesValue(args[i], set) {
			i++
			one = append(one, args[i])
		}
		out = append(out, one)
	}
	return out
}

// takesValue is true for a flag whose value may be the next argument.
func takesValue(arg string, set *pflag.FlagSet) bool {
	if !strings.HasPrefix(arg, "-") || strings.Contains(arg, "=") {
		return false
	}
	name, long := strings.CutPrefix(arg, "--")
	flag := set.Lookup(name)
	if !long && len(arg) == 2 {
		flag = set.ShorthandLookup(arg[1:])
	}
	return flag == nil || flag.NoOptDefVal == ""
}

// configRows lists each field and gate; nil where the files can not be read.
func (p *preflighter) configRows() *config.Loaded {
	loaded, err := p.load()
	if err != nil {
		p.add("configuration", p.flags.configFile, unsupported, err.Error())
		return nil
	}
	for _, problem := range loaded.Problems {
		p.add("field", problem.Field, same, problem.Error()+"; the stock kubelet ignores it too")
	}
	for _, name := range loaded.Ignored {
		p.add("configuration", name, same, "not read: its name does not end in .conf")
	}
	for _, f := range loaded.SetFields() {
		if strings.HasPrefix(loaded.Where(f.Path), "--") || f.Path == "featureGates" {
			continue // listed as a flag, or gate by gate
		}
		verdict, note := ofState(f.State, f.Text)
		if f.State == config.Refused {
			verdict, note = same, "" // the rules below have the word on its value
		}
		p.add("field", f.Path, verdict, note)
	}
	return p.checkedRows(loaded)
}

func (p *preflighter) load() (*config.Loaded, error) {
	layer, err := p.flags.override(p.set)
	if err != nil {
		return nil, err
	}
	return config.NewLoader(p.kinds...).Load(config.Files{Main: p.flags.configFile, DropInDir: p.flags.configDir, Override: layer})
}

// checkedRows lists gates and broken rules.
func (p *preflighter) checkedRows(loaded *config.Loaded) *config.Loaded {
	gates, err := knownGates(p.options)
	if err != nil {
		p.add("gate", "gates", unsupported, err.Error())
		return nil
	}
	set := loaded.Kubelet.FeatureGates
	for _, name := range slices.Sorted(keysOf(set)) {
		one, err := gates.Resolve(map[string]bool{name: set[name]})
		switch {
		case err != nil:
			p.add("gate", name, unsupported, strings.TrimSpace(err.Error()+" "+hintOf(err)))
		case len(one.Warnings) > 0 && gates.Lacks(name):
			p.add("gate", name, unsupported, strings.Join(one.Warnings, "; "))
		default: // a gate that goes away, or is of other components, is one of the stock kubelet's too
			p.add("gate", name, same, strings.Join(one.Warnings, "; "))
		}
	}
	features, _ := gates.Resolve(set) // what is wrong with it stands above
	var broken config.InvalidError
	if errors.As(config.Validate(&loaded.Kubelet, features), &broken) {
		for _, rule := range broken {
			p.add("field", rule.Field, unsupported, rule.Error())
		}
	}
	return loaded
}

func keysOf(m map[string]bool) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func (p *preflighter) print(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "VERDICT\tKIND\tNAME\tNOTE")
	count := map[verdict]int{}
	for _, f := range p.found {
		count[f.verdict]++
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", f.verdict, f.kind, f.name, strings.ReplaceAll(f.note, "\n", " "))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%d the same, %d different, %d unsupported. Nothing was changed.\n", count[same], count[different], count[unsupported])
	return err
}

// quiet is the logger of what preflight asks other parts for.
func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }
