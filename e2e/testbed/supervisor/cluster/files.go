package cluster

import (
	"encoding/json"
	"fmt"
	"net"
	"os"

	"github.com/ferromesh/ferromesh/e2e/testbed/shape"
	"github.com/ferromesh/ferromesh/e2e/testbed/supervisor/pki"
)

// administrators is the group that RBAC lets do everything.
const administrators = "system:masters"

// auditPolicy logs who asked for what, once for each request.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
`

// WriteFiles writes everything that the components read.
func (p *Plan) WriteFiles() error {
	if err := os.MkdirAll(p.file("pki"), 0o700); err != nil {
		return fmt.Errorf("making the directory of %s: %w", p.Name(), err)
	}
	files, err := p.files()
	if err != nil {
		return fmt.Errorf("preparing %s: %w", p.Name(), err)
	}
	for path, content := range files {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return fmt.Errorf("preparing %s: %w", p.Name(), err)
		}
	}
	return nil
}

func (p *Plan) files() (map[string][]byte, error) {
	authority, err := pki.NewAuthority("ferromesh-testbed-" + p.Name())
	if err != nil {
		return nil, err
	}
	server, err := authority.Server("kube-apiserver",
		[]string{
			"localhost",
			"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
		},
		[]net.IP{net.ParseIP(loopback), shape.APIServerService(p.Index).AsSlice()})
	if err != nil {
		return nil, err
	}
	tokens, err := pki.SigningKey()
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{
		p.file("pki", "ca.crt"):               authority.Certificate(),
		p.file("pki", "apiserver.crt"):        server.Public,
		p.file("pki", "apiserver.key"):        server.Private,
		p.file("pki", "service-accounts.pub"): tokens.Public,
		p.file("pki", "service-accounts.key"): tokens.Private,
		p.file("audit-policy.yaml"):           []byte(auditPolicy),
	}
	// Users of their own, so that the audit log tells them apart.
	for path, user := range map[string]string{
		p.Kubeconfig():                    "testbed-admin",
		p.file("controllers.kubeconfig"):  "testbed-controllers",
		p.file("fake-kubelet.kubeconfig"): "testbed-fake-kubelet",
	} {
		client, err := authority.Client(user, administrators)
		if err != nil {
			return nil, err
		}
		files[path], err = kubeconfig(p.Name(), p.server(), authority.Certificate(), client)
		if err != nil {
			return nil, err
		}
	}
	// The supervisor's own client (see probe.go).
	client, err := authority.Client("testbed-supervisor", administrators)
	if err != nil {
		return nil, err
	}
	files[p.file("pki", "supervisor.crt")] = client.Public
	files[p.file("pki", "supervisor.key")] = client.Private
	return files, nil
}

// object is a JSON object. JSON is YAML, which a kubeconfig is.
type object = map[string]any

// kubeconfig names its cluster, user and context alike, and differently in each cluster, so that
// the kubeconfigs of several clusters can be merged.
func kubeconfig(name, server string, ca []byte, client pki.Pair) ([]byte, error) {
	content, err := json.MarshalIndent(object{
		"apiVersion":      "v1",
		"kind":            "Config",
		"current-context": name,
		"clusters": []object{{"name": name, "cluster": object{
			"server":                     server,
			"certificate-authority-data": ca, // bytes become base64, as a kubeconfig wants them
		}}},
		"users": []object{{"name": name, "user": object{
			"client-certificate-data": client.Public,
			"client-key-data":         client.Private,
		}}},
		"contexts": []object{{"name": name, "context": object{"cluster": name, "user": name}}},
	}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encoding a kubeconfig of %s: %w", name, err)
	}
	return append(content, '\n'), nil
}
