package probe

import (
	"errors"
	"fmt"
	"net"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// PortOf is the number of a handler's port (core/v1 HTTPGetAction.port,
// TCPSocketAction.port): the number itself, or that of the first of the
// container's ports with that name, whatever its protocol. A text that names
// none may still be a number. It fails for what is not from 1 to 65535.
func PortOf(port intstr.IntOrString, ports []corev1.ContainerPort) (int, error) {
	number := int(port.IntVal)
	if port.Type == intstr.String {
		var err error
		if number, err = portNamed(port.StrVal, ports); err != nil {
			return 0, err
		}
	}
	if number < 1 || number > 65535 {
		return 0, fmt.Errorf("port %q is not from 1 to 65535", port.String())
	}
	return number, nil
}

func portNamed(name string, ports []corev1.ContainerPort) (int, error) {
	for _, p := range ports {
		if p.Name == name && name != "" { // ports may have no name; no handler means those
			return int(p.ContainerPort), nil
		}
	}
	number, err := strconv.Atoi(name)
	if err != nil {
		return 0, fmt.Errorf("port %q is neither a number nor the name of a port of the container", name)
	}
	return number, nil
}

// Address is the "host:port" that a handler means. Without a host of its own it
// is the target's, and an error as long as that is not known: an empty host would
// be this node. For the port see [PortOf].
func (t *Target) Address(host string, port intstr.IntOrString) (string, error) {
	if host == "" {
		host = t.Host
	}
	if host == "" {
		return "", errors.New("the pod has no address yet, and the handler names no host")
	}
	number, err := PortOf(port, t.Ports)
	if err != nil {
		return "", err
	}
	return net.JoinHostPort(host, strconv.Itoa(number)), nil
}
