// Package manifests finds, reads and watches files of Kubernetes manifests in a
// directory, as people and tools write them: temporary files of editors are
// left out, links and pipes do no harm, and a change is read once it is quiet.
//
//	w := manifests.NewWatch("/etc/nodekit/objects", log)
//	defer w.Close()
//	for {
//		w.Follow()
//		paths, err := manifests.List("/etc/nodekit/objects")
//		... manifests.Read(path) ...
//		if err := w.Wait(ctx, 20*time.Second); err != nil {
//			return err
//		}
//	}
package manifests
