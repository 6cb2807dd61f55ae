package pki

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"testing"
)

func newAuthority(t *testing.T) (*Authority, *x509.CertPool) {
	t.Helper()
	authority, err := NewAuthority("test")
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority.Certificate()) {
		t.Fatal("the CA is not a certificate in PEM")
	}
	return authority, roots
}

func leaf(t *testing.T, pair Pair) *x509.Certificate {
	t.Helper()
	parsed, err := tls.X509KeyPair(pair.Public, pair.Private)
	if err != nil {
		t.Fatal(err)
	}
	return parsed.Leaf
}

func TestAServerIsTrustedByItsNamesAndAddressesOnly(t *testing.T) {
	authority, roots := newAuthority(t)
	pair, err := authority.Server("server", []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	certificate := leaf(t, pair)
	for name, trusted := range map[string]bool{"localhost": true, "127.0.0.1": true, "example.com": false} {
		_, err := certificate.Verify(x509.VerifyOptions{DNSName: name, Roots: roots})
		if trusted != (err == nil) {
			t.Errorf("as %s: %v", name, err)
		}
	}
}

func TestAClientIsTrustedAsAClientWithItsUserAndGroup(t *testing.T) {
	authority, roots := newAuthority(t)
	pair, err := authority.Client("admin", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	certificate := leaf(t, pair)
	client := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if _, err := certificate.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: client}); err != nil {
		t.Error(err)
	}
	if _, err := certificate.Verify(x509.VerifyOptions{Roots: roots}); err == nil {
		t.Error("it is trusted as a server too")
	}
	if subject := certificate.Subject.String(); subject != "CN=admin,O=system:masters" {
		t.Errorf("the subject is %s", subject)
	}
}

func TestAnotherAuthorityIsNotTrusted(t *testing.T) {
	_, roots := newAuthority(t)
	other, _ := newAuthority(t)
	pair, err := other.Server("server", []string{"localhost"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := leaf(t, pair).Verify(x509.VerifyOptions{DNSName: "localhost", Roots: roots}); err == nil {
		t.Error("a certificate of another authority is trusted")
	}
}
