// Package pluginwatch finds the plugins that register with the node: programs
// that put a socket into ROOT/plugins_registry and speak the kubelet's plugin
// registration API there (pluginregistration v1). Each is asked who it is and
// handed to the handler of its type.
//
//	w, err := pluginwatch.New(pluginwatch.Config{Dir: "/var/lib/kubelet/plugins_registry"},
//		map[string]pluginwatch.Handler{pluginwatch.CSI: drivers}, log)
//	err = w.Run(ctx)
//
// Rules:
//
//   - The folders below Dir count; names that begin with a dot do not.
//   - What fails, the handler's own failures included, is told to the plugin and
//     tried again with back-off for as long as its socket is there.
//   - A socket that was made anew is a plugin that started anew: it is taken away
//     and registered again. Calls for one socket never overlap.
//   - Sockets are noticed by inotify, and looked for at the start and whenever
//     inotify says that it missed something.
//   - When Run ends, nothing is taken away: plugins outlive the agent.
package pluginwatch
