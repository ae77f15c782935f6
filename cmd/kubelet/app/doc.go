// Package app is the kubelet command from options, so that a vendor's own
// kubelet is a page of code and keeps every flag of the drop-in:
//
//	func main() {
//		os.Exit(app.Main(os.Args[1:],
//			app.AddFlags(func(fs *pflag.FlagSet) { fs.StringVar(&site, "site", "", "...") }),
//			app.AddKind(config.Register[MyConfig]("vendor.example/v1", "MyConfig")),
//			app.Agent(func(loaded *config.Loaded) ([]nodefx.Option, error) { ... }),
//		))
//	}
//
// Main returns the exit code: 0 after a clean stop, 1 after any error, with
// all logs flushed. Only a main function exits the process.
package app
