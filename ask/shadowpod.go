package ask

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/controller/words"
	"github.com/weir-dev/weir/internal/tools/shadow/report"
)

// weirNamespace is the default namespace of the chart; controllerLabels select its controller's
// pods.
const (
	weirNamespace    = "weir-system"
	controllerLabels = "app.kubernetes.io/name=weir,app.kubernetes.io/component=controller"
	mostControllers  = 500
)

// askPod reads the report of the cluster's Weir controller through a port-forward, so the API
// server decides who may. No credentials are sent to the pod: any user who can create a pod with
// these labels could collect them.
func (s *shadowing) askPod(ctx context.Context) (*report.Report, error) {
	namespace := cmp.Or(*s.flags.Namespace, weirNamespace)
	config, err := s.flags.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	core, err := typedcorev1.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	pod, err := s.choose(ctx, core.Pods(namespace), namespace)
	if err != nil {
		return nil, err
	}
	return s.readPod(ctx, config, core.RESTClient(), pod)
}

// choose returns the pod to ask.
func (s *shadowing) choose(ctx context.Context, pods typedcorev1.PodInterface, namespace string) (*corev1.Pod, error) {
	if s.pod != "" {
		pod, err := pods.Get(ctx, s.pod, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("read pod %s: %w", words.Printable(namespace+"/"+s.pod), unanswered(err))
		}
		return pod, compares(pod)
	}
	list, err := pods.List(ctx, metav1.ListOptions{LabelSelector: controllerLabels, Limit: mostControllers})
	if apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("find Weir's controller: %w; with the right to get pods, --pod names it", err)
	}
	if err != nil {
		return nil, fmt.Errorf("find Weir's controller: %w", unanswered(err))
	}
	return s.oldest(list.Items, namespace)
}

// oldest returns the pod of Weir's controller that has run for longest, ready ones first: each
// compares for itself.
func (s *shadowing) oldest(pods []corev1.Pod, namespace string) (*corev1.Pod, error) {
	if len(pods) == 0 {
		return nil, fmt.Errorf("there is no controller of Weir in namespace %s: name its namespace with --namespace, or "+
			"install it with mode: shadow", words.Printable(namespace))
	}
	running := slices.DeleteFunc(slices.Clone(pods), func(p corev1.Pod) bool {
		return p.DeletionTimestamp != nil || p.Status.Phase != corev1.PodRunning
	})
	if len(running) == 0 {
		return nil, fmt.Errorf("the controller of Weir does not run: kubectl -n %s describe %s%s says why",
			words.Shell(namespace), words.Object("pod", pods[0].Name), s.clusterFlags())
	}
	slices.SortStableFunc(running, func(a, b corev1.Pod) int {
		if ready(&a) != ready(&b) {
			return map[bool]int{true: -1, false: 1}[ready(&a)]
		}
		return started(&a).Compare(started(&b))
	})
	var errs []error
	for i := range running {
		if err := compares(&running[i]); err != nil {
			errs = append(errs, err)
			continue
		}
		if len(running) > 1 {
			say(s.says, "Asked pod %s, the first of %d to be ready; each compares for itself (--pod).",
				words.Printable(running[i].Name), len(running))
		}
		return &running[i], nil
	}
	return nil, errs[0]
}

func ready(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// started returns when a pod started.
func started(p *corev1.Pod) time.Time {
	if p.Status.StartTime == nil {
		return time.Time{}
	}
	return p.Status.StartTime.Time
}

// compares returns an error unless a pod runs in shadow mode, by its arguments.
func compares(p *corev1.Pod) error {
	var args []string
	for _, c := range p.Spec.Containers {
		if args == nil || c.Name == "weir" {
			args = slices.Concat(c.Command, c.Args)
		}
	}
	mode := "companion"
	for i, arg := range args {
		if v, found := strings.CutPrefix(arg, "--mode="); found {
			mode = v
		} else if arg == "--mode" && i+1 < len(args) {
			mode = args[i+1]
		}
	}
	if mode != "shadow" {
		return fmt.Errorf("the weir of pod %s runs in %s mode and compares nothing: set mode: shadow in the chart",
			words.Printable(p.Namespace+"/"+p.Name), words.Printable(mode))
	}
	return nil
}

// fileInstead says how to read the report file of a pod that does not serve the report.
func (s *shadowing) fileInstead(p *corev1.Pod) string {
	return fmt.Sprintf("read its file: kubectl -n %s exec %s%s -- /weir shadow /report/shadow.json",
		words.Shell(p.Namespace), words.Shell(p.Name), s.clusterFlags())
}

// readPod reads the report of a pod.
func (s *shadowing) readPod(
	ctx context.Context, config *rest.Config, core rest.Interface, p *corev1.Pod,
) (*report.Report, error) {
	name := words.Printable(p.Namespace + "/" + p.Name)
	address, err := forward(ctx, config, core, p.Namespace, p.Name, report.Port)
	if err != nil {
		return nil, fmt.Errorf("ask pod %s: %w; it takes the right to create pods/portforward in that namespace", name, err)
	}
	return reportAt(ctx, "http://"+address+report.Path, "pod "+name,
		"its weir is older than this command, or has not begun. Update it, or "+s.fileInstead(p))
}
