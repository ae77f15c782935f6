package podspec

import "strings"

// verdict is what the agent does about one field of a pod's spec.
type verdict int8

const (
	// acted: this package acts on it, or the part of the agent named in why.
	acted verdict = iota + 1
	// refused: a pod that sets it is rejected.
	refused
	// harmless: not acted on, and no pod is less confined for it.
	harmless
)

// rule is the verdict on a field and all that is below it, and, unless that is
// plain, why. A refusal's why is shown to the user.
type rule struct {
	verdict verdict
	why     string
}

const notYet = "not acted on yet by this agent"

// ruleFor finds the rule of one field path such as "containers[].env[].name".
// Fields that hold fields of their own have no rule where these differ; their
// fields are to be asked one by one. Init and ephemeral containers follow the
// rules of containers.
func ruleFor(path string) (rule, bool) {
	for _, list := range []string{"initContainers[]", "ephemeralContainers[]"} {
		if rest, ok := strings.CutPrefix(path, list); ok {
			path = "containers[]" + rest
		}
	}
	section, _, _ := strings.Cut(path, ".")
	switch section {
	case "containers[]":
		return containerRule(path)
	case "volumes[]":
		return volumeRule(path)
	case "securityContext":
		return podSecurityRule(path)
	}
	return podRule(path)
}

// podRule holds the fields of the pod as a whole.
func podRule(path string) (rule, bool) {
	switch path {
	case "dnsPolicy", "dnsConfig", "hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostname", "subdomain",
		"setHostnameAsFQDN", "hostnameOverride", "hostAliases", "overhead", "os":
		return rule{acted, "values are looked at in values.go"}, true
	case "hostUsers", "runtimeClassName":
		return rule{acted, "node/podactor asks for the range of users and for the handler"}, true
	case "nodeName":
		return rule{acted, "downward API"}, true
	case "serviceAccountName":
		return rule{acted, "downward API; tokens are projected volumes"}, true
	case "priorityClassName":
		return rule{acted, "oom_score_adj"}, true
	case "priority":
		return rule{harmless, "orders pods for eviction and preemption, which take the class into account later"}, true
	case "restartPolicy", "terminationGracePeriodSeconds", "activeDeadlineSeconds", "readinessGates":
		return rule{acted, "node/lifecycle"}, true
	case "resourceClaims", "resources":
		return rule{refused, notYet}, true
	case "serviceAccount":
		return rule{harmless, "old spelling of serviceAccountName"}, true
	case "automountServiceAccountToken":
		return rule{harmless, "acted on by the API server, which adds a projected volume"}, true
	case "imagePullSecrets":
		return rule{harmless, "a pull without them fails where they were needed"}, true
	case "enableServiceLinks":
		return rule{acted, "services.go"}, true
	case "nodeSelector", "affinity", "tolerations":
		return rule{acted, "node/admission; else for the scheduler, which has placed the pod"}, true
	case "schedulerName", "preemptionPolicy", "topologySpreadConstraints", "schedulingGates", "schedulingGroup":
		return rule{harmless, "for the scheduler, which has placed the pod"}, true
	case "evictionResponders":
		return rule{harmless, "for those who ask for evictions through the API"}, true
	}
	return rule{}, false
}

func podSecurityRule(path string) (rule, bool) {
	switch strings.TrimPrefix(path, "securityContext.") {
	case "seLinuxOptions", "runAsUser", "runAsGroup", "runAsNonRoot", "supplementalGroups":
		return rule{acted, ""}, true
	case "seccompProfile", "appArmorProfile", "sysctls", "supplementalGroupsPolicy":
		return rule{acted, "values are looked at in values.go"}, true
	case "fsGroup":
		return rule{acted, "a supplemental group here; ownership of volumes in package volume"}, true
	case "fsGroupChangePolicy":
		return rule{acted, "package volume"}, true
	case "seLinuxChangePolicy":
		return rule{acted, "package volume/selinux"}, true
	case "windowsOptions":
		return rule{refused, "this agent runs no Windows containers"}, true
	}
	return rule{}, false
}

func volumeRule(path string) (rule, bool) {
	path = strings.TrimPrefix(path, "volumes[].")
	switch kind, _, _ := strings.Cut(path, "."); kind {
	case "configMap", "secret", "downwardAPI", "projected":
		return objectVolumeRule(path)
	}
	switch path {
	case "name", "hostPath":
		return rule{acted, "package volume"}, true
	case "emptyDir.medium", "emptyDir.sizeLimit":
		return rule{acted, "package volume"}, true
	case "emptyDir.mode":
		return rule{acted, "by feature gate, see volumevalues.go"}, true
	case "persistentVolumeClaim", "persistentVolumeClaim.claimName", "persistentVolumeClaim.readOnly", "ephemeral":
		return rule{acted, "package volume, with what node/claims finds; a kind of volume that it has no plugin for fails the mount"}, true
	case "nfs":
		return rule{acted, "package volume"}, true
	case "gcePersistentDisk", "awsElasticBlockStore", "gitRepo", "iscsi", "glusterfs",
		"rbd", "flexVolume", "cinder", "cephfs", "flocker", "fc", "azureFile",
		"vsphereVolume", "quobyte", "azureDisk", "photonPersistentDisk", "portworxVolume",
		"scaleIO", "storageos":
		return rule{acted, "package volume fails their mount, and says what to use instead"}, true
	case "image":
		return rule{acted, "package volume pulls it, the runtime mounts it"}, true
	case "csi":
		return rule{acted, "package volume/csi"}, true
	}
	return rule{}, false
}

