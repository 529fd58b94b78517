package policies

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"
)

func TestCommonSelectors(t *testing.T) {
	for name, c := range map[string]struct {
		selectors []string
		want      string
	}{
		"none":                          {nil, "<none>"},
		"one":                           {[]string{"a=x,b notin (y),c"}, "a in (x),b notin (y),c"},
		"one that selects all":          {[]string{"a=x", ""}, "<none>"},
		"the same":                      {[]string{"a=x", "a=x"}, "a in (x)"},
		"other values":                  {[]string{"a=x", "a in (z,y)"}, "a in (x,y,z)"},
		"other labels":                  {[]string{"a=x", "b=x"}, "<none>"},
		"one in common":                 {[]string{"a=x,b=y", "b=z,c=w"}, "b in (y,z)"},
		"an absence in common":          {[]string{"!a,b=x", "c=y,!a"}, "!a"},
		"an absence and a value":        {[]string{"!a", "a=x"}, "<none>"},
		"exclusions that are not equal": {[]string{"a notin (x)", "a notin (y)"}, "<none>"},
		"exclusions that are":           {[]string{"a notin (y,x)", "a notin (x,y)"}, "a notin (x,y)"},
		"twice the same label":          {[]string{"a in (x,y),a in (y,z)", "a=x"}, "a in (x,y),a in (x,y,z)"},
		"numbers":                       {[]string{"a>1"}, "<none>"}, // no LabelSelector says that
	} {
		t.Run(name, func(t *testing.T) {
			var selectors []labels.Selector
			for _, text := range c.selectors {
				selectors = append(selectors, parsed(t, text))
			}
			if got := metav1.FormatLabelSelector(common(selectors)); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

func parsed(t interface{ Fatal(...any) }, text string) labels.Selector {
	s, err := labels.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if s.Empty() {
		return nil
	}
	return s
}

func TestWhatOneSelectsTheCommonSelectorDoes(t *testing.T) {
	narrow := 0
	rapid.Check(t, func(t *rapid.T) {
		var selectors []labels.Selector
		for range rapid.IntRange(1, 3).Draw(t, "selectors") {
			text := rapid.SampledFrom([]string{"", "a=x", "a=y", "a in (x,y)", "a", "!a", "a notin (x)"}).Draw(t, "one")
			if b := rapid.SampledFrom([]string{"", "b=x", "b in (y,z)", "!b"}).Draw(t, "other"); b != "" && text != "" {
				text += "," + b
			}
			selectors = append(selectors, parsed(t, text))
		}
		l := labels.Set{}
		for _, k := range []string{"a", "b"} {
			if v := rapid.SampledFrom([]string{"-", "x", "y", "z"}).Draw(t, k); v != "-" {
				l[k] = v
			}
		}
		c := common(selectors)
		s, err := metav1.LabelSelectorAsSelector(c)
		if err != nil {
			t.Fatal(err)
		}
		selected := c == nil || s.Matches(l)
		for _, one := range selectors {
			if (one == nil || one.Matches(l)) && !selected {
				t.Fatalf("%v is selected by %s, and not by %s", l, one, s)
			}
		}
		if !selected {
			narrow++
		}
	})
	if narrow == 0 {
		t.Error("nothing was ever left out")
	}
}
