package config

import (
	"strings"
	"testing"
	"time"
)

// What stands in a file is told in words of files, with the line, and all of it
// at once.
func TestWrongTypes(t *testing.T) {
	for _, row := range []struct{ text, want string }{
		{`maxPods: many`, `:3: maxPods: want a whole number, found the text "many"`},
		{`maxPods: "110"`, `:3: maxPods: want a whole number, found the text "110"`},
		{`maxPods: 1.5`, `:3: maxPods: want a whole number, found the number 1.5`},
		{`maxPods: 3000000000`, `:3: maxPods: want a number from -2147483648 to 2147483647, found 3000000000`},
		{`maxPods: [1]`, `:3: maxPods: want a whole number, found a list`},
		{`clusterDomain: 7`, `:3: clusterDomain: want a string, found the number 7; put it in quotes`},
		{`clusterDNS: 10.0.0.10`, `:3: clusterDNS: want a list, found the text "10.0.0.10"`},
		{`clusterDNS: [1]`, `:3: clusterDNS[0]: want a string, found the number 1; put it in quotes`},
		{`authentication: true`, `:3: authentication: want fields below it (key: value), found true`},
		{"authentication:\n  webhook:\n    enabled: perhaps", `:5: authentication.webhook.enabled: want true or false, found the text "perhaps"`},
		{`fileCheckFrequency: 20`, `:3: fileCheckFrequency: want a duration such as "20s" or "1m30s", found the number 20`},
		{`fileCheckFrequency: 20 s`, `:3: fileCheckFrequency: want a duration such as "20s" or "1m30s", found the text "20 s"`},
		{`featureGates: {EnvFiles: 1}`, `:3: featureGates.EnvFiles: want true or false, found the number 1`},
		{`evictionHard: {memory.available: 100}`, `:3: evictionHard.memory.available: want a string, found the number 100; put it in quotes`},
		{`logging: {verbosity: -1}`, `:3: logging.verbosity: want a number from 0 to 4294967295, found -1`},
		{`reservedMemory: [{numaNode: 0, limits: {memory: lots}}]`, `:3: reservedMemory[0].limits.memory: want a quantity such as "10Mi" or "500m", found the text "lots"`},
		{`memoryThrottlingFactor: high`, `:3: memoryThrottlingFactor: want a number, found the text "high"`},
	} {
		file := write(t, t.TempDir(), "k.yaml", header+row.text+"\n")
		_, err := NewLoader().Load(Files{Main: file})
		if err == nil || !strings.HasSuffix(err.Error(), file+row.want) {
			t.Errorf("%s:\n got %v\nwant %s", row.text, err, row.want)
		}
	}
	file := write(t, t.TempDir(), "k.yaml", header+"maxPods: x\nport: y\n")
	_, err := NewLoader().Load(Files{Main: file})
	if err == nil || !strings.Contains(err.Error(), "[") || !strings.Contains(err.Error(), ":4: port: ") {
		t.Errorf("two mistakes: %v", err)
	}
}

// What the stock kubelet reads is read.
func TestOtherSpellings(t *testing.T) {
	text := "failSwapOn: no\nenableServer: Off\nlogging: {flushFrequency: 3000000000}\nmemoryThrottlingFactor: 1\ncontainerLogMaxSize: 10Mi\n" +
		"defaults: &d {enabled: yes}\nauthentication: {webhook: {<<: *d, cacheTTL: 3s}}\nclusterDomain: 2024-01-01\n"
	loaded, err := NewLoader().Load(Files{Main: write(t, t.TempDir(), "k.yaml", header+text)})
	if err != nil {
		t.Fatal(err)
	}
	kc := loaded.Kubelet
	if *kc.FailSwapOn || *kc.EnableServer || *kc.MemoryThrottlingFactor != 1 || kc.Logging.FlushFrequency.Duration.Duration != 3*time.Second {
		t.Errorf("%+v", kc)
	}
	if !*kc.Authentication.Webhook.Enabled || kc.Authentication.Webhook.CacheTTL.Duration != 3*time.Second || kc.ClusterDomain != "2024-01-01" {
		t.Errorf("%+v, %q", kc.Authentication, kc.ClusterDomain)
	}
	if len(loaded.Problems) != 1 || loaded.Problems[0].Field != "defaults" {
		t.Errorf("problems: %v", loaded.Problems)
	}
}

// A field is not set by its name in other letters: the stock kubelet does not
// take it either.
func TestNamesAreCaseSensitive(t *testing.T) {
	loaded, err := NewLoader().Load(Files{Main: write(t, t.TempDir(), "k.yaml", header+"maxpods: 7\n")})
	if err != nil || loaded.Kubelet.MaxPods != 110 || len(loaded.Problems) != 1 || loaded.Problems[0].Nearest != "maxPods" {
		t.Errorf("maxPods %d, %v, %v", loaded.Kubelet.MaxPods, loaded.Problems, err)
	}
}
