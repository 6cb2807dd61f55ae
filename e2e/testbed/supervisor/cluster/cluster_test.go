package cluster

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
)

func newPlan() *Plan {
	return &Plan{
		Index:     2,
		Directory: "/tmp/bed/cluster-1",
		Ports:     NewPorts([]int{20001, 20002, 20003}),
		Programs:  Programs{Etcd: "/bin/etcd", APIServer: "/bin/kube-apiserver"},
		Nodes:     3,
	}
}

func has(t *testing.T, args []string, wanted ...string) {
	t.Helper()
	for _, want := range wanted {
		if !slices.Contains(args, want) {
			t.Errorf("no %s in\n%s", want, strings.Join(args, "\n"))
		}
	}
}

func TestTheFirstClusterIsTheManagementCluster(t *testing.T) {
	for index, want := range map[int]string{1: "management", 2: "cluster-1", 10: "cluster-9"} {
		if got := Name(index); got != want {
			t.Errorf("cluster %d is %s, want %s", index, got, want)
		}
	}
}

func TestTheAPIServerUsesTheEtcdOfItsCluster(t *testing.T) {
	plan := newPlan()
	etcd, server := plan.etcd(), plan.apiServer()
	has(t, etcd.Args, "--listen-client-urls=http://127.0.0.1:20001", "--listen-peer-urls=http://127.0.0.1:20002",
		"--data-dir=/tmp/bed/cluster-1/etcd", "--unsafe-no-fsync")
	has(t, server.Args, "--etcd-servers=http://127.0.0.1:20001", "--secure-port=20003", "--authorization-mode=RBAC",
		"--client-ca-file=/tmp/bed/cluster-1/pki/ca.crt", "--service-cluster-ip-range=10.130.0.0/16")
	if etcd.Program != "/bin/etcd" || server.Program != "/bin/kube-apiserver" {
		t.Errorf("the programs are %s and %s", etcd.Program, server.Program)
	}
}

func TestTheAuditLogIsWrittenOnDemandOnly(t *testing.T) {
	plan := newPlan()
	audited := func(arg string) bool { return strings.HasPrefix(arg, "--audit") }
	if slices.ContainsFunc(plan.apiServer().Args, audited) {
		t.Error("there is an audit log that nobody asked for")
	}
	plan.Audit = true
	has(t, plan.apiServer().Args, "--audit-log-path=/tmp/bed/cluster-1/audit.jsonl",
		"--audit-policy-file=/tmp/bed/cluster-1/audit-policy.yaml")
}

func TestTheFakeKubeletKnowsItsClusterAndNodes(t *testing.T) {
	has(t, newPlan().fakeKubelet().Args, "--cluster=2", "--nodes=3")
}

func TestEveryFileThatACommandNamesIsWritten(t *testing.T) {
	plan := newPlan()
	plan.Audit = true
	files, err := plan.files()
	if err != nil {
		t.Fatal(err)
	}
	args := slices.Concat(plan.apiServer().Args, plan.controllers().Args, plan.fakeKubelet().Args)
	for _, arg := range args {
		name, path, _ := strings.Cut(arg, "=")
		reads := strings.HasSuffix(name, "-file") || name == "--kubeconfig"
		if _, written := files[path]; reads && !written {
			t.Errorf("%s is not written", arg)
		}
	}
}

func TestTheKubeconfigHoldsTheAddressAndAClientCertificate(t *testing.T) {
	plan := newPlan()
	files, err := plan.files()
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		CurrentContext string `json:"current-context"`
		Clusters       []struct{ Cluster struct{ Server string } }
		Users          []struct {
			Name string
			User struct {
				Certificate []byte `json:"client-certificate-data"`
				Key         []byte `json:"client-key-data"`
			}
		}
	}
	if err := json.Unmarshal(files[plan.Kubeconfig()], &config); err != nil {
		t.Fatal(err)
	}
	if config.CurrentContext != "cluster-1" || config.Clusters[0].Cluster.Server != "https://127.0.0.1:20003" {
		t.Errorf("context %s, server %s", config.CurrentContext, config.Clusters[0].Cluster.Server)
	}
	pair, err := tls.X509KeyPair(config.Users[0].User.Certificate, config.Users[0].User.Key)
	if err != nil {
		t.Fatal(err)
	}
	if subject := pair.Leaf.Subject.String(); subject != "CN=testbed-admin,O=system:masters" {
		t.Errorf("the user is %s", subject)
	}
}

func TestANodeIsReadyOnceItsConditionSaysSo(t *testing.T) {
	for content, ready := range map[string]bool{
		`{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`:    true,
		`{"status":{"conditions":[{"type":"Ready","status":"Unknown"}]}}`: false,
		`{}`: false,
	} {
		if err := nodeReady([]byte(content)); ready != (err == nil) {
			t.Errorf("%s: %v", content, err)
		}
	}
}

func TestASnapshotIsItsPiecesOneAfterTheOther(t *testing.T) {
	var saved strings.Builder
	stream := `{"result":{"remaining_bytes":"3","blob":"YWI="}}` + "\n" + `{"result":{"blob":"Yw=="}}`
	if err := writePieces(&saved, strings.NewReader(stream)); err != nil || saved.String() != "abc" {
		t.Errorf("saved %q, %v", saved.String(), err)
	}
	broken := `{"error":{"message":"etcdserver: no space"}}`
	if err := writePieces(&saved, strings.NewReader(broken)); err == nil || !strings.Contains(err.Error(), "no space") {
		t.Errorf("the error is %v", err)
	}
}

func TestAWaitThatIsCutShortTellsWhyAndWhatWasMissing(t *testing.T) {
	crash, missing := errors.New("etcd crashed"), errors.New("connection refused")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(crash)
	err := await(ctx, "etcd", func(context.Context) error { return missing })
	if !errors.Is(err, crash) || !errors.Is(err, missing) {
		t.Errorf("the error is %v", err)
	}
}

func TestAWaitEndsWithTheFirstCheckThatPasses(t *testing.T) {
	checks := 0
	err := await(context.Background(), "the third check", func(context.Context) error {
		if checks++; checks < 3 {
			return errors.New("not yet")
		}
		return nil
	})
	if err != nil || checks != 3 {
		t.Errorf("%d checks, %v", checks, err)
	}
}
