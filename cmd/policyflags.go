package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/certs"
	"github.com/weir-dev/weir/controller/enforce"
	"github.com/weir-dev/weir/policies/live"
	"github.com/weir-dev/weir/webhook"
)

// policyFlags say where policies are, and which users they exempt.
type policyFlags struct {
	dir  string
	self []string
}

func (f *policyFlags) register(fs *pflag.FlagSet) {
	fs.StringVar(&f.dir, "policy-dir", "", "directory of policy files, in force beside the policies of the API "+
		"server; read again when they change")
	fs.StringSliceVar(&f.self, "self-users", nil,
		"user names that weir's other processes act under; no policy judges them, nor the user of this one")
}

func (f *policyFlags) check() error {
	w := wrong{checkUsers("--self-users", f.self)}
	if f.dir != "" {
		err := live.CheckDir(f.dir)
		w.unless(err == nil, "--policy-dir: %w", err)
	}
	return errors.Join(w...)
}

// state prepares the policies of a Weir whose Service is in the namespace home, if it has one. It
// asks the API server for weir's own user, whose requests are never judged.
func (f *policyFlags) state(
	ctx context.Context, config *rest.Config, home string, log logr.Logger,
) (*live.State, error) {
	self := f.self
	if me, err := whoAmI(ctx, config); err != nil {
		log.Info("cannot find out which user weir acts under: name it with --self-users, or policies judge weir itself",
			"err", err.Error())
	} else {
		self = append(self, me)
		if !strings.HasPrefix(me, "system:serviceaccount:") {
			log.Info("no policy judges the user that weir acts under: give weir a user of its own, if people act under this "+
				"one too", "user", me)
		}
	}
	return live.New(live.Options{ //nolint:contextcheck // it waits for no other process
		Config: config, Dir: f.dir, Self: self, Namespace: home, Log: log.WithName("policies"),
	})
}

func whoAmI(ctx context.Context, config *rest.Config) (string, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", fmt.Errorf("make a client: %w", err)
	}
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{},
		metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("review who I am: %w", err)
	}
	return review.Status.UserInfo.Username, nil
}

// The sources of a certificate.
const (
	certificatesSelf        = "self"
	certificatesFiles       = "files"
	certificatesCertManager = "cert-manager"
)

// targetFlags say where the webhook is, and how the API server verifies it.
type targetFlags struct {
	service, url string

	certificates string
	dir          string
	secret       string
	issuer       string
}

func (f *targetFlags) register(fs *pflag.FlagSet) {
	fs.StringVar(&f.service, "webhook-service", "",
		"NAMESPACE/NAME of the Service by which the API server reaches the webhook, at port 443")
	fs.StringVar(&f.url, "webhook-url", "", "https://HOST:PORT by which the API server reaches the webhook, outside a "+
		"cluster")
	fs.StringVar(&f.certificates, "webhook-certificates", certificatesSelf,
		"where the webhook's certificate comes from: self (weir's own CA, in a Secret), files, or cert-manager")
	fs.StringVar(&f.dir, "webhook-cert-dir", "", "with files: directory with tls.crt, tls.key and ca.crt, read again "+
		"when they change")
	fs.StringVar(&f.secret, "webhook-cert-secret", "",
		"NAMESPACE/NAME of the Secret with weir's own CA, or with the certificate that cert-manager issues; default: "+
			"weir-ca or weir-webhook-tls beside the Service, or in kube-system")
	fs.StringVar(&f.issuer, "webhook-cert-issuer", "",
		"with cert-manager: KIND/NAME of the issuer, such as ClusterIssuer/internal")
}

func (f *targetFlags) set() bool { return f.service != "" || f.url != "" }

func (f *targetFlags) check() error {
	var w wrong
	w.unless(f.service == "" || f.url == "", "--webhook-service and --webhook-url: the webhook is in one place")
	_, noService := pair("--webhook-service", f.service)
	_, noSecret := pair("--webhook-cert-secret", f.secret)
	return errors.Join(append(w, noService, noSecret, f.checkURL(), f.checkCertificates())...)
}

// at returns the Service, once it was checked; the zero value if there is none.
func (f *targetFlags) at() types.NamespacedName {
	service, _ := pair("", f.service)
	return service
}

// checkURL finds what an API server would refuse in a webhook configuration, or could not connect
// to.
func (f *targetFlags) checkURL() error {
	if f.url == "" {
		return nil
	}
	u, err := url.Parse(f.url)
	if err != nil {
		return fmt.Errorf("--webhook-url %q: must be https://HOST:PORT", f.url)
	}
	if (*u != url.URL{Scheme: "https", Host: u.Host, Path: u.Path}) || u.Hostname() == "" ||
		strings.Trim(u.Path, "/") != "" {
		return fmt.Errorf("--webhook-url %q: must be https://HOST:PORT", u.Redacted())
	}
	if net.ParseIP(u.Hostname()) == nil && len(validation.IsDNS1123Subdomain(u.Hostname())) > 0 {
		return fmt.Errorf("--webhook-url %q: the host must be a DNS name or an address", f.url)
	}
	if port := u.Port(); port != "" || strings.HasSuffix(u.Host, ":") {
		return checkPort("--webhook-url", f.url, port)
	}
	return nil
}

