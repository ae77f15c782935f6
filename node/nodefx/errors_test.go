package nodefx_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node"
	"nodekit.dev/node/handlers"
	"nodekit.dev/node/internal/actortest"
	"nodekit.dev/node/nodefx"
	"nodekit.dev/node/wire"
	"nodekit.dev/runtime"
	"nodekit.dev/runtime/runtimetest"
	"nodekit.dev/volume"
)

func newFirst() node.Allocator                { return wire.AdmitAll() }
func newSecond() node.Allocator               { return wire.AdmitAll() }
func newBroken() (node.Allocator, error)      { return nil, errors.New("no licence") }
func newPanicking() node.Allocator            { panic("out of luck") }
func newNil() node.Allocator                  { return nil }
func newNilPointer() *actortest.Bench         { return nil }
func newVariadic(...int) node.Allocator       { return wire.AdmitAll() }
func newWrong() *corev1.Pod                   { return &corev1.Pod{} }
func newNothing()                             {}
func newBadAdmitter() (node.Admitter, error)  { return nil, errors.New("no quota") }
func newPointerMounts() actortest.Mounts      { return actortest.Mounts{} } // never called
func newNeedy(*http.Client) node.Allocator    { return wire.AdmitAll() }
func newThree() (node.Allocator, error, bool) { return nil, nil, false } // wrong on purpose

type halfEngine struct{ node.Mounter }

type oddAdmitter struct{}

func (oddAdmitter) Admit(string) error { return nil }

