package kubeclient

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const good = `apiVersion: v1
kind: Config
current-context: here
clusters:
- name: one
  cluster: {server: "https://10.0.0.1:6443", certificate-authority: ca.crt}
contexts:
- name: here
  context: {cluster: one, user: me}
users:
- name: me
  user: {USER}
`

func TestLoad(t *testing.T) {
	withUser := func(user string) string { return strings.Replace(good, "{USER}", user, 1) }
	for name, c := range map[string]struct {
		text string
		want string // in the error
	}{
		"certificate files":  {withUser("{client-certificate: c.pem, client-key: c.pem}"), ""},
		"token file":         {withUser("{tokenFile: token}"), ""},
		"exec":               {withUser("{exec: {apiVersion: client.authentication.k8s.io/v1, command: ./login, interactiveMode: Never}}"), ""},
		"missing":            {"", "does not exist: write it, or give a bootstrap kubeconfig"},
		"empty":              {"\n", "names no cluster"},
		"not yaml":           {"{", "is not valid: mend or replace it"},
		"no such context":    {strings.Replace(withUser("{token: t}"), "current-context: here", "current-context: there", 1), `context "there": check its current-context`},
		"no such key file":   {withUser("{client-certificate: c.pem, client-key: gone.pem}"), "gone.pem"},
		"no such authority":  {strings.Replace(withUser("{token: t}"), "ca.crt", "gone.crt", 1), "gone.crt"},
		"two ways to log in": {withUser("{token: t, username: u, password: p}"), "more than one authentication method"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "kubelet.conf")
			for file, text := range map[string]string{"kubelet.conf": c.text, "ca.crt": "ca", "c.pem": "pem", "token": "t"} {
				if text == "" {
					continue
				}
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			config, err := Load(path)
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
					t.Fatalf("error %v, want one about %q that names %s", err, c.want, path)
				}
				if name == "missing" && !errors.Is(err, os.ErrNotExist) {
					t.Fatalf("%v is not os.ErrNotExist", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if config.Host != "https://10.0.0.1:6443" || config.CAFile != filepath.Join(dir, "ca.crt") {
				t.Fatalf("host %s, authority %s", config.Host, config.CAFile)
			}
			switch name {
			case "certificate files":
				if config.CertFile != filepath.Join(dir, "c.pem") {
					t.Fatalf("certificate %s", config.CertFile)
				}
			case "token file":
				if config.BearerTokenFile != filepath.Join(dir, "token") {
					t.Fatalf("token file %s", config.BearerTokenFile)
				}
			case "exec":
				if config.ExecProvider.Command != filepath.Join(dir, "login") {
					t.Fatalf("command %s", config.ExecProvider.Command)
				}
			}
		})
	}
}
