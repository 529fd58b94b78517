package charts

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

func readAny(t *testing.T, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(data, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	data, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// A value is known to the chart and to the schema, or to neither. A comment says what it does.
func TestValuesAndSchemaNameTheSameValues(t *testing.T) {
	var values, schema object
	readAny(t, "weir/values.yaml", &values)
	readAny(t, "weir/values.schema.json", &schema)
	known := schemaPaths(schema, schema, "")
	known = slices.DeleteFunc(known, func(p string) bool { return p == "global" }) // Helm's own
	set := valuePaths(schema, schema, values, "")
	if diff := cmp.Diff(known, set); diff != "" {
		t.Errorf("values.yaml and values.schema.json (-schema +values):\n%s", diff)
	}
	var documented []string
	for _, part := range valuesYAML(t).Content {
		documented = append(documented, commented(t, schema, schema, part, "")...)
	}
	slices.Sort(documented)
	if diff := cmp.Diff(set, documented); diff != "" {
		t.Errorf("values with a comment above them (-values +with a comment):\n%s", diff)
	}
}

func valuesYAML(t *testing.T) *yamlv3.Node {
	t.Helper()
	data, err := os.ReadFile("weir/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var doc yamlv3.Node
	if err := yamlv3.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	return &doc
}

// commented returns the values that have a comment right above them. What an empty line separates
// from a value is about more than it.
func commented(t *testing.T, root, s object, section *yamlv3.Node, prefix string) []string {
	t.Helper()
	var out []string
	props, _ := resolve(root, s)["properties"].(object)
	for i := 0; i+1 < len(section.Content); i += 2 {
		key, value := section.Content[i], section.Content[i+1]
		if p, known := props[key.Value].(object); known && !leaf(root, p) {
			out = append(out, commented(t, root, p, value, prefix+key.Value+".")...)
		} else if paragraphs := strings.Split(key.HeadComment, "\n\n"); paragraphs[len(paragraphs)-1] != "" {
			out = append(out, prefix+key.Value)
		}
	}
	return out
}

// resolve follows a reference into $defs.
func resolve(root, s object) object {
	if ref, ok := s["$ref"].(string); ok {
		s, _ = at(root, "$defs", strings.TrimPrefix(ref, "#/$defs/")).(object)
	}
	return s
}

// leaf is a schema of something that is documented as one value: all but the sections of
// values.yaml.
func leaf(root, s object) bool {
	s = resolve(root, s)
	_, sections := s["properties"]
	return !sections || opaque[refOf(s, root)]
}

// opaque are definitions that are values as a whole: Kubernetes documents what is in them.
var opaque = map[string]bool{"resources": true, "affinity": true}

func refOf(s, root object) string {
	defs, _ := root["$defs"].(object)
	for name, d := range defs {
		if cmp.Equal(d, any(s)) {
			return name
		}
	}
	return ""
}

func schemaPaths(root, s object, prefix string) []string {
	var out []string
	props, _ := resolve(root, s)["properties"].(object)
	for name, p := range props {
		if leaf(root, p.(object)) {
			out = append(out, prefix+name)
		} else {
			out = append(out, schemaPaths(root, p.(object), prefix+name+".")...)
		}
	}
	slices.Sort(out)
	return out
}

func valuePaths(root, s, values object, prefix string) []string {
	var out []string
	props, _ := resolve(root, s)["properties"].(object)
	for name, v := range values {
		p, known := props[name].(object)
		section, _ := v.(object)
		if known && !leaf(root, p) {
			out = append(out, valuePaths(root, p, section, prefix+name+".")...)
		} else {
			out = append(out, prefix+name)
		}
	}
	slices.Sort(out)
	return out
}

// A misspelt value must not be silently without effect: objects say what may be in them, or what
// all is like.
func TestSchemaLeavesNothingOpen(t *testing.T) {
	var schema object
	readAny(t, "weir/values.schema.json", &schema)
	objects := 0
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case object:
			if v["type"] == "object" {
				objects++
				additional, closed := v["additionalProperties"]
				if !closed || additional == true {
					if d, _ := v["description"].(string); !strings.Contains(d, "API server checks it") && path != "/properties/global" {
						t.Errorf("%s: additionalProperties is open", path)
					}
				}
			}
			for k, c := range v {
				walk(path+"/"+k, c)
			}
		case []any:
			for _, c := range v {
				walk(path, c)
			}
		}
	}
	walk("", schema)
	if objects < 30 {
		t.Errorf("looked at %d objects only", objects)
	}
}

func TestWrongValuesAreRefusedWithTheirName(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ set, says string }{
		"misspelt section":          {"controler.replicas=1", "controler"},
		"misspelt value":            {"webhook.replica=1", "replica"},
		"mode":                      {"mode=both", "mode"},
		"no replicas":               {"webhook.replicas=0", "replicas"},
		"certificates":              {"certificates.type=none", "type"},
		"no Secret":                 {"certificates.type=provided", "certificates.provided.secretName"},
		"issuer without a name":     {"certificates.type=certManager,certificates.certManager.issuer.kind=ClusterIssuer", "certificates.certManager.issuer.kind"},
		"two leaders":               {"controller.leaderElect=false", "controller.replicas"},
		"two priority classes":      {"priorityClass.name=other", "priorityClass.create"},
		"port of the probes":        {"webhook.port=8081", "port"},
		"digest":                    {"image.digest=latest", "digest"},
		"file that is not read":     {"policyFiles.notes=text", "notes"},
		"file that comes with Weir": {`policyFiles.protection\.yaml=x`, "protection.yaml"},
		"rule with verbs":           {"rbac.read.rules[0].verbs[0]=get", "verbs"},
		"root":                      {"runAsUser=0", "runAsUser"},
		"unknown resources":         {"webhook.resources.request.cpu=1", "request"},
		"value that is gone":        {"webhook.armingWindow=35s", "armingWindow"},
	}
	for name, c := range cases {
		for _, helm := range []string{helm4, helm3} {
			out, err := template(t, helm, "--set", c.set)
			if err == nil {
				t.Errorf("%s: %s accepts %s:\n%.300s", name, helm, c.set, out)
			} else if !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %s says %q, which does not name %s", name, helm, err, c.says)
			}
		}
	}
}