// checkCertificates finds what a source of certificates lacks.
func (f *targetFlags) checkCertificates() error {
	switch f.certificates {
	case certificatesSelf:
	case certificatesFiles:
		if f.dir == "" {
			return errors.New("--webhook-certificates files: --webhook-cert-dir says where they are")
		}
	case certificatesCertManager:
		if kind, name, ok := strings.Cut(f.issuer, "/"); !ok || kind == "" || len(validation.IsDNS1123Subdomain(name)) > 0 {
			return fmt.Errorf("--webhook-cert-issuer %q: must be KIND/NAME, such as ClusterIssuer/internal", f.issuer)
		}
	default:
		return fmt.Errorf("--webhook-certificates %q: must be self, files or cert-manager", f.certificates)
	}
	return nil
}

// pair reads NAMESPACE/NAME; empty gives the zero value.
func pair(flag, text string) (types.NamespacedName, error) {
	if text == "" {
		return types.NamespacedName{}, nil
	}
	namespace, name, ok := strings.Cut(text, "/")
	if !ok || len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return types.NamespacedName{}, fmt.Errorf("%s %q: must be NAMESPACE/NAME", flag, text)
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}

// names returns the names by which the API server calls the webhook. The certificate must be valid
// for them.
func (f *targetFlags) names() []string {
	if u, err := url.Parse(f.url); err == nil && f.url != "" {
		return []string{u.Hostname()}
	}
	return []string{f.at().Name + "." + f.at().Namespace + ".svc"}
}

// source returns the source of the certificate. With administer, this process tells the API server
// what to trust.
func (f *targetFlags) source(config *rest.Config, administer bool, log logr.Logger) certs.Source {
	log = log.WithName("certificates")
	switch f.certificates {
	case certificatesFiles:
		return certs.Files(f.dir, log)
	case certificatesCertManager:
		secret := f.secretOr("weir-webhook-tls")
		kind, name, _ := strings.Cut(f.issuer, "/")
		return certs.CertManager(certs.CertManagerOptions{
			Config: config, Namespace: secret.Namespace, Name: "weir-webhook", SecretName: secret.Name,
			IssuerKind: kind, IssuerName: name, Names: f.names(), Apply: administer, Log: log,
		})
	}
	secret := f.secretOr("weir-ca")
	return certs.Self(certs.SelfOptions{Config: config, Namespace: secret.Namespace, Name: secret.Name, Names: f.names(),
		Administer: administer, Log: log})
}

// secretOr returns the Secret that the flag names, or else one in the namespace of the Service.
func (f *targetFlags) secretOr(name string) types.NamespacedName {
	if secret, _ := pair("", f.secret); secret.Name != "" { // checked before
		return secret
	}
	return types.NamespacedName{Namespace: f.near(), Name: name}
}

// near returns the namespace of the Service, kube-system without one.
func (f *targetFlags) near() string { return cmp.Or(f.at().Namespace, metav1.NamespaceSystem) }

// tokenSecret is the name of the Secret with the token.
const tokenSecret = "weir-webhook-token"

// tokens returns the token of the webhook's paths. With administer, this process writes the webhook
// configurations.
func (f *targetFlags) tokens(config *rest.Config, administer bool, log logr.Logger) *certs.Token {
	return certs.NewToken(certs.TokenOptions{Config: config, Namespace: f.near(), Name: tokenSecret,
		Make: administer, Log: log.WithName("token")})
}

// target returns what the controller writes into webhook configurations.
func (f *targetFlags) target(source certs.Source, token *certs.Token) *enforce.WebhookTarget {
	return &enforce.WebhookTarget{Service: f.at(), URL: f.url, Paths: webhook.Paths, Token: token, Certificates: source,
		CanaryNamespace: f.near()}
}

// home returns the namespace that weir runs in, that of its Service or of its pod; "" outside a
// cluster.
func (f *targetFlags) home() string { return cmp.Or(f.at().Namespace, podNamespace()) }

// podNamespace returns the namespace of this process's pod; "" outside a pod, or in one without a
// ServiceAccount token.
func podNamespace() string {
	if !inCluster() {
		return ""
	}
	namespace, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(namespace))
}

func inCluster() bool { return os.Getenv("KUBERNETES_SERVICE_HOST") != "" }
