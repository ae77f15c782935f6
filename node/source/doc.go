// Package source brings static pods to the node: from a directory of manifests
// ([NewDir]), from a URL ([NewHTTP]) and from Go ([NewChannel]). Each is a
// node.Source; any number may run side by side under different names.
//
//	cfg := source.Config{NodeName: "edge-7", Log: log, Adopter: source.AdoptFrom(watcher.List)}
//	dir, err := source.NewDir(source.DirConfig{Config: cfg, Path: "/etc/kubernetes/manifests"})
//	go dir.Run(ctx, updates)
//
// What a manifest goes through:
//
//	bytes ──▶ decode ──▶ name, UID, annotations ──▶ [Default] ──▶ [Validate] ──▶ update
//	   └─ a step that fails is a [Problem]; the pod of the last good content stays
//
// Rules:
//
//   - A manifest that can not be used disturbs no other pod, and not its own
//     either: the pod of its last good content runs on until the manifest is
//     good again or gone. (The stock kubelet stops such a pod at its next scan.)
//   - A directory or URL that can not be read changes nothing. A directory that
//     does not exist holds no pods.
//   - Of two manifests that name one pod the first by file name wins.
//   - Each change of a manifest's content gives the pod another UID, unless the
//     manifest sets metadata.uid itself. A pod that already runs under another
//     UID with that content keeps it ([Adopter]).
//   - A source sends nothing before it has read its input once: the node takes
//     a pod that is in no update for one that nobody wants.
//   - As long as a manifest can not be used that never could be, updates are
//     Unclear: it may be the one of a pod that runs since before the agent
//     started, so the node leaves such pods of this source alone.
package source
