//go:build tools

// Package helm pins the Helm client that installs the chart in tests.
package helm

import (
	_ "helm.sh/helm/v3/cmd/helm"
)
