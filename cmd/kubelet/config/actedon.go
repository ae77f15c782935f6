package config

// actedOn lists the fields of KubeletConfiguration that nodekit acts on today.
// A field that is set in a file and is not in this list is named in a warning
// at start: it is never ignored without a word.
func actedOn() map[string]bool {
	fields := map[string]bool{}
	for _, f := range []string{
		"apiVersion", "kind",
		"staticPodPath", "fileCheckFrequency", "staticPodURL", "staticPodURLHeader", "httpCheckFrequency",
		"podLogsDir", "containerLogMaxSize", "containerLogMaxFiles", "containerLogMaxWorkers", "containerLogMonitorInterval",
		"containerRuntimeEndpoint", "imageServiceEndpoint", "runtimeRequestTimeout",
		"serializeImagePulls", "maxParallelImagePulls",
		"cgroupRoot", "cgroupDriver", "cgroupsPerQOS", "failCgroupV1", "cpuCFSQuota", "cpuCFSQuotaPeriod",
		"clusterDNS", "clusterDomain", "seccompDefault", "allowedUnsafeSysctls",
		"healthzPort", "healthzBindAddress",
		"crashLoopBackOff", "featureGates", "logging", "runOnce", "oomScoreAdj",
	} {
		fields[f] = true
	}
	return fields
}

// NotActedOn lists the top-level fields that were set but that nodekit does not
// act on yet, by name.
func (l *Loaded) NotActedOn() []string {
	acted := actedOn()
	var out []string
	for _, f := range sortedKeys(l.Set) {
		if !acted[f] && !l.unknown(f) {
			out = append(out, f)
		}
	}
	return out
}

// unknown fields are reported as Problems already.
func (l *Loaded) unknown(field string) bool {
	for _, p := range l.Problems {
		if p.Field == field && p.What == "unknown field" {
			return true
		}
	}
	return false
}
