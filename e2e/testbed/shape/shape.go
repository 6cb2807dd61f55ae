// Package shape is what the supervisor and the components have to agree on: how many clusters and
// Nodes there can be, what the Nodes are called, and which addresses belong to which cluster.
//
// Cluster c has its Nodes at 10.c.0.n, its Pods in the rest of 10.c.0.0/16, its Services in
// 10.(128+c).0.0/16, and its load balancers in 172.16.c.0/24. Nothing ever talks to them, but they
// have to look right: EndpointSlices refuse loopback addresses, for one.
package shape

import (
	"net/netip"
	"strconv"
)

const (
	// MaxClusters keeps a cluster's number, also with 128 added, one octet of an address.
	MaxClusters = 99
	// MaxNodes keeps a Node's number one octet of an address.
	MaxNodes = 250
)

// Range is a range of addresses, both ends included.
type Range struct{ First, Last netip.Addr }

// NodeName is the name of a Node; Nodes are counted from 1.
func NodeName(node int) string { return "node-" + strconv.Itoa(node) }

// NodeAddress is the address of a Node.
func NodeAddress(cluster, node int) netip.Addr { return ipv4(10, cluster, 0, node) }

// PodAddresses are for the Pods of a cluster.
func PodAddresses(cluster int) Range {
	return Range{ipv4(10, cluster, 1, 1), ipv4(10, cluster, 255, 254)}
}

// LoadBalancerAddresses are for the load balancers of a cluster.
func LoadBalancerAddresses(cluster int) Range {
	return Range{ipv4(172, 16, cluster, 1), ipv4(172, 16, cluster, 254)}
}

// ServiceBlock is the address block of the Services of a cluster.
func ServiceBlock(cluster int) netip.Prefix {
	const bits = 16
	return netip.PrefixFrom(ipv4(10, 128+cluster, 0, 0), bits)
}

// APIServerService is the address of a cluster's Service `kubernetes`: the API server takes the
// first one of the block for it.
func APIServerService(cluster int) netip.Addr { return ServiceBlock(cluster).Addr().Next() }

func ipv4(a, b, c, d int) netip.Addr {
	return netip.AddrFrom4([4]byte{byte(a), byte(b), byte(c), byte(d)})
}
