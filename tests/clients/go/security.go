package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	krbclient "github.com/jcmturner/gokrb5/v8/client"
	krbconfig "github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/keytab"
)

// security contains the settings for brokers that require authentication or TLS; see
// tests/support/client_security.py.
type security struct {
	Protocol    string `json:"protocol"`
	CA          string `json:"ca"`
	Certificate string `json:"certificate"`
	Key         string `json:"key"`
	Mechanism   string `json:"mechanism"`
	User        string `json:"user"`
	Password    string `json:"password"`
	TokenURL    string `json:"token_url"`
	Principal   string `json:"principal"`
	Keytab      string `json:"keytab"`
	Service     string `json:"service"`
}

func givenSecurity() (*security, error) {
	given := &security{Protocol: "PLAINTEXT"}
	text, found := os.LookupEnv("CLIENT_SECURITY")
	if !found {
		return given, nil
	}
	return given, json.Unmarshal([]byte(text), given)
}

// tls returns nil for a protocol without TLS.
func (given *security) tls() (*tls.Config, error) {
	if !strings.HasSuffix(given.Protocol, "SSL") {
		return nil, nil
	}
	authority, err := os.ReadFile(given.CA)
	if err != nil {
		return nil, err
	}
	trusted := x509.NewCertPool()
	if !trusted.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("no certificate in %s", given.CA)
	}
	config := &tls.Config{RootCAs: trusted}
	if given.Certificate != "" {
		own, err := tls.LoadX509KeyPair(given.Certificate, given.Key)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{own}
	}
	return config, nil
}

func (given *security) unknownMechanism() error {
	return fmt.Errorf("no such mechanism: %s", given.Mechanism)
}

// kerberosConfig returns the path of krb5.conf.
func kerberosConfig() string {
	if path, found := os.LookupEnv("KRB5_CONFIG"); found {
		return path
	}
	return "/etc/krb5.conf"
}

// kerberosName returns the principal's name and realm.
func (given *security) kerberosName() (string, string, error) {
	if name, realm, found := strings.Cut(given.Principal, "@"); found {
		return name, realm, nil
	}
	config, err := krbconfig.Load(kerberosConfig())
	if err != nil {
		return "", "", err
	}
	return given.Principal, config.LibDefaults.DefaultRealm, nil
}

// kerberosClient gets tickets for the principal with its key table.
func (given *security) kerberosClient() (*krbclient.Client, error) {
	name, realm, err := given.kerberosName()
	if err != nil {
		return nil, err
	}
	config, err := krbconfig.Load(kerberosConfig())
	if err != nil {
		return nil, err
	}
	keys, err := keytab.Load(given.Keytab)
	if err != nil {
		return nil, err
	}
	return krbclient.NewWithKeytab(name, realm, keys, config, krbclient.DisablePAFXFAST(true)), nil
}

// tokens fetches tokens from an OAuth endpoint, and caches each one until shortly before its expiry.
type tokens struct {
	url     string
	mutex   sync.Mutex
	token   string
	expires time.Time
}

func (kept *tokens) current() (string, error) {
	kept.mutex.Lock()
	defer kept.mutex.Unlock()
	if time.Until(kept.expires) > 10*time.Second {
		return kept.token, nil
	}
	form := url.Values{"grant_type": {"client_credentials"}, "scope": {"kafka"}}
	asked, err := http.NewRequest(http.MethodPost, kept.url, strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}
	asked.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	asked.SetBasicAuth("client", "secret")
	response, err := (&http.Client{Timeout: 10 * time.Second}).Do(asked)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s", kept.url, response.Status)
	}
	var found struct {
		Token    string  `json:"access_token"`
		ExpiresS float64 `json:"expires_in"`
	}
	if err := json.NewDecoder(response.Body).Decode(&found); err != nil {
		return "", err
	}
	kept.token = found.Token
	kept.expires = time.Now().Add(time.Duration(found.ExpiresS * float64(time.Second)))
	return kept.token, nil
}
