package runtime

// Labels that the stock kubelet puts on sandboxes and containers and that any
// tool on the node (crictl among them) looks for.
const (
	LabelPodName       = "io.kubernetes.pod.name"
	LabelPodNamespace  = "io.kubernetes.pod.namespace"
	LabelPodUID        = "io.kubernetes.pod.uid"
	LabelContainerName = "io.kubernetes.container.name"
)

// Annotations that the stock kubelet puts on containers, so that a kubelet
// without memory, or with the manifest gone, still knows how to restart and
// how to stop them.
const (
	AnnotationContainerHash             = "io.kubernetes.container.hash"
	AnnotationRestartCount              = "io.kubernetes.container.restartCount"
	AnnotationTerminationMessagePath    = "io.kubernetes.container.terminationMessagePath"
	AnnotationTerminationMessagePolicy  = "io.kubernetes.container.terminationMessagePolicy"
	AnnotationPodDeletionGracePeriod    = "io.kubernetes.pod.deletionGracePeriod"
	AnnotationPodTerminationGracePeriod = "io.kubernetes.pod.terminationGracePeriod"
	AnnotationPreStopHandler            = "io.kubernetes.container.preStopHandler"
	AnnotationContainerPorts            = "io.kubernetes.container.ports"
)

// Annotations that the stock kubelet puts on pods (and so on sandboxes), which
// name the source of a pod and its configuration.
const (
	AnnotationConfigSource = "kubernetes.io/config.source"
	AnnotationConfigHash   = "kubernetes.io/config.hash"
	AnnotationConfigMirror = "kubernetes.io/config.mirror"
	AnnotationConfigSeen   = "kubernetes.io/config.seen"
)
