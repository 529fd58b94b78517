package load

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"text/template"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	flowcontrolclient "k8s.io/client-go/kubernetes/typed/flowcontrol/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// levelsUser is whose requests the chart's flow schemas are made to match: that of ServiceAccount.
var levelsUser = metav1.ObjectMeta{Namespace: "weir-system", Name: "weir"}

// Levels installs the priority level and the flow schemas of the chart in a folder, at its default
// values but for the name of the ServiceAccount, and returns when the API server goes by them: cfg
// is that account's. remove takes them away again.
func Levels(ctx context.Context, admin, cfg *rest.Config, chart string) (remove func(context.Context) error, err error) {
	levels, schemas, err := renderLevels(chart)
	if err != nil {
		return nil, fmt.Errorf("install the chart's priority level: %w", err)
	}
	client, err := kubernetes.NewForConfig(admin)
	if err != nil {
		return nil, fmt.Errorf("install the chart's priority level: %w", err)
	}
	flow := client.FlowcontrolV1()
	remove = func(ctx context.Context) (err error) {
		for _, s := range schemas {
			err = errors.Join(err, flow.FlowSchemas().Delete(ctx, s.Name, metav1.DeleteOptions{}))
		}
		for _, l := range levels {
			err = errors.Join(err, flow.PriorityLevelConfigurations().Delete(ctx, l.Name, metav1.DeleteOptions{}))
		}
		return err
	}
	if err := install(ctx, flow, levels, schemas, cfg); err != nil {
		return nil, errors.Join(fmt.Errorf("install the chart's priority level: %w", err), remove(ctx))
	}
	return remove, nil
}

func install(ctx context.Context, flow flowcontrolclient.FlowcontrolV1Interface, levels []flowcontrolv1.PriorityLevelConfiguration, schemas []flowcontrolv1.FlowSchema, cfg *rest.Config) error {
	for i := range levels {
		if _, err := flow.PriorityLevelConfigurations().Create(ctx, &levels[i], metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	ours := map[string]bool{}
	for i := range schemas {
		made, err := flow.FlowSchemas().Create(ctx, &schemas[i], metav1.CreateOptions{})
		if err != nil {
			return err
		}
		ours[string(made.UID)] = true
	}
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, cfg.Host+"/api/v1/namespaces/default", nil)
		if err != nil {
			return false, err
		}
		resp, err := client.Do(req)
		if err != nil {
			return false, err
		}
		return ours[resp.Header.Get(flowcontrolv1.ResponseHeaderMatchedFlowSchemaUID)], resp.Body.Close()
	})
}

// renderLevels renders the chart's template by itself: it needs half a dozen of Helm's functions,
// and Helm takes minutes to build.
func renderLevels(chart string) (levels []flowcontrolv1.PriorityLevelConfiguration, schemas []flowcontrolv1.FlowSchema, err error) {
	t, err := template.New("flowschema.yaml").Funcs(helmFunctions).ParseFiles(filepath.Join(chart, "templates", "flowschema.yaml"))
	if err != nil {
		return nil, nil, err
	}
	text, err := os.ReadFile(filepath.Join(chart, "values.yaml"))
	if err != nil {
		return nil, nil, err
	}
	var values map[string]any
	if err := yaml.Unmarshal(text, &values); err != nil {
		return nil, nil, err
	}
	if err := errors.Join(unstructured.SetNestedField(values, true, "flowSchema", "enabled"),
		unstructured.SetNestedField(values, levelsUser.Name, "controller", "serviceAccount", "name")); err != nil {
		return nil, nil, err
	}
	var out bytes.Buffer
	if err := t.Execute(&out, map[string]any{"Values": values, "Release": map[string]any{"Namespace": levelsUser.Namespace}}); err != nil {
		return nil, nil, err
	}
	return decodeLevels(out.Bytes())
}

func decodeLevels(text []byte) (levels []flowcontrolv1.PriorityLevelConfiguration, schemas []flowcontrolv1.FlowSchema, err error) {
	for _, document := range bytes.Split(text, []byte("\n---\n")) {
		var kind metav1.TypeMeta
		if err := yaml.Unmarshal(document, &kind); err != nil {
			return nil, nil, err
		}
		switch kind.Kind {
		case "PriorityLevelConfiguration":
			levels = append(levels, flowcontrolv1.PriorityLevelConfiguration{})
			err = yaml.UnmarshalStrict(document, &levels[len(levels)-1])
		case "FlowSchema":
			schemas = append(schemas, flowcontrolv1.FlowSchema{})
			err = yaml.UnmarshalStrict(document, &schemas[len(schemas)-1])
		default:
			err = fmt.Errorf("the template has a %q", kind.Kind)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return levels, schemas, nil
}

// helmFunctions are those of Helm's that the template uses. Labels are of no matter here, and JSON
// is YAML, which needs no indentation.
var helmFunctions = template.FuncMap{
	"dict": func(pairs ...any) map[string]any {
		out := map[string]any{}
		for i := 0; i+1 < len(pairs); i += 2 {
			out[fmt.Sprint(pairs[i])] = pairs[i+1]
		}
		return out
	},
	"list":    func(items ...any) []any { return items },
	"include": func(string, any) string { return "{}" },
	"int":     func(v float64) int { return int(v) },
	"quote":   strconv.Quote,
	"nindent": func(_ int, s string) string { return s },
	"toYaml": func(v any) (string, error) {
		text, err := json.Marshal(v)
		return string(text), err
	},
}
