//go:build tools

// Package kwok pins the simulated kubelet of the test bed.
package kwok

import _ "sigs.k8s.io/kwok/cmd/kwok"
