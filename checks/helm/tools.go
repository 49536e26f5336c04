//go:build tools

// Package helm names the Helm that the chart is tested with, at the version in go.mod.
package helm

import _ "helm.sh/helm/v3/cmd/helm"
