package shape

import (
	"net/netip"
	"testing"
)

func TestNoAddressBelongsToTwoClusters(t *testing.T) {
	owner := make(map[netip.Addr]int)
	for cluster := 1; cluster <= MaxClusters; cluster++ {
		for _, address := range []netip.Addr{
			NodeAddress(cluster, 1), NodeAddress(cluster, MaxNodes),
			PodAddresses(cluster).First, PodAddresses(cluster).Last,
			LoadBalancerAddresses(cluster).First, LoadBalancerAddresses(cluster).Last,
			APIServerService(cluster), ServiceBlock(cluster).Addr(),
		} {
			if other, taken := owner[address]; taken {
				t.Errorf("%s belongs to the clusters %d and %d, or twice to one", address, other, cluster)
			}
			owner[address] = cluster
		}
	}
}

func TestPodsAndNodesAreNotInTheBlockOfServices(t *testing.T) {
	for cluster := 1; cluster <= MaxClusters; cluster++ {
		for other := 1; other <= MaxClusters; other++ {
			for _, address := range []netip.Addr{NodeAddress(other, 1), PodAddresses(other).First} {
				if ServiceBlock(cluster).Contains(address) {
					t.Errorf("%s of cluster %d is in the Services' block of cluster %d", address, other, cluster)
				}
			}
		}
	}
}
