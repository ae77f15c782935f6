package kubeclient

import (
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/rest"
)

func TestWriteIsWhatLoadReads(t *testing.T) {
	dir := t.TempDir()
	pemPath, path := filepath.Join(dir, "current.pem"), filepath.Join(dir, "new", "kubelet.conf")
	if err := os.WriteFile(pemPath, []byte("pem"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tlsConfig := range map[string]rest.TLSClientConfig{
		"authority in the file": {CAData: []byte("ca"), ServerName: "api"},
		"authority beside":      {CAFile: pemPath, CAData: []byte("read from it")},
	} {
		t.Run(name, func(t *testing.T) {
			if err := Write(path, &rest.Config{Host: "https://10.0.0.1:6443", BearerToken: "secret", TLSClientConfig: tlsConfig}, pemPath); err != nil {
				t.Fatal(err)
			}
			got, err := Load(path)
			if err != nil {
				t.Fatal(err)
			}
			if got.Host != "https://10.0.0.1:6443" || got.BearerToken != "" || got.CertFile != pemPath || got.KeyFile != pemPath || got.ServerName != tlsConfig.ServerName {
				t.Fatalf("read back %v", got)
			}
			if got.CAFile != tlsConfig.CAFile || tlsConfig.CAFile == "" && string(got.CAData) != "ca" {
				t.Fatalf("authority %q, %q", got.CAFile, got.CAData)
			}
			info, err := os.Stat(path)
			if err != nil || info.Mode().Perm() != 0o600 {
				t.Fatalf("%v, %v", info.Mode(), err)
			}
		})
	}
}
