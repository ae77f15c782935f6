package config

import (
	"slices"
	"strings"
)

// actedOn lists the fields of KubeletConfiguration that nodekit acts on today,
// by path; what stands below a listed field is acted on too. A field that is
// set in a file and is not in this list is named in a warning at start: it is
// never ignored without a word.
func actedOn() []string {
	return []string{
		"apiVersion", "kind",
		"staticPodPath", "fileCheckFrequency", "staticPodURL", "staticPodURLHeader", "httpCheckFrequency",
		"podLogsDir", "containerLogMaxSize", "containerLogMaxFiles", "containerLogMaxWorkers", "containerLogMonitorInterval",
		"containerRuntimeEndpoint", "imageServiceEndpoint", "runtimeRequestTimeout",
		"serializeImagePulls", "maxParallelImagePulls",
		"cgroupRoot", "cgroupDriver", "cgroupsPerQOS", "failCgroupV1", "cpuCFSQuota", "cpuCFSQuotaPeriod",
		"clusterDNS", "clusterDomain", "resolvConf", "seccompDefault", "allowedUnsafeSysctls",
		"healthzPort", "healthzBindAddress",
		"crashLoopBackOff.maxContainerRestartPeriod",
		"logging.format", "logging.verbosity", "logging.flushFrequency",
		"featureGates", "runOnce", "oomScoreAdj",
	}
}

// ActedOn lists the paths of the fields that nodekit acts on, sorted.
func ActedOn() []string {
	fields := actedOn()
	slices.Sort(fields)
	return fields
}

// NotActedOn lists the fields that a file or an override set but that nodekit
// does not act on yet, by path, sorted.
func (l *Loaded) NotActedOn() []string {
	return notActedOn(l.Set, "", l.unknown())
}

func notActedOn(set map[string]any, parent string, unknown map[string]bool) (out []string) {
	for _, key := range sortedKeys(set) {
		path := join(parent, key)
		if unknown[path] || slices.Contains(actedOn(), path) {
			continue
		}
		below, isMap := set[key].(map[string]any)
		if isMap && slices.ContainsFunc(actedOn(), func(f string) bool { return strings.HasPrefix(f, path+".") }) {
			out = append(out, notActedOn(below, path, unknown)...)
			continue
		}
		out = append(out, path)
	}
	return out
}

// unknown fields are reported as Problems already.
func (l *Loaded) unknown() map[string]bool {
	fields := map[string]bool{}
	for _, p := range l.Problems {
		if p.What == unknownField {
			fields[p.Field] = true
		}
	}
	return fields
}
