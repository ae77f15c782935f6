package resources

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// texts spells a list out, so that a failure can be read.
func texts(list corev1.ResourceList) map[string]string {
	out := map[string]string{}
	for name, q := range list {
		out[string(name)] = q.String()
	}
	return out
}

func TestCapacityAndAllocatable(t *testing.T) {
	machine := Machine{
		CPUs: 4, Memory: 8 << 30, Storage: 100_000_000_000,
		Hugepages: []Hugepages{{Size: 2 << 20, Pages: 512}, {Size: 1 << 30}},
	}
	for _, tt := range []struct {
		name     string
		machine  Machine
		pods     PodLimit
		reserved Reserved
		capacity map[string]string
		free     map[string]string
	}{
		{
			"nothing reserved", machine, PodLimit{Max: 110}, Reserved{},
			map[string]string{"cpu": "4", "memory": "8Gi", "pods": "110", "ephemeral-storage": "100G", "hugepages-2Mi": "1Gi", "hugepages-1Gi": "0"},
			map[string]string{"cpu": "4", "memory": "7Gi", "pods": "110", "ephemeral-storage": "100G", "hugepages-2Mi": "1Gi", "hugepages-1Gi": "0"},
		},
		{
			"stock thresholds and reservations", Machine{CPUs: 4, Memory: 8 << 30, Storage: 100_000_000_000}, PodLimit{Max: 110, PerCore: 10},
			Reserved{
				System: must(ParseReserved(map[string]string{"cpu": "200m", "memory": "1Gi"})),
				Kube:   must(ParseReserved(map[string]string{"cpu": "300m", "ephemeral-storage": "1Gi", "pid": "1000"})),
				Eviction: must(ParseHardEviction(map[string]string{
					"memory.available": "100Mi", "nodefs.available": "10%", "nodefs.inodesFree": "5%", "imagefs.available": "15%"})),
			},
			map[string]string{"cpu": "4", "memory": "8Gi", "pods": "40", "ephemeral-storage": "100G"},
			// 10 % in single precision, as the stock kubelet counts it.
			map[string]string{"cpu": "3500m", "memory": "7068Mi", "pods": "40", "ephemeral-storage": "88926258027"},
		},
		{
			"more reserved than there is", Machine{CPUs: 1, Memory: 1 << 30}, PodLimit{Max: 5, PerCore: 10},
			Reserved{System: must(ParseReserved(map[string]string{"cpu": "2", "memory": "2Gi"}))},
			map[string]string{"cpu": "1", "memory": "1Gi", "pods": "5"},
			map[string]string{"cpu": "0", "memory": "0", "pods": "5"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			capacity := Capacity(tt.machine, tt.pods)
			if diff := cmp.Diff(tt.capacity, texts(capacity)); diff != "" {
				t.Errorf("capacity %s", diff)
			}
			if diff := cmp.Diff(tt.free, texts(Allocatable(capacity, tt.reserved.Total(capacity)))); diff != "" {
				t.Errorf("allocatable %s", diff)
			}
		})
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func TestParseReservedRefuses(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"pods", "1", `cannot reserve "pods" resource`},
		{"memory", "much", `failed to parse quantity "much" for "memory" resource`},
		{"cpu", "-1", `resource quantity for "cpu" cannot be negative: -1`},
	} {
		_, err := ParseReserved(map[string]string{tt.name: tt.text})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s=%s: %v, want %s", tt.name, tt.text, err, tt.want)
		}
	}
	got := must(ParseReserved(map[string]string{"cpu": "100500u"}))
	if diff := cmp.Diff(map[string]string{"cpu": "101m"}, texts(got)); diff != "" {
		t.Errorf("CPU is kept in thousandths: %s", diff)
	}
}

func TestParseHardEviction(t *testing.T) {
	for _, tt := range []struct{ signal, text, want string }{
		{"disk.full", "1", "unsupported eviction signal disk.full"},
		{"memory.available", "0", "eviction threshold memory.available must be positive: 0"},
		{"memory.available", "x", `eviction threshold memory.available: "x"`},
		{"nodefs.available", "-1%", "eviction percentage threshold nodefs.available must be >= 0%: -1%"},
		{"nodefs.available", "101%", "eviction percentage threshold nodefs.available must be <= 100%: 101%"},
		{"nodefs.available", "x%", `eviction threshold nodefs.available: "x%"`},
	} {
		_, err := ParseHardEviction(map[string]string{tt.signal: tt.text})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s=%s: %v, want %s", tt.signal, tt.text, err, tt.want)
		}
	}
	none := must(ParseHardEviction(map[string]string{"memory.available": "0%", "nodefs.available": "100%", "pid.available": "10%"}))
	if len(none) > 0 {
		t.Errorf("0%% and 100%% reserve %+v", none)
	}
}

func TestReserveCPUs(t *testing.T) {
	before := Reserved{
		System: must(ParseReserved(map[string]string{"memory": "1Gi"})),
		Kube:   must(ParseReserved(map[string]string{"cpu": "1", "memory": "1Gi"})),
	}
	after := before.ReserveCPUs(must(CPUs("0-1,4")))
	capacity := Capacity(Machine{CPUs: 8, Memory: 4 << 30}, PodLimit{})
	if diff := cmp.Diff(map[string]string{"cpu": "3", "memory": "2Gi"}, texts(after.Total(capacity))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"cpu": "1", "memory": "2Gi"}, texts(before.ReserveCPUs(0).Total(capacity))); diff != "" {
		t.Errorf("the reservation before: %s", diff)
	}
}

func TestCPUs(t *testing.T) {
	for list, want := range map[string]int{"": 0, "0": 1, "0-3": 4, "0-3,2-5,9\n": 7, "7": 1} {
		if got, err := CPUs(list); err != nil || got != want {
			t.Errorf("%q: %d, %v; want %d", list, got, err, want)
		}
	}
	for _, list := range []string{"a", "3-1", "-1", "0-", "0-99999999999"} {
		if n, err := CPUs(list); err == nil {
			t.Errorf("%q is taken as %d CPUs", list, n)
		}
	}
}
