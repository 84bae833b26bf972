package driver

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// parseEndpoint reads scheme://host[:port] into its one normal form: lower
// case, and no port where it is the scheme's own. Its errors do not repeat the
// value, which may hold user information.
func parseEndpoint(v string) (string, error) {
	u, err := url.Parse(v)
	if err != nil {
		return "", errors.New("it is not a URL: want scheme://host[:port]")
	}
	scheme := strings.ToLower(u.Scheme)
	if scheme != "http" && scheme != "https" {
		return "", errors.New("want scheme://host[:port] with scheme http or https")
	}
	host, port := strings.ToLower(u.Hostname()), u.Port()
	switch {
	case u.User != nil:
		return "", errors.New("it holds user information: want scheme://host[:port]; keys never belong into a URL")
	case u.Path != "" || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.HasSuffix(v, "#"):
		return "", fmt.Errorf("it holds more than an address: want %q", scheme+"://"+strings.ToLower(u.Host))
	case host == "" || strings.HasSuffix(u.Host, ":"):
		return "", errors.New("the host or port is missing: want scheme://host[:port]")
	case !goodHost(host):
		return "", errors.New("the host is not a DNS name or IP address: want scheme://host[:port]")
	}
	if port != "" {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return "", errors.New("the port is not between 1 and 65535")
		}
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port == "" || scheme == "http" && port == "80" || scheme == "https" && port == "443" {
		return scheme + "://" + host, nil
	}
	return scheme + "://" + host + ":" + port, nil
}

func goodHost(host string) bool {
	if strings.Contains(host, ":") {
		return net.ParseIP(host) != nil
	}
	for label := range strings.SplitSeq(host, ".") {
		if label == "" || len(label) > 63 || strings.HasPrefix(label, "-") || strings.HasSuffix(label, "-") {
			return false
		}
		for _, r := range label {
			if !isLowerAlnum(r) && r != '-' {
				return false
			}
		}
	}
	return len(host) <= 253
}
