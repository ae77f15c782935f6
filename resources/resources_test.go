package resources

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// list makes a ResourceList of pairs such as "cpu", "1".
func list(pairs ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		out[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return out
}

func container(requests, limits corev1.ResourceList) corev1.Container {
	return corev1.Container{Name: "c", Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits}}
}

func sidecar(requests, limits corev1.ResourceList) corev1.Container {
	c := container(requests, limits)
	c.Name, c.RestartPolicy = "s", new(corev1.ContainerRestartPolicyAlways)
	return c
}

func pod(containers ...corev1.Container) *corev1.Pod {
	return &corev1.Pod{Spec: corev1.PodSpec{Containers: containers}}
}

func withInit(p *corev1.Pod, init ...corev1.Container) *corev1.Pod {
	p.Spec.InitContainers = init
	return p
}

func withOverhead(p *corev1.Pod, overhead corev1.ResourceList) *corev1.Pod {
	p.Spec.Overhead = overhead
	return p
}

func TestQOSClass(t *testing.T) {
	full := list("cpu", "1", "memory", "1Gi")
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want corev1.PodQOSClass
	}{
		"nothing":                  {pod(container(nil, nil)), corev1.PodQOSBestEffort},
		"zero":                     {pod(container(list("cpu", "0"), nil)), corev1.PodQOSBestEffort},
		"other resources":          {pod(container(nil, list("ephemeral-storage", "1Gi"))), corev1.PodQOSBestEffort},
		"overhead does not count":  {withOverhead(pod(container(nil, nil)), full), corev1.PodQOSBestEffort},
		"equal":                    {pod(container(full, full)), corev1.PodQOSGuaranteed},
		"limits stand for both":    {pod(container(nil, full)), corev1.PodQOSGuaranteed},
		"equal in other units":     {pod(container(list("cpu", "1000m", "memory", "1024Mi"), full)), corev1.PodQOSGuaranteed},
		"request below limit":      {pod(container(list("cpu", "500m", "memory", "1Gi"), full)), corev1.PodQOSBurstable},
		"no memory limit":          {pod(container(nil, list("cpu", "1"))), corev1.PodQOSBurstable},
		"requests only":            {pod(container(full, nil)), corev1.PodQOSBurstable},
		"one container without":    {pod(container(full, full), container(nil, nil)), corev1.PodQOSBurstable},
		"init container without":   {withInit(pod(container(full, full)), container(nil, nil)), corev1.PodQOSBurstable},
		"init container only":      {withInit(pod(container(nil, nil)), container(full, full)), corev1.PodQOSBurstable},
		"all of them, with a side": {withInit(pod(container(full, full)), sidecar(full, full)), corev1.PodQOSGuaranteed},
	} {
		if got := QOSClass(tc.pod); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

func TestPodTotals(t *testing.T) {
	cpu := func(n string) corev1.Container { return container(list("cpu", n), list("cpu", n)) }
	side := func(n string) corev1.Container { return sidecar(list("cpu", n), list("cpu", n)) }
	for name, tc := range map[string]struct {
		pod              *corev1.Pod
		requests, limits corev1.ResourceList
	}{
		"sum of main":               {pod(cpu("1"), cpu("2")), list("cpu", "3"), list("cpu", "3")},
		"larger init":               {withInit(pod(cpu("1")), cpu("5"), cpu("4")), list("cpu", "5"), list("cpu", "5")},
		"smaller init":              {withInit(pod(cpu("3")), cpu("1")), list("cpu", "3"), list("cpu", "3")},
		"sidecar stays":             {withInit(pod(cpu("1")), side("2")), list("cpu", "3"), list("cpu", "3")},
		"init beside sidecar":       {withInit(pod(cpu("1")), side("2"), cpu("3")), list("cpu", "5"), list("cpu", "5")},
		"init before sidecar":       {withInit(pod(cpu("1")), cpu("3"), side("2")), list("cpu", "3"), list("cpu", "3")},
		"overhead":                  {withOverhead(pod(cpu("1")), list("cpu", "250m")), list("cpu", "1250m"), list("cpu", "1250m")},
		"overhead needs a limit":    {withOverhead(pod(container(list("cpu", "1"), nil)), list("cpu", "1", "memory", "1Mi")), list("cpu", "2", "memory", "1Mi"), list()},
		"limit stands for requests": {pod(container(nil, list("memory", "1Gi"))), list("memory", "1Gi"), list("memory", "1Gi")},
	} {
		t.Run(name, func(t *testing.T) {
			before := tc.pod.DeepCopy()
			if diff := cmp.Diff(tc.requests, PodRequests(tc.pod)); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.limits, PodLimitTotals(tc.pod)); diff != "" {
				t.Errorf("limits (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, tc.pod); diff != "" {
				t.Errorf("the pod was changed:\n%s", diff)
			}
		})
	}
}

func TestShares(t *testing.T) {
	for milli, want := range map[int64]int64{
		0: 2, 1: 2, 2: 2, 3: 3, 100: 102, 1000: 1024,
		256_000: 262144, 257_000: 262144, 1_000_000: 262144, 1 << 62: 262144,
	} {
		if got := Shares(milli); got != want {
			t.Errorf("Shares(%dm) = %d, want %d", milli, got, want)
		}
	}
	for shares, want := range map[int64]int64{0: 1, 2: 1, 1024: 39, 262144: 10000, 1 << 20: 10000} {
		if got := Weight(shares); got != want {
			t.Errorf("Weight(%d) = %d, want %d", shares, got, want)
		}
	}
}

func TestQuota(t *testing.T) {
	for name, tc := range map[string]struct {
		quota CPUQuota
		milli int64
		want  int64
	}{
		"half":         {DefaultCPUQuota(), 500, 50_000},
		"two":          {DefaultCPUQuota(), 2000, 200_000},
		"kernel's min": {DefaultCPUQuota(), 1, 1000},
		"no limit":     {DefaultCPUQuota(), 0, 0},
		"off":          {CPUQuota{Period: time.Second}, 500, 0},
		"10 ms":        {CPUQuota{Enforce: true, Period: 10 * time.Millisecond}, 500, 5000},
	} {
		if got := tc.quota.Micros(tc.milli); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
}

func TestPodLimits(t *testing.T) {
	const mi = 1 << 20
	kata := list("cpu", "250m", "memory", "64Mi")
	small := container(list("cpu", "100m", "memory", "32Mi"), list("cpu", "500m", "memory", "64Mi"))
	free := container(list("cpu", "100m"), nil)
	for name, tc := range map[string]struct {
		pod           *corev1.Pod
		want, without Limits
	}{
		"guaranteed": {
			pod(container(nil, list("cpu", "2", "memory", "1Gi", "hugepages-2Mi", "4Mi"))),
			Limits{CPUShares: 2048, CPUQuota: 200_000, CPUPeriod: 100_000, Memory: 1024 * mi, Hugepages: map[string]uint64{"2MB": 4 * mi}},
			Limits{CPUShares: 2048, CPUQuota: 200_000, CPUPeriod: 100_000, Memory: 1024 * mi, Hugepages: map[string]uint64{"2MB": 4 * mi}},
		},
		"burstable, all limited, overhead": {
			withOverhead(pod(small), kata),
			Limits{CPUShares: 358, CPUQuota: 75_000, CPUPeriod: 100_000, Memory: 128 * mi},
			Limits{CPUShares: 102, CPUQuota: 50_000, CPUPeriod: 100_000, Memory: 64 * mi},
		},
		"burstable, one free": {
			withOverhead(pod(small, free), kata),
			Limits{CPUShares: 460},
			Limits{CPUShares: 204},
		},
		"burstable, free init container": {
			withInit(pod(small), free),
			Limits{CPUShares: 102},
			Limits{CPUShares: 102},
		},
		"best effort, overhead": {
			withOverhead(pod(container(nil, nil)), kata),
			Limits{CPUShares: 2},
			Limits{CPUShares: 2},
		},
		"more than the kernel counts": {
			pod(container(list("cpu", "300"), nil)),
			Limits{CPUShares: 262144},
			Limits{CPUShares: 262144},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, PodLimits(tc.pod, DefaultCPUQuota())); diff != "" {
				t.Errorf("PodLimits (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.without, PodLimitsWithoutOverhead(tc.pod, DefaultCPUQuota())); diff != "" {
				t.Errorf("PodLimitsWithoutOverhead (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOverheadLimits(t *testing.T) {
	if _, ok := OverheadLimits(pod(), DefaultCPUQuota()); ok {
		t.Error("a pod without overhead has some")
	}
	got, ok := OverheadLimits(withOverhead(pod(), list("cpu", "250m", "memory", "64Mi")), DefaultCPUQuota())
	want := Limits{CPUShares: 256, CPUQuota: 25_000, CPUPeriod: 100_000, Memory: 64 << 20}
	if diff := cmp.Diff(want, got); diff != "" || !ok {
		t.Errorf("%v (-want +got):\n%s", ok, diff)
	}
}

func TestHugepageSize(t *testing.T) {
	for name, want := range map[corev1.ResourceName]string{
		"hugepages-2Mi": "2MB", "hugepages-1Gi": "1GB", "hugepages-64Ki": "64KB", "hugepages-512Mi": "512MB",
		"hugepages-2048Ki": "2MB", "hugepages-100": "100B", "hugepages-": "", "hugepages-x": "", "memory": "", "hugepages-0": "",
	} {
		if got, ok := HugepageSize(name); got != want || ok != (want != "") {
			t.Errorf("%s: %q %v, want %q", name, got, ok, want)
		}
	}
}

func TestOOMScoreAdj(t *testing.T) {
	const capacity = 4 << 30
	named := func(name string, c corev1.Container) corev1.Container { c.Name = name; return c }
	critical := pod(container(nil, nil))
	critical.Spec.PriorityClassName = "system-node-critical"
	clusterCritical := pod(container(nil, nil))
	clusterCritical.Spec.PriorityClassName = "system-cluster-critical"
	full := list("cpu", "1", "memory", "1Gi")
	mem := func(q string) corev1.Container { return container(list("memory", q), nil) }
	for name, tc := range map[string]struct {
		pod       *corev1.Pod
		container string
		want      int64
	}{
		"guaranteed":            {pod(container(full, full)), "c", -997},
		"best effort":           {pod(container(nil, nil)), "c", 1000},
		"node critical":         {critical, "c", -997},
		"cluster critical":      {clusterCritical, "c", 1000},
		"a quarter":             {pod(mem("1Gi")), "c", 750},
		"all of it":             {pod(mem("4Gi")), "c", 3},
		"more than there is":    {pod(mem("40Gi")), "c", 3},
		"nearly nothing":        {pod(mem("1Mi")), "c", 999},
		"no memory request":     {pod(container(list("cpu", "1"), nil)), "c", 999},
		"limit stands for it":   {pod(container(nil, list("memory", "2Gi"))), "c", 500},
		"sidecar is spared":     {withInit(pod(mem("2Gi")), sidecar(list("memory", "1Gi"), nil)), "s", 500},
		"sidecar on its own":    {withInit(pod(mem("1Gi")), sidecar(list("memory", "2Gi"), nil)), "s", 500},
		"init container is not": {withInit(pod(mem("2Gi")), named("i", mem("1Gi"))), "i", 750},
	} {
		t.Run(name, func(t *testing.T) {
			for c := range allContainers(tc.pod) {
				if c.Name == tc.container {
					if got := OOMScoreAdj(tc.pod, c, capacity); got != tc.want {
						t.Errorf("%d, want %d", got, tc.want)
					}
				}
			}
		})
	}
}

func TestCgroupNames(t *testing.T) {
	full := list("cpu", "1", "memory", "1Gi")
	for name, tc := range map[string]struct {
		names        CgroupNames
		pod          *corev1.Pod
		parent, path string
	}{
		"zero value": {CgroupNames{}, pod(container(nil, nil)), "/kubepods/besteffort/podab-12", "/kubepods/besteffort/podab-12"},
		"cgroupfs guaranteed": {CgroupNames{Driver: Cgroupfs, Root: "/"}, pod(container(full, full)),
			"/kubepods/podab-12", "/kubepods/podab-12"},
		"cgroupfs burstable, root": {CgroupNames{Driver: Cgroupfs, Root: "/agents/one-a"}, pod(container(full, nil)),
			"/agents/one-a/kubepods/burstable/podab-12", "/agents/one-a/kubepods/burstable/podab-12"},
		"systemd guaranteed": {CgroupNames{Driver: Systemd}, pod(container(full, full)),
			"kubepods-podab_12.slice", "/kubepods.slice/kubepods-podab_12.slice"},
		"systemd burstable": {CgroupNames{Driver: Systemd}, pod(container(full, nil)),
			"kubepods-burstable-podab_12.slice",
			"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podab_12.slice"},
		"systemd, root": {CgroupNames{Driver: Systemd, Root: "/one-a"}, pod(container(nil, nil)),
			"one_a-kubepods-besteffort-podab_12.slice",
			"/one_a.slice/one_a-kubepods.slice/one_a-kubepods-besteffort.slice/one_a-kubepods-besteffort-podab_12.slice"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.pod.UID = "ab-12"
			if err := tc.names.Validate(); err != nil {
				t.Error(err)
			}
			if got := tc.names.Parent(tc.pod); got != tc.parent {
				t.Errorf("Parent: %s, want %s", got, tc.parent)
			}
			if got := tc.names.Path("ab-12", QOSClass(tc.pod)); got != tc.path {
				t.Errorf("Path: %s, want %s", got, tc.path)
			}
		})
	}
	want := []string{"/kubepods/podx", "/kubepods/burstable/podx", "/kubepods/besteffort/podx"}
	if diff := cmp.Diff(want, CgroupNames{}.Candidates("x")); diff != "" {
		t.Errorf("Candidates (-want +got):\n%s", diff)
	}
	for _, bad := range []CgroupNames{{Driver: "x"}, {Root: "a"}, {Root: "/a/../b"}, {Root: "/a/"}} {
		if bad.Validate() == nil {
			t.Errorf("%+v is valid", bad)
		}
	}
}
