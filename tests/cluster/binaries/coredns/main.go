// CoreDNS with the plugins that the cluster of the tests needs: names of Services and pods, health and readiness.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"

	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/log"
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/reload"
)

func init() {
	// The order in which plugins see a query; see plugin.cfg of CoreDNS.
	dnsserver.Directives = []string{"reload", "health", "ready", "errors", "log", "cache", "kubernetes"}
}

func main() {
	coremain.Run()
}