// objectVolumeRule holds the fields of volumes that objects fill, which package
// volume acts on.
func objectVolumeRule(path string) (rule, bool) {
	switch path[strings.LastIndex(path, ".")+1:] {
	case "user", "defaultUser":
		return rule{acted, "by feature gate, see volumevalues.go"}, true
	case "configMap", "secret", "downwardAPI", "projected", "items", "items[]", "sources", "sources[]",
		"serviceAccountToken", "clusterTrustBundle", "podCertificate":
		return rule{}, false // some field of theirs is an owner
	}
	return rule{acted, "package volume"}, true
}

func containerRule(path string) (rule, bool) {
	path = strings.TrimPrefix(path, "containers[].")
	if rest, ok := strings.CutPrefix(path, "securityContext."); ok {
		return containerSecurityRule(rest)
	}
	if rest, ok := strings.CutPrefix(path, "lifecycle."); ok {
		return hookRule(rest)
	}
	switch path {
	case "name", "image", "command", "args", "workingDir", "stdin", "stdinOnce", "tty",
		"terminationMessagePath", "terminationMessagePolicy", "ports":
		return rule{acted, ""}, true
	case "imagePullPolicy":
		return rule{acted, "runtime/images"}, true
	case "restartPolicy", "restartPolicyRules":
		return rule{acted, "node/lifecycle"}, true
	case "env[].name", "env[].value", "env[].valueFrom.fieldRef", "env[].valueFrom.resourceFieldRef",
		"env[].valueFrom.configMapKeyRef", "env[].valueFrom.secretKeyRef", "envFrom":
		return rule{acted, ""}, true
	case "env[].valueFrom.fileKeyRef":
		return rule{acted, "by feature gate, see values.go"}, true
	case "targetContainerName":
		return rule{acted, "node/podactor finds the target of an ephemeral container"}, true
	case "resources.limits", "resources.requests":
		return rule{acted, "by resource name, see values.go"}, true
	case "resources.claims":
		return rule{refused, notYet}, true
	case "resizePolicy":
		return rule{harmless, "a changed spec restarts the container, which is what NotRequired allows"}, true
	case "volumeMounts[].name", "volumeMounts[].readOnly", "volumeMounts[].mountPath", "volumeMounts[].subPath",
		"volumeMounts[].mountPropagation", "volumeMounts[].recursiveReadOnly", "volumeMounts[].subPathExpr":
		return rule{acted, "package volume; values are looked at in values.go"}, true
	case "volumeDevices":
		return rule{acted, "package volume"}, true
	case "volumeMounts[].bindMountOptions":
		return rule{refused, notYet}, true
	case "livenessProbe", "readinessProbe", "startupProbe":
		return rule{acted, "package probe; some of it by feature gate, see values.go"}, true
	}
	return rule{}, false
}

func containerSecurityRule(path string) (rule, bool) {
	switch path {
	case "capabilities", "privileged", "seLinuxOptions", "runAsUser", "runAsGroup", "runAsNonRoot",
		"readOnlyRootFilesystem", "allowPrivilegeEscalation":
		return rule{acted, ""}, true
	case "procMount":
		return rule{acted, "values are looked at in values.go"}, true
	case "seccompProfile", "appArmorProfile":
		return rule{acted, "values are looked at in values.go"}, true
	case "windowsOptions":
		return rule{refused, "this agent runs no Windows containers"}, true
	}
	return rule{}, false
}

// hookRule holds the fields of lifecycle, which node/handlers acts on.
func hookRule(path string) (rule, bool) {
	if path == "stopSignal" {
		return rule{acted, "by feature gate, see values.go"}, true
	}
	_, field, _ := strings.Cut(path, ".") // behind postStart or preStop
	switch field {
	case "exec", "sleep", "httpGet.path", "httpGet.port", "httpGet.host", "httpGet.scheme", "httpGet.httpHeaders":
		return rule{acted, "node/handlers"}, true
	case "httpGet.protocol":
		return rule{refused, "for probes only"}, true
	case "tcpSocket":
		return rule{refused, "not a handler of a lifecycle hook"}, true
	}
	return rule{}, false
}
