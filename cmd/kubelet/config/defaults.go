package config

import (
	_ "embed"
	"maps"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

//go:embed defaults.yaml
var defaultsYAML []byte

// Default is the configuration of a kubelet without any file or flag.
func Default() (KubeletConfiguration, error) {
	var kc KubeletConfiguration
	return kc, applyDefaults(&kc)
}

// stockDefaults is the lowest layer as it stands in defaults.yaml.
func stockDefaults() (KubeletConfiguration, error) {
	var kc KubeletConfiguration
	docs, err := parse("defaults.yaml", defaultsYAML)
	if err != nil {
		return kc, err
	}
	v, err := plain(docs[0].root)
	if err != nil {
		return kc, err
	}
	return kc, decode(v, &kc)
}

// applyDefaults fills what is not set. As in the stock kubelet, 0, "" and 0s
// are not set where the type has no way to tell them from nothing: the files
// that kubeadm writes are full of them.
func applyDefaults(kc *KubeletConfiguration) error {
	defaults, err := stockDefaults()
	if err != nil {
		return err
	}
	settleDependent(kc, &defaults)
	fill(reflect.ValueOf(kc).Elem(), reflect.ValueOf(&defaults).Elem())
	return nil
}

// settleDependent changes the defaults that depend on what is set.
func settleDependent(kc, defaults *KubeletConfiguration) {
	if kc.NodeStatusUpdateFrequency.Duration != 0 {
		defaults.NodeStatusReportFrequency = kc.NodeStatusUpdateFrequency
	}
	if kc.PodPidsLimit != nil && *kc.PodPidsLimit < 0 {
		kc.PodPidsLimit = nil
	}
	if gateTurnedOff(kc.FeatureGates, "KubeletCrashLoopBackOffMax") {
		defaults.CrashLoopBackOff.MaxContainerRestartPeriod = nil
	}
	if gateTurnedOff(kc.FeatureGates, "KubeletEnsureSecretPulledImages") {
		defaults.ImagePullCredentialsVerificationPolicy = ""
	}
	if kc.EvictionHard != nil && kc.MergeDefaultEvictionSettings != nil && *kc.MergeDefaultEvictionSettings {
		both := maps.Clone(defaults.EvictionHard)
		maps.Copy(both, kc.EvictionHard)
		kc.EvictionHard = both
	}
}

// gateTurnedOff is about Beta gates that are on by default.
func gateTurnedOff(set map[string]bool, name string) bool {
	if on, ok := set[name]; ok {
		return !on
	}
	on, ok := set["AllBeta"]
	return ok && !on
}

// fill copies defaults into what is zero, field by field.
func fill(into, from reflect.Value) {
	if into.Kind() == reflect.Struct && !isLeafType(into.Type()) {
		for i := range into.NumField() {
			fill(into.Field(i), from.Field(i))
		}
		return
	}
	if into.IsZero() && into.CanSet() {
		into.Set(from)
	}
}

// isLeafType is true for structs that are one value in a file.
func isLeafType(t reflect.Type) bool {
	return decodesItself(t) || t == reflect.TypeFor[metav1.Duration]()
}
