//go:build tools

// Package kubernetes names the servers of Kubernetes that the test bed runs, at the versions in go.mod.
package kubernetes

import (
	_ "go.etcd.io/etcd/server/v3"
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
)
