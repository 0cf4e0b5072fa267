//go:build tools

// Package etcd pins the store of the test bed.
package etcd

import _ "go.etcd.io/etcd/server/v3"