// TestErrorsOfNew: what is wrong with the options is said in words, with the
// names of those who were wrong, before anything starts.
func TestErrorsOfNew(t *testing.T) {
	hook := node.NoHook{}
	one := func(o nodefx.Option) []nodefx.Option { return []nodefx.Option{o} }
	for name, tc := range map[string]struct {
		opts []nodefx.Option
		want []string
	}{
		"two replacements": {
			[]nodefx.Option{nodefx.Replace[node.Allocator](newFirst), nodefx.Replace[node.Allocator](newSecond)},
			[]string{"two replacements of podactor.Allocator", "nodefx_test.newFirst", "nodefx_test.newSecond"},
		},
		"not a seam": {
			one(nodefx.Replace[error](func() error { return nil })),
			[]string{"error is not a seam", "podactor.Engine", "images.PullAuth"},
		},
		"wrap of no seam":           {one(nodefx.Wrap("x", nil, func(e error) error { return e })), []string{`Wrap "x"`, "not a seam"}},
		"constructor's error":       {one(nodefx.Replace[node.Allocator](newBroken)), []string{"nodefx_test.newBroken: no licence"}},
		"constructor panics":        {one(nodefx.Replace[node.Allocator](newPanicking)), []string{"nodefx_test.newPanicking: panic: out of luck"}},
		"constructor gives nil":     {one(nodefx.Replace[node.Allocator](newNil)), []string{"nodefx_test.newNil returned nil"}},
		"constructor gives no one":  {one(nodefx.Replace[node.Engine](newNilPointer)), []string{"nodefx_test.newNilPointer returned nil"}},
		"variadic":                  {one(nodefx.Replace[node.Allocator](newVariadic)), []string{"nodefx_test.newVariadic is variadic"}},
		"wrong type":                {one(nodefx.Replace[node.Allocator](newWrong)), []string{"newWrong returns *v1.Pod", "var x *v1.Pod; var _ podactor.Allocator = x"}},
		"wrong signature":           {one(nodefx.AddAdmitter("odd", oddAdmitter{})), []string{`AddAdmitter("odd")`, "oddAdmitter does not implement node.Admitter"}},
		"needs a pointer":           {one(nodefx.Replace[node.Mounter](newPointerMounts)), []string{"*actortest.Mounts does; use a pointer"}},
		"returns nothing":           {one(nodefx.Replace[node.Allocator](newNothing)), []string{"must return the part"}},
		"returns too much":          {one(nodefx.Replace[node.Allocator](newThree)), []string{"must return the part"}},
		"a value":                   {one(nodefx.Replace[node.Allocator](wire.AdmitAll())), []string{"want a constructor function", "wrap it"}},
		"nil":                       {one(nodefx.Replace[node.Allocator](nil)), []string{"want a constructor function, got nil"}},
		"half a part":               {one(nodefx.Replace[node.Engine](func() halfEngine { return halfEngine{} })), []string{"halfEngine", "does not implement it"}},
		"nobody provides":           {one(nodefx.Replace[node.Allocator](newNeedy)), []string{"*http.Client"}},
		"wrap gives nil":            {one(nodefx.Wrap("thin", nil, func(node.Allocator) node.Allocator { return nil })), []string{`wrap "thin" returned nil`}},
		"wrap panics":               {one(nodefx.Wrap("hot", nil, func(node.Allocator) node.Allocator { panic("ouch") })), []string{`wrap "hot": panic: ouch`}},
		"wrap without function":     {one(nodefx.Wrap[node.Allocator]("none", nil, nil)), []string{`Wrap "none"`, "nil"}},
		"wraps in a circle":         {[]nodefx.Option{wrapAfter("a", "b"), wrapAfter("b", "a")}, []string{"podactor.Allocator", "circle"}},
		"member is nil":             {one(nodefx.AddHook("empty", nil)), []string{`AddHook("empty")`, "nil"}},
		"member is no hook":         {one(nodefx.AddHook("seven", 7)), []string{`AddHook("seven")`, "int does not implement node.Hook"}},
		"member's error":            {one(nodefx.AddAdmitter("quota", newBadAdmitter)), []string{`AddAdmitter("quota")`, "no quota"}},
		"member panics":             {one(nodefx.AddHook("boom", func() node.Hook { panic("dark") })), []string{`AddHook("boom")`, "panic: dark"}},
		"hooks in a circle":         {[]nodefx.Option{nodefx.AddHook("a", hook, "b"), nodefx.AddHook("b", hook, "a")}, []string{"hook group: circle", "a", "b"}},
		"two hooks of one name":     {[]nodefx.Option{nodefx.AddHook("a", hook), nodefx.AddHook("a", hook)}, []string{`two members are called "a"`}},
		"after a hook of no name":   {one(nodefx.AddHook("a", hook, "ghost")), []string{`"a" comes after "ghost", which does not exist`}},
		"circle of mutators":        {[]nodefx.Option{addMutator("a", "b"), addMutator("b", "a")}, []string{"container mutator group: circle"}},
		"two plugins of one name":   {[]nodefx.Option{addPlugin("a"), addPlugin("a")}, []string{`volume plugin group: two members are called "a"`}},
		"a source's name":           {one(nodefx.AddSource("here", pods{name: "there"})), []string{`source "here" calls itself "there"`}},
		"a bad route":               {one(nodefx.AddHTTPRoute("GET debug", http.NotFoundHandler())), []string{`AddHTTPRoute("GET debug")`}},
		"routes that clash":         {[]nodefx.Option{nodefx.AddHTTPRoute("/{a}", http.NotFoundHandler()), nodefx.AddHTTPRoute("/{b}", http.NotFoundHandler())}, []string{`AddHTTPRoute("/{b}")`, "conflicts"}},
		"no budget":                 {one(nodefx.StopBudget(0)), []string{"StopBudget 0s"}},
		"configuration":             {one(nodefx.Configure(func(c *wire.Config) { c.NodeName = "" })), []string{"NodeName: must not be empty"}},
		"all of it at once":         {[]nodefx.Option{nodefx.Replace[node.Allocator](newWrong), nodefx.AddHook("x", 7)}, []string{"newWrong", `AddHook("x")`}},
		"a plugin without its home": {[]nodefx.Option{addPlugin("lost"), replaceMounter(t)}, []string{`AddVolumePlugin("lost") had no effect`}},
		"an override without effect": {
			[]nodefx.Option{
				nodefx.Replace[node.HookRunner](func() noHandlers { return noHandlers{} }),
				nodefx.Replace[node.Prober](func() noProber { return noProber{} }),
				nodefx.Replace[handlers.Execer](func() worldExec { return worldExec{} }),
			},
			[]string{"an override of handlers.Execer had no effect"},
		},
		"a wrap without effect": {
			[]nodefx.Option{
				nodefx.Replace[node.HookRunner](func() noHandlers { return noHandlers{} }),
				nodefx.Replace[node.Prober](func() noProber { return noProber{} }),
				nodefx.Wrap("x", nil, func(e handlers.Execer) handlers.Execer { return e }),
			},
			[]string{"an override of handlers.Execer had no effect"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			agent, err := nodefx.New(append([]nodefx.Option{nodefx.Config(config(t))}, tc.opts...)...)
			wantError(t, err, tc.want...)
			if agent != nil {
				t.Error("an agent came with the error")
			}
		})
	}
}

func wrapAfter(name, after string) nodefx.Option {
	return nodefx.Wrap(name, []string{after}, func(a node.Allocator) node.Allocator { return a })
}

func addMutator(name, after string) nodefx.Option {
	return nodefx.AddContainerMutator(name, node.ContainerMutatorFunc(func(*corev1.Pod, *runtime.ContainerConfig) error { return nil }), after)
}

type noPlugin struct{ volume.Plugin }

func (noPlugin) Name() string { return "vendor.example/none" }

func addPlugin(name string) nodefx.Option { return nodefx.AddVolumePlugin(name, noPlugin{}) }

func replaceMounter(t *testing.T) nodefx.Option {
	b := actortest.New(t, runtimetest.Config{})
	return nodefx.Replace[node.Mounter](func() *actortest.Mounts { return b.Mounts })
}

func TestSupplyOfNil(t *testing.T) {
	_, err := nodefx.New(nodefx.Supply(1, nil))
	if err == nil || !strings.Contains(err.Error(), "Supply: value 2 is nil") {
		t.Errorf("New = %v, want an error that names the value", err)
	}
}
