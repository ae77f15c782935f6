package config

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

// Every field of the API type has a line in fields.txt, down to its values, and
// every line stands for a field.
func TestFieldTable(t *testing.T) {
	table := Fields()
	covers := map[string]bool{}
	for _, path := range leaves(reflect.TypeFor[KubeletConfiguration](), "") {
		line, ok := table.Of(path)
		if !ok {
			t.Errorf("%s has no line in fields.txt: say what nodekit makes of it", path)
		}
		covers[line.Path] = true
	}
	for _, f := range table {
		if !covers[f.Path] {
			t.Errorf("fields.txt: %s is no field of KubeletConfiguration", f.Path)
		}
		if !slices.Contains([]State{Acts, InCluster, Later, Moot, Differs, Refused}, f.State) || (f.Text == "") != (f.State == Acts || f.State == InCluster) {
			t.Errorf("fields.txt: %s: state %q, text %q", f.Path, f.State, f.Text)
		}
	}
	if n := len(table); n < 120 {
		t.Errorf("only %d lines were read", n)
	}
}

// leaves lists the paths of a type's values; lists and maps are one value each.
func leaves(typ reflect.Type, parent string) (out []string) {
	for name, ft := range jsonFields(typ) {
		path := join(parent, name)
		if ft.Kind() == reflect.Pointer {
			ft = ft.Elem()
		}
		if ft.Kind() == reflect.Struct && !isLeafType(ft) {
			out = append(out, leaves(ft, path)...)
			continue
		}
		out = append(out, path)
	}
	slices.Sort(out)
	return out
}

// Every flag with a field sets one that exists, and says so in its deprecation;
// the states of the others are complete.
func TestFlagTable(t *testing.T) {
	known := leaves(reflect.TypeFor[KubeletConfiguration](), "")
	undeprecated := []string{"v", "vmodule", "log-flush-frequency", "provider-id", "fail-cgroupv1"}
	for _, f := range Flags() {
		if f.Field != "" && !slices.Contains(known, f.Field) {
			t.Errorf("--%s sets %q, which is no field", f.Name, f.Field)
		}
		if wants := f.Field != "" && !slices.Contains(undeprecated, f.Name); wants != (f.Deprecated == fileInstead) {
			t.Errorf("--%s: deprecation %q", f.Name, f.Deprecated)
		}
		if !slices.Contains([]State{Acts, InCluster, Later, Moot, Differs, Refused}, f.State) || f.Usage == "" || f.Theme == "" || f.Type == "" {
			t.Errorf("--%s: %+v", f.Name, f)
		}
	}
}

// The flags are those of the stock kubelet v1.37.2, listed by its own --help.
func TestFlagList(t *testing.T) {
	const stock = `address allowed-unsafe-sysctls anonymous-auth authentication-token-webhook authentication-token-webhook-cache-ttl authorization-mode
		authorization-webhook-cache-authorized-ttl authorization-webhook-cache-unauthorized-ttl bootstrap-kubeconfig cert-dir cgroup-driver cgroup-root
		cgroups-per-qos client-ca-file cloud-provider cluster-dns cluster-domain config config-dir container-log-max-files container-log-max-size
		container-runtime-endpoint contention-profiling cpu-cfs-quota cpu-cfs-quota-period cpu-manager-policy cpu-manager-policy-options
		cpu-manager-reconcile-period enable-controller-attach-detach enable-debugging-handlers enable-server enforce-node-allocatable event-burst event-qps
		eviction-hard eviction-max-pod-grace-period eviction-minimum-reclaim eviction-pressure-transition-period eviction-soft eviction-soft-grace-period
		exit-on-lock-contention experimental-allocatable-ignore-eviction experimental-mounter-path fail-cgroupv1 fail-swap-on feature-gates
		file-check-frequency hairpin-mode healthz-bind-address healthz-port hostname-override housekeeping-interval http-check-frequency
		image-credential-provider-bin-dir image-credential-provider-config image-gc-high-threshold image-gc-low-threshold image-service-endpoint
		kernel-memcg-notification kube-api-burst kube-api-content-type kube-api-qps kube-reserved kube-reserved-cgroup kubeconfig kubelet-cgroups
		local-storage-capacity-isolation lock-file log-flush-frequency log-json-info-buffer-size log-json-split-stream log-text-info-buffer-size
		log-text-split-stream logging-format make-iptables-util-chains manifest-url manifest-url-header max-open-files max-pods maximum-dead-containers
		maximum-dead-containers-per-container memory-manager-policy minimum-container-ttl-duration minimum-image-ttl-duration node-ip node-labels
		node-status-max-images node-status-update-frequency oom-score-adj pod-cidr pod-manifest-path pod-max-pids pods-per-core port protect-kernel-defaults
		provider-id qos-reserved read-only-port register-node register-with-taints registry-burst registry-qps reserved-cpus reserved-memory resolv-conf
		root-dir rotate-certificates rotate-server-certificates runonce runtime-cgroups runtime-request-timeout seccomp-default serialize-image-pulls
		streaming-connection-idle-timeout sync-frequency system-cgroups system-reserved system-reserved-cgroup tls-cert-file tls-cipher-suites tls-min-version
		tls-private-key-file topology-manager-policy topology-manager-policy-options topology-manager-scope v version vmodule volume-plugin-dir
		volume-stats-agg-period`
	var ours []string
	for _, f := range Flags() {
		ours = append(ours, f.Name)
	}
	slices.Sort(ours)
	want := strings.Fields(stock)
	for _, name := range want {
		if !slices.Contains(ours, name) {
			t.Errorf("--%s is missing in flags.txt", name)
		}
	}
	if len(ours) != len(want) {
		t.Errorf("flags.txt has %d flags, the stock kubelet %d (and --help)", len(ours), len(want))
	}
	if FlagOf("maxPods") != "max-pods" || FlagOf("authentication.x509.clientCAFile") != "client-ca-file" || FlagOf("podLogsDir") != "" {
		t.Error("the flag of a field is not found")
	}
	if NearestFlag("kubeconfg") != "kubeconfig" || NearestFlag("frobnicate-the-thing") != "" {
		t.Error("the nearest flag is not found")
	}
}
