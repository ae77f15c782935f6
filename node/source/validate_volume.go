package source

import (
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateVolumes checks the volumes and returns them by name.
func validateVolumes(list []corev1.Volume, path *field.Path) (map[string]*corev1.Volume, field.ErrorList) {
	var errs field.ErrorList
	byName := map[string]*corev1.Volume{}
	for i := range list {
		v, at := &list[i], path.Index(i)
		errs = append(errs, named(at.Child("name"), v.Name, validation.IsDNS1123Label)...)
		if byName[v.Name] != nil {
			errs = append(errs, field.Duplicate(at.Child("name"), v.Name))
		}
		byName[v.Name] = v
		if n := sources(v.VolumeSource); n != 1 {
			errs = append(errs, field.Invalid(at, v.Name, fmt.Sprintf("has %d sources, must have one", n)))
		}
		errs = append(errs, validateSource(v.VolumeSource, at)...)
	}
	return byName, errs
}

// sources counts the members of a VolumeSource that are set: all are pointers.
func sources(s corev1.VolumeSource) int {
	n := 0
	for _, member := range reflect.ValueOf(s).Fields() {
		if !member.IsNil() {
			n++
		}
	}
	return n
}

func validateSource(s corev1.VolumeSource, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if h := s.HostPath; h != nil {
		at := at.Child("hostPath")
		if h.Path == "" {
			errs = append(errs, field.Required(at.Child("path"), ""))
		}
		errs = append(errs, noDotDot(at.Child("path"), h.Path)...)
		if h.Type != nil {
			errs = append(errs, oneOf(at.Child("type"), *h.Type, corev1.HostPathUnset, corev1.HostPathDirectoryOrCreate,
				corev1.HostPathDirectory, corev1.HostPathFileOrCreate, corev1.HostPathFile, corev1.HostPathSocket,
				corev1.HostPathCharDev, corev1.HostPathBlockDev)...)
		}
	}
	if e := s.EmptyDir; e != nil && e.SizeLimit != nil && e.SizeLimit.Sign() < 0 {
		errs = append(errs, field.Invalid(at.Child("emptyDir", "sizeLimit"), e.SizeLimit.String(), "must not be negative"))
	}
	if s.Secret != nil && s.Secret.SecretName == "" {
		errs = append(errs, field.Required(at.Child("secret", "secretName"), ""))
	}
	if s.ConfigMap != nil && s.ConfigMap.Name == "" {
		errs = append(errs, field.Required(at.Child("configMap", "name"), ""))
	}
	if s.PersistentVolumeClaim != nil && s.PersistentVolumeClaim.ClaimName == "" {
		errs = append(errs, field.Required(at.Child("persistentVolumeClaim", "claimName"), ""))
	}
	return errs
}
