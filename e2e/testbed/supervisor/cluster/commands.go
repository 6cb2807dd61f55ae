package cluster

import (
	"strconv"

	"github.com/ferromesh/ferromesh/e2e/testbed/shape"
	"github.com/ferromesh/ferromesh/e2e/testbed/supervisor/process"
)

// issuer of service account tokens; the usual one, so that nothing can tell the cluster by it.
const issuer = "https://kubernetes.default.svc.cluster.local"

func (p *Plan) etcd() process.Command {
	clients, peers := url("http", p.Ports.EtcdClients), url("http", p.Ports.EtcdPeers)
	return process.Command{Program: p.Programs.Etcd, Log: p.Log(Etcd), Args: []string{
		"--name=testbed",
		"--data-dir=" + p.file("etcd"),
		"--listen-client-urls=" + clients,
		"--advertise-client-urls=" + clients,
		"--listen-peer-urls=" + peers,
		"--initial-advertise-peer-urls=" + peers,
		"--initial-cluster=testbed=" + peers,
		"--unsafe-no-fsync", // the data does not outlive the machine's uptime anyway
		"--log-level=warn",
	}}
}

func (p *Plan) apiServer() process.Command {
	args := []string{
		"--etcd-servers=" + url("http", p.Ports.EtcdClients),
		"--bind-address=" + loopback,
		"--advertise-address=" + loopback,
		"--secure-port=" + strconv.Itoa(p.Ports.APIServer),
		"--tls-cert-file=" + p.file("pki", "apiserver.crt"),
		"--tls-private-key-file=" + p.file("pki", "apiserver.key"),
		"--client-ca-file=" + p.file("pki", "ca.crt"),
		"--cert-dir=" + p.file("pki"),
		"--service-account-issuer=" + issuer,
		"--service-account-key-file=" + p.file("pki", "service-accounts.pub"),
		"--service-account-signing-key-file=" + p.file("pki", "service-accounts.key"),
		"--authorization-mode=RBAC",
		"--allow-privileged=true",
		"--service-cluster-ip-range=" + shape.ServiceBlock(p.Index).String(),
		// EndpointSlices refuse the loopback address that it listens on.
		"--endpoint-reconciler-type=none",
	}
	if p.Audit {
		args = append(args,
			"--audit-policy-file="+p.file("audit-policy.yaml"),
			"--audit-log-path="+p.AuditLog(),
			"--audit-log-maxsize=500", // megabytes
		)
	}
	return process.Command{Program: p.Programs.APIServer, Log: p.Log(APIServer), Args: args}
}

func (p *Plan) controllers() process.Command {
	return process.Command{Program: p.Programs.Controllers, Log: p.Log(Controllers), Args: []string{
		"--kubeconfig=" + p.file("controllers.kubeconfig"),
		"--service-account-private-key-file=" + p.file("pki", "service-accounts.key"),
		"--root-ca-file=" + p.file("pki", "ca.crt"),
	}}
}

func (p *Plan) fakeKubelet() process.Command {
	return process.Command{Program: p.Programs.FakeKubelet, Log: p.Log(FakeKubelet), Args: []string{
		"--kubeconfig=" + p.file("fake-kubelet.kubeconfig"),
		"--cluster=" + strconv.Itoa(p.Index),
		"--nodes=" + strconv.Itoa(p.Nodes),
	}}
}
