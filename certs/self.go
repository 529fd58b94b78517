package certs

import (
	_ "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	_ "github.com/cert-manager/cert-manager/pkg/server/tls"
	_ "github.com/cert-manager/cert-manager/pkg/server/tls/authority"
)
