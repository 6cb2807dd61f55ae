// Package cluster makes and starts one cluster of a test bed.
package cluster

import (
	"fmt"
	"net"
	"path/filepath"
	"strconv"
)

// The components of a cluster, in the order in which they need each other.
const (
	Etcd        = "etcd"
	APIServer   = "kube-apiserver"
	Controllers = "controllers"
	FakeKubelet = "fake-kubelet"
)

// PortCount is how many ports a cluster needs.
const PortCount = 3

// Plan says what one cluster will be.
type Plan struct {
	// Index counts from 1.
	Index int
	// Directory holds all files of the cluster.
	Directory string
	Ports     Ports
	Programs  Programs
	// Nodes is how many Nodes the fake kubelet plays.
	Nodes int
	// Audit has the API server log every request.
	Audit bool
}

// Ports are the ports of a cluster on the loopback address.
type Ports struct {
	EtcdClients, EtcdPeers, APIServer int
}

// NewPorts takes the ports from a list of [PortCount].
func NewPorts(list []int) Ports {
	return Ports{EtcdClients: list[0], EtcdPeers: list[1], APIServer: list[2]}
}

// Of returns the ports of a component, first the one that clients use.
func (p Ports) Of(component string) []int {
	switch component {
	case Etcd:
		return []int{p.EtcdClients, p.EtcdPeers}
	case APIServer:
		return []int{p.APIServer}
	default:
		return nil
	}
}

// Programs are the paths of the programs to run.
type Programs struct {
	Etcd, EtcdUtility, APIServer, Controllers, FakeKubelet, Kubectl string
}

// Name returns the name of a cluster: `management`, `cluster-1`, `cluster-2` and so on.
func Name(index int) string {
	if index == 1 {
		return "management"
	}
	return "cluster-" + strconv.Itoa(index-1)
}

// Name returns the name of the cluster.
func (p *Plan) Name() string { return Name(p.Index) }

// Kubeconfig is the path of the administrator's kubeconfig.
func (p *Plan) Kubeconfig() string { return p.file("kubeconfig") }

// Log is the path of the log of a component.
func (p *Plan) Log(component string) string { return p.file(component + ".log") }

// AuditLog is the path of the API server's audit log.
func (p *Plan) AuditLog() string { return p.file("audit.jsonl") }

func (p *Plan) file(elements ...string) string {
	return filepath.Join(append([]string{p.Directory}, elements...)...)
}

func (p *Plan) server() string { return url("https", p.Ports.APIServer) }

func url(scheme string, port int) string {
	return fmt.Sprintf("%s://%s", scheme, net.JoinHostPort(loopback, strconv.Itoa(port)))
}

const loopback = "127.0.0.1"
