package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/ferromesh/ferromesh/e2e/testbed/shape"
)

// probe asks the components of one cluster how they are.
type probe struct {
	plan   *Plan
	client *http.Client
}

func newProbe(plan *Plan) (*probe, error) {
	ca, err := os.ReadFile(plan.file("pki", "ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("reading the CA: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, errors.New("reading the CA: it holds no certificate")
	}
	certificate, err := tls.LoadX509KeyPair(plan.file("pki", "supervisor.crt"), plan.file("pki", "supervisor.key"))
	if err != nil {
		return nil, fmt.Errorf("reading the client certificate: %w", err)
	}
	return &probe{plan: plan, client: &http.Client{
		Timeout: 5 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{
			RootCAs:      roots,
			Certificates: []tls.Certificate{certificate},
			MinVersion:   tls.VersionTLS12,
		}},
	}}, nil
}

// etcdHealthy says what keeps etcd from serving.
func (p *probe) etcdHealthy(ctx context.Context) error {
	_, err := p.get(ctx, url("http", p.plan.Ports.EtcdClients)+"/health")
	return err
}

// apiServerReady says what keeps the API server from being ready.
func (p *probe) apiServerReady(ctx context.Context) error {
	_, err := p.get(ctx, p.plan.server()+"/readyz")
	return err
}

// controllersWork says what the control loops have not done yet.
func (p *probe) controllersWork(ctx context.Context) error {
	_, err := p.get(ctx, p.plan.server()+"/api/v1/namespaces/default/serviceaccounts/default")
	return err
}

// nodesReady says which of the Nodes are not ready yet.
func (p *probe) nodesReady(ctx context.Context) error {
	for number := 1; number <= p.plan.Nodes; number++ {
		content, err := p.get(ctx, p.plan.server()+"/api/v1/nodes/"+shape.NodeName(number))
		if err != nil {
			return err
		}
		if err := nodeReady(content); err != nil {
			return fmt.Errorf("%s: %w", shape.NodeName(number), err)
		}
	}
	return nil
}

func nodeReady(content []byte) error {
	var node struct {
		Status struct {
			Conditions []struct{ Type, Status string }
		}
	}
	if err := json.Unmarshal(content, &node); err != nil {
		return fmt.Errorf("reading the Node: %w", err)
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == "Ready" && condition.Status == "True" {
			return nil
		}
	}
	return errors.New("the Node is not ready")
}

func (p *probe) get(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := p.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	const limit = 1 << 20
	content, err := io.ReadAll(io.LimitReader(response.Body, limit))
	if err != nil {
		return nil, fmt.Errorf("reading the answer of %s: %w", url, err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s: %.500s", url, response.Status, content)
	}
	return content, nil
}

// await repeats a check until it passes. When ctx ends before, the error tells why it ended and
// what the check last found.
func await(ctx context.Context, what string, check func(ctx context.Context) error) error {
	const every = 100 * time.Millisecond
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w; the last answer was: %w", what, context.Cause(ctx), err)
		case <-time.After(every):
		}
	}
}
