// Package config turns the configuration that users write for the stock
// kubelet (KubeletConfiguration kubelet.config.k8s.io/v1beta1, drop-in files,
// feature gates) into the Config of each nodekit package. It knows nothing of
// cobra, so a vendor's own main can use it alone:
//
//	loader := config.NewLoader(config.Register[MyConfig]("vendor.example/v1", "MyConfig"))
//	loaded, err := loader.Load(config.Files{Main: "/etc/kubelet.yaml", DropInDir: "/etc/kubelet.d"})
//	mine, ok := config.Get[MyConfig](loaded)
//
// Layers, lowest first: the stock defaults (defaults.yaml), the main file, the
// drop-in files by name, then what the caller overrides (flags). Maps merge by
// key, lists and values are replaced.
//
// A field nobody knows, or one written twice, is a [Problem] with its file,
// line and the nearest known field. The stock kubelet starts with such a file,
// so these are warnings unless Files.Strict is set. Vendors' own kinds are
// always strict.
package config
