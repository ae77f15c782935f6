package handlers

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"nodekit.dev/node/podactor"
)

const (
	// drainLimit is how much of an answer is read before the connection is
	// closed, bytes: a hook's answer is of no use to anyone.
	drainLimit = 10 << 10

	maxRedirects = 10
)

// newClient makes a client for requests to pods: straight to them whatever
// proxy the agent's environment names, and without a check of certificates,
// which pods sign themselves.
func newClient() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			DialContext:        (&net.Dialer{}).DialContext,
			TLSClientConfig:    &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // see above
			DisableKeepAlives:  true,
			DisableCompression: true,
		},
		CheckRedirect: followSameHost,
	}
}

// followSameHost keeps a pod from sending the agent elsewhere: the redirect
// itself is then the answer.
func followSameHost(next *http.Request, before []*http.Request) error {
	if next.URL.Hostname() != before[0].URL.Hostname() {
		return http.ErrUseLastResponse
	}
	if len(before) >= maxRedirects {
		return fmt.Errorf("stopped after %d redirects", maxRedirects)
	}
	return nil
}

func (r *Runner) runHTTPGet(ctx context.Context, req podactor.HandlerRequest) error {
	target, err := targetURL(req)
	if err != nil {
		return fmt.Errorf("httpGet: %w", err)
	}
	headers := r.headers(req.Handler.HTTPGet.HTTPHeaders)
	err = r.get(ctx, target, headers)
	if target.Scheme == "https" && errors.Is(err, http.ErrSchemeMismatch) {
		// Hooks once ignored the scheme, so some that ask for HTTPS meet a plain
		// server. They still work, but no secret goes over such a connection.
		r.log.Warn("lifecycle hook asks for HTTPS of a server that speaks HTTP",
			"pod", req.Pod.Namespace+"/"+req.Pod.Name, "uid", req.Pod.UID, "container", req.Container)
		target.Scheme = "http"
		headers.Del("Authorization")
		err = r.get(ctx, target, headers)
	}
	if err != nil {
		return fmt.Errorf("httpGet: %w", err) // the client's errors name the URL
	}
	return nil
}

func (r *Runner) get(ctx context.Context, target *url.URL, headers http.Header) error {
	httpReq, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return err
	}
	httpReq.Header = headers
	httpReq.Host = headers.Get("Host")
	resp, err := r.client.Do(httpReq)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // nothing was written; the answer is here
	_, _ = io.CopyN(io.Discard, resp.Body, drainLimit)
	return nil
}

// headers are the hook's own, with defaults for those that it does not set. An
// own header with an empty value takes the default away.
func (r *Runner) headers(own []corev1.HTTPHeader) http.Header {
	out := http.Header{}
	for _, h := range own {
		out.Add(h.Name, h.Value)
	}
	for name, fallback := range map[string]string{"User-Agent": r.cfg.UserAgent, "Accept": "*/*"} {
		switch have, ok := out[name]; {
		case !ok:
			out.Set(name, fallback)
		case name == "Accept" && have[0] == "":
			out.Del(name)
		}
	}
	return out
}

// targetURL is the URL of the request: the pod's own address where the handler
// names no host.
func targetURL(req podactor.HandlerRequest) (*url.URL, error) {
	get := req.Handler.HTTPGet
	host := get.Host
	if host == "" {
		if len(req.PodIPs) == 0 {
			return nil, errors.New("the pod has no address yet and the handler names no host")
		}
		host = req.PodIPs[0]
	}
	port, err := portNumber(get.Port, req.Pod, req.Container)
	if err != nil {
		return nil, err
	}
	target := &url.URL{Path: get.Path}
	if parsed, err := url.Parse(get.Path); err == nil { // else it is a path with odd characters
		// What else the text may hold, a host above all, is not the path's business.
		target = &url.URL{Path: parsed.Path, RawPath: parsed.RawPath, RawQuery: parsed.RawQuery}
	}
	if !strings.HasPrefix(target.Path, "/") {
		target = &url.URL{Path: "/" + target.Path, RawQuery: target.RawQuery}
	}
	target.Scheme = "http"
	if strings.EqualFold(string(get.Scheme), string(corev1.URISchemeHTTPS)) {
		target.Scheme = "https"
	}
	target.Host = net.JoinHostPort(host, strconv.Itoa(port))
	return target, nil
}

// portNumber resolves a port given by number or by the name that the
// container's own ports give it.
func portNumber(port intstr.IntOrString, pod *corev1.Pod, container string) (int, error) {
	number := port.IntValue()
	if port.Type == intstr.String && number == 0 {
		for _, p := range portsOf(pod, container) {
			if p.Name == port.StrVal {
				number = int(p.ContainerPort)
			}
		}
	}
	if number <= 0 || number > 65535 {
		return 0, fmt.Errorf("port %q: neither a port number nor the name of a port of container %s", port.String(), container)
	}
	return number, nil
}

func portsOf(pod *corev1.Pod, container string) []corev1.ContainerPort {
	for _, list := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range list {
			if list[i].Name == container {
				return list[i].Ports
			}
		}
	}
	return nil
}
