package main

import (
	"os"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/etcdutl/v3/etcdutl"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // client metrics on the API server's /metrics
	_ "k8s.io/component-base/metrics/prometheus/version"  // the version metric on the API server's /metrics
	kubectlcmd "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserverapp "k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func etcd([]string) int {
	etcdmain.Main(os.Args)
	return 0
}

// etcdUtility has those of etcdutl's commands that are about snapshots.
func etcdUtility([]string) int {
	command := &cobra.Command{Use: "etcdutl"}
	command.AddCommand(etcdutl.NewSnapshotCommand())
	return cli.Run(command)
}

func apiServer([]string) int {
	return cli.Run(apiserverapp.NewAPIServerCommand())
}

func kubectl([]string) int {
	// kubectl logs while it builds its command, which is before its flags are parsed.
	if _, err := logs.GlogSetter(kubectlcmd.GetLogVerbosity(os.Args)); err != nil {
		return 1
	}
	if err := cli.RunNoErrOutput(kubectlcmd.NewDefaultKubectlCommand()); err != nil {
		kubectlutil.CheckErr(err) // prints and exits with kubectl's own code
		return 1
	}
	return 0
}
