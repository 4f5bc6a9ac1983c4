package harness

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"strings"
	"time"
)

// Files of a server with TLS, in its data folder.
const (
	certFile = "tls.crt"
	keyFile  = "tls.key"
	caFile   = "ca.crt"
)

// certificateLife is far beyond any test, and short enough for a key that was left somewhere to be worth nothing.
const certificateLife = 30 * 24 * time.Hour

// A certificate is what the servers of one group show, and what their clients trust.
type certificate struct {
	files  map[string]string // PEM, by the names above
	client *tls.Config
}

// newCertificate makes an authority for this one group and a server certificate for 127.0.0.1, ::1 and localhost. The
// authority's key is forgotten at once.
func newCertificate() (*certificate, error) {
	fail := func(err error) (*certificate, error) {
		return nil, fmt.Errorf("harness: make a certificate: %w", err)
	}
	now := time.Now()
	authority := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "shardkit harness"},
		NotBefore:             now.Add(-time.Hour), // clocks of containers differ
		NotAfter:              now.Add(certificateLife),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	server := &x509.Certificate{
		SerialNumber: big.NewInt(2),
		Subject:      pkix.Name{CommonName: "shardkit harness server"},
		NotBefore:    authority.NotBefore,
		NotAfter:     authority.NotAfter,
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		DNSNames:     []string{"localhost"},
		KeyUsage:     x509.KeyUsageDigitalSignature,
		// A node of a cluster is its neighbours' client as well.
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fail(err)
	}
	serverKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fail(err)
	}
	authorityDER, err := x509.CreateCertificate(rand.Reader, authority, authority, &authorityKey.PublicKey, authorityKey)
	if err != nil {
		return fail(err)
	}
	serverDER, err := x509.CreateCertificate(rand.Reader, server, authority, &serverKey.PublicKey, authorityKey)
	if err != nil {
		return fail(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(serverKey)
	if err != nil {
		return fail(err)
	}
	text := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	c := &certificate{
		files: map[string]string{
			certFile: text("CERTIFICATE", serverDER),
			keyFile:  text("PRIVATE KEY", keyDER),
			caFile:   text("CERTIFICATE", authorityDER),
		},
		client: &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12},
	}
	c.client.RootCAs.AppendCertsFromPEM([]byte(c.files[caFile]))
	return c, nil
}

// listenFlags make a server listen: for TLS alone where there is a certificate, also among the nodes.
func listenFlags(cert *certificate, port string) []string {
	if cert == nil {
		return []string{"--port", port}
	}
	return []string{
		"--port", "0",
		"--tls-port", port,
		"--tls-cert-file", certFile,
		"--tls-key-file", keyFile,
		"--tls-ca-cert-file", caFile,
		"--tls-auth-clients", "no",
		"--tls-replication", "yes",
		"--tls-cluster", "yes",
	}
}

// builtWithoutTLS reports whether a server's log says that it does not know what TLS is.
func builtWithoutTLS(log string) bool {
	return strings.Contains(log, "'tls-") && strings.Contains(log, "Bad directive")
}
